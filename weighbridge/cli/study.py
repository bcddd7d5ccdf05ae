"""`weighbridge study`: replay what others have published."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import click

from weighbridge.cli.options import drivers_own, influx, named, shown

if TYPE_CHECKING:
    from rich.console import Console

    from weighbridge.results.influx.server import InfluxServer
    from weighbridge.results.record.store import RunStore
    from weighbridge.study import PreparedStudy


@drivers_own
@click.command("study")
@click.argument("name", required=False)
@shown(
    "--scale",
    type=click.Choice(["lab", "full"]),
    default="lab",
    help="At the size of one machine, or with the study's own numbers.",
)
@click.option(
    "--hardware",
    metavar="FILE",
    help="Hardware file, or the name of one that ships (default: the study's).",
)
@click.option(
    "--variants",
    metavar="A,B",
    callback=named,
    help="Replay these alone, by their names in the study (default: all).",
)
@click.option(
    "--repeats",
    type=click.IntRange(1, 1000),
    help="Visits of every step (default: the study's); a claim needs 5.",
)
@shown(
    "--attest/--no-attest",
    default=False,
    help="Measure what the hosts of each deployment can do before: some 20 s each.",
)
@influx
@shown(
    "--out",
    default="runs",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the run's folder is made.",
)
@click.option(
    "--list",
    "listed",
    is_flag=True,
    help="List the studies that ship, and how long each takes at least.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Print the plan (variants, steps, least time) and start nothing.",
)
def command(
    name: str | None,
    scale: Literal["lab", "full"],
    hardware: str | None,
    variants: str | None,
    repeats: int | None,
    attest: bool,
    influx: InfluxServer | None,
    out: Path,
    listed: bool,
    dry_run: bool,
    own: Mapping[str, object],
) -> int | None:
    """Replay a published study: its layouts, its workloads, its table, its map of what changed, its
    figures beside ours.

    NAME is a study that ships (see --list) or a study file.
    """
    from weighbridge.screen.terminal import console  # noqa: PLC0415 - heavy rooms are imported by what needs them

    screen = console()
    if listed:
        print_studies(screen)
        return None
    if name is None:
        raise click.UsageError("the NAME of a study is wanted; --list shows those that ship")
    from weighbridge.study import ready  # noqa: PLC0415

    only = [word.strip() for word in (variants or "").split(",") if word.strip()]
    chosen = ready(name, scale, hardware=hardware, only=only, repeats=repeats)
    if dry_run:
        print_plan(chosen, screen)
        return None
    return replay(chosen, screen, attest=attest, influx=influx, out=out, own=own)


def replay(
    chosen: PreparedStudy,
    screen: Console,
    *,
    attest: bool,
    influx: InfluxServer | None = None,
    out: Path,
    own: Mapping[str, object] = MappingProxyType({}),
) -> int:
    """Run a study and print what it came to; returns the exit code.

    Raises as `weighbridge.run.run` does.
    """
    from weighbridge.cli.compare import exit_code  # noqa: PLC0415
    from weighbridge.conclusion import conclude  # noqa: PLC0415
    from weighbridge.results.analysis.study.study import FILE, StudyRun  # noqa: PLC0415
    from weighbridge.results.record.store import write_whole  # noqa: PLC0415 - as above
    from weighbridge.run import Doing, run  # noqa: PLC0415
    from weighbridge.surroundings import place  # noqa: PLC0415

    def begun(store: RunStore) -> None:
        told = StudyRun(study=chosen.study, scale=chosen.scale_name)
        write_whole(store.folder / FILE, told.model_dump_json(indent=1) + "\n")

    screen.print(f"{chosen.study.name}: {chosen.brief}", markup=False, highlight=False)
    doing = Doing(place(), screen, influx, own=own)
    derived, steps = run(
        chosen.plan, chosen.planned, doing, out=out, text=chosen.text, attest=attest, begun=begun
    )
    conclude(derived, screen, pictures=doing.pictures)
    return exit_code(steps, comparable=derived.comparable)


def print_studies(screen: Console) -> None:
    """Print the studies that ship: what each compares, after whom, and how long it takes."""
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415 - as above
    from rich.markup import escape  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    from weighbridge.study import ready  # noqa: PLC0415
    from weighbridge.suites.studies import loader  # noqa: PLC0415

    drawn = Table(box=SIMPLE_HEAD, header_style="bold", padding=(0, 1, 0, 0))
    for title in ("study", "what it compares", "scales", "variants", "steps", "at least"):
        drawn.add_column(
            title, justify="right" if title in ("variants", "steps", "at least") else "left"
        )
    for name in loader.shipped():
        one = ready(name)
        words = (
            name,
            one.study.about,
            " ".join(one.study.scales),
            str(len(one.planned)),
            str(one.plan.steps),
            one.least,
        )
        drawn.add_row(*map(escape, words))
    screen.print(drawn)
    about = (
        "Of the lab scale: warm-ups, windows and deployments. Writing what is then read comes "
        "on top of that."
    )
    screen.print(about, style="dim", highlight=False)


def print_plan(chosen: PreparedStudy, screen: Console) -> None:
    """Print what a study would do."""
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415 - as above
    from rich.markup import escape  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    study = chosen.study
    screen.print(
        f"{study.name}: {study.about}\nafter {study.source}", markup=False, highlight=False
    )
    for sentence in chosen.scale.about:
        screen.print(f"  {sentence}", style="dim", markup=False, highlight=False)
    drawn = Table(box=SIMPLE_HEAD, header_style="bold", padding=(0, 1, 0, 0))
    for title in ("variant", *study.factors, "layout"):
        drawn.add_column(title, overflow="fold")
    here = {one.layout.name for one in chosen.planned}
    for variant in study.variants:
        if variant.name in here:
            levels = (study.label(variant.factors[factor]) for factor in study.factors)
            drawn.add_row(*map(escape, (variant.name, *levels, variant.layout)))
    screen.print(drawn)
    if study.common:
        screen.print(
            f"and in all of them {study.common.removeprefix(':')}\n", markup=False, highlight=False
        )
    drawn = Table(box=SIMPLE_HEAD, header_style="bold", padding=(0, 1, 0, 0))
    for title in ("workload", "by", "workers", "window"):
        drawn.add_column(title)
    ways = {
        (one.api, one.driver, one.layer): one
        for passes in chosen.plan.passes.values()
        for one in passes
    }
    for way in ways.values():
        for workload in way.workloads:
            workers = " ".join(map(str, workload.workers))
            drawn.add_row(
                workload.name, f"{way.driver}, {way.api}", workers, f"{workload.runtime:g} s"
            )
    screen.print(drawn)
    screen.print(chosen.brief, markup=False, highlight=False)
