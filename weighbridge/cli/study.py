from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from weighbridge.cli import complete
from weighbridge.cli.options import as_json, drivers_own, influx, named, out, shown, split, ui

if TYPE_CHECKING:
    from rich.console import Console

    from weighbridge.prepared_study import PreparedStudy
    from weighbridge.results.influx.server import InfluxServer
    from weighbridge.results.record.store import RunStore


@drivers_own
@click.command("study")
@click.argument("name", required=False, shell_complete=complete.studies)
@shown(
    "--scale",
    type=click.Choice(["lab", "full"]),
    default="lab",
    help="At the size of one machine, or with the study's own numbers.",
)
@click.option(
    "--hardware",
    metavar="FILE",
    shell_complete=complete.hardware,
    help="Hardware file, or the name of one that ships (default: the study's).",
)
@click.option(
    "--variants",
    metavar="A,B",
    callback=named,
    help="Replay only these, by their names in the study (default: all).",
)
@click.option(
    "--repeats",
    type=click.IntRange(1, 1000),
    help="Repeats of every step (default: the study's); a claim needs 5.",
)
@click.option(
    "--driver",
    metavar="A[,B]",
    callback=named,
    help="Load generator of gateways, or two that alternate (default: the study's).",
)
@click.option(
    "--despite",
    metavar="A,B",
    callback=named,
    help=(
        "Replay it although the hosts lack these needs of the study; the report says so. A "
        "refusal names them."
    ),
)
@shown(
    "--attest/--no-attest",
    default=False,
    help="Measure the hosts of each deployment first: about 20 s each.",
)
@influx
@ui
@out
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
@as_json
def command(
    name: str | None,
    scale: Literal["lab", "full"],
    hardware: str | None,
    variants: str | None,
    repeats: int | None,
    driver: str | None,
    despite: str | None,
    attest: bool,
    influx: InfluxServer | None,
    ui: bool,
    out: Path,
    listed: bool,
    dry_run: bool,
    as_json: bool,
    own: Mapping[str, object],
) -> int | None:
    """Replay a published study: its layouts and workloads; its tables and map of what changed, with
    its published results beside yours.

    NAME is a study that ships (see --list) or a study file.
    """
    from weighbridge.budget import spread_here
    from weighbridge.cli.compare import exit_code
    from weighbridge.environment import place
    from weighbridge.plan_outline import outline
    from weighbridge.prepared_study import prepare
    from weighbridge.results.analysis.study.study import FILE, StudyRun
    from weighbridge.results.record.writing import write_atomically
    from weighbridge.results_output import print_document, show_results
    from weighbridge.run import Doing, run
    from weighbridge.screen.terminal import console, print_line

    if listed and as_json:
        raise click.UsageError("--list prints a table; it has no --json")
    screen = console(stderr=as_json)
    if listed:
        print_studies(screen)
        return None
    if name is None:
        raise click.UsageError("the NAME of a study is missing; --list shows those that ship")
    study = prepare(
        name,
        scale,
        hardware=hardware,
        only=split(variants),
        repeats=repeats,
        driver=driver,
        despite=split(despite),
        ask=not dry_run,
    )
    if dry_run:
        print_plan(study, screen)
        if as_json:
            print_document(
                outline(study.plan, study.planned, spread_here(out, study.plan.hardware))
            )
        return None

    def begun(store: RunStore) -> None:
        record = StudyRun(study=study.study, scale=study.scale_name, lacking=study.lacking)
        write_atomically(store.folder / FILE, record.model_dump_json(indent=1) + "\n")

    print_line(screen, f"{study.study.name}: {study.brief}")
    doing = Doing(place(), screen, influx, ui=ui, own=own)
    ran = run(
        study.plan, study.planned, doing, out=out, text=study.text, attest=attest, begun=begun
    )
    return show_results(
        ran.derived, screen, exit_code(ran), pictures=doing.pictures, as_json=as_json
    )


def print_studies(screen: Console) -> None:
    """Print the studies that ship: what each compares, its source, and how long it takes."""
    from rich.markup import escape

    from weighbridge.prepared_study import prepare
    from weighbridge.screen.terminal import new_table, print_line
    from weighbridge.suites.studies import loader

    numbers = ("variants", "steps", "at least")
    table = new_table("study", "what it compares", "scales", *numbers, right=numbers)
    for name in loader.shipped():
        one = prepare(name)
        scales = " ".join(one.study.scales)
        counts = (str(len(one.planned)), str(one.plan.steps), one.least)
        table.add_row(*map(escape, (name, one.study.about, scales, *counts)))
    screen.print(table)
    print_line(
        screen,
        "At the lab scale: warm-ups, windows and deployments. Writing the objects to be read comes "
        "on top.",
        "dim",
    )


def print_plan(prepared: PreparedStudy, screen: Console) -> None:
    """Print what a study would do."""
    from rich.markup import escape

    from weighbridge.results.analysis.study.study import parameter_table
    from weighbridge.screen.terminal import new_table, print_line

    study = prepared.study
    print_line(screen, f"{study.name}: {study.about}\nafter {study.source}")
    for sentence in prepared.scale.about:
        print_line(screen, f"  {sentence}", "dim")
    table = new_table("variant", *study.factors, "layout")
    here = {one.layout.name for one in prepared.planned}
    for variant in study.variants:
        if variant.name in here:
            levels = (study.label(variant.factors[factor]) for factor in study.factors)
            table.add_row(*map(escape, (variant.name, *levels, variant.layout)))
    screen.print(table)
    for lacking in prepared.lacking:
        print_line(screen, f"  accepted: {lacking}", "dim")
    shown_of = parameter_table(study.scales[prepared.scale_name], prepared.lacking)
    if shown_of is not None:
        table = new_table(*shown_of.head)
        for line in shown_of.shown:
            table.add_row(*map(escape, line))
        print_line(screen, f"\n{shown_of.title}")
        screen.print(table)
    if study.common:
        print_line(screen, f"and in all of them {study.common.removeprefix(':')}\n")
    table = new_table("workload", "by", "workers", "window")
    ways = {
        (one.api, one.driver, one.layer): one
        for passes in prepared.plan.passes.values()
        for one in passes
    }
    for way in ways.values():
        for workload in way.workloads:
            workers = " ".join(map(str, workload.workers))
            table.add_row(
                workload.name, f"{way.driver}, {way.api}", workers, f"{workload.runtime:g} s"
            )
    screen.print(table)
    print_line(screen, prepared.brief)
