"""`weighbridge baseline HARDWARE`: what the hosts of a hardware file can do, before any gateway
stands on them.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weighbridge.cli.options import shown

if TYPE_CHECKING:
    from rich.console import Console

    from weighbridge.results.analysis.baseline import Baseline


@click.command("baseline")
@click.argument("hardware", default="lab-small")
@shown(
    "--sizes", default="4KiB,64KB,1MB", metavar="A,B", help="Object sizes that disks are asked at."
)
@shown(
    "--out",
    default="baselines",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where a folder is made for it.",
)
@click.option("--json", "as_json", is_flag=True, help="Print baseline.json instead of the table.")
def command(hardware: str, sizes: str, out: Path, as_json: bool) -> None:
    """Measure what the hosts of HARDWARE (a file, or the name of one that ships) can do: alone and
    at once.
    """
    baseline(hardware, sizes, out, as_json=as_json)


def baseline(hardware: str, sizes: str, out: Path, *, as_json: bool = False) -> None:
    """Measure and print.

    Raises UsageError before anything is started; CommandFailed or TargetError, nothing then being
    left.
    """
    # The heavy rooms are imported here, so that `weighbridge --help` need not wait for them.
    import secrets  # noqa: PLC0415
    import time  # noqa: PLC0415
    from datetime import UTC, datetime  # noqa: PLC0415

    from weighbridge import selection  # noqa: PLC0415
    from weighbridge.conclusion import draw  # noqa: PLC0415
    from weighbridge.conductor.facts import facts_of_machine  # noqa: PLC0415
    from weighbridge.conductor.interruption import interruptible  # noqa: PLC0415
    from weighbridge.means import require  # noqa: PLC0415
    from weighbridge.results.analysis.baseline import Baseline, HostFigure, baseline_csv  # noqa: PLC0415
    from weighbridge.results.charts.baseline_chart import baseline_chart  # noqa: PLC0415
    from weighbridge.results.record.store import make_folder, write_whole  # noqa: PLC0415
    from weighbridge.screen.terminal import console  # noqa: PLC0415
    from weighbridge.surroundings import place  # noqa: PLC0415
    from weighbridge.topologies.attestation import tools_of  # noqa: PLC0415
    from weighbridge.topologies.baseline import bare, measure, refuse  # noqa: PLC0415

    asked = sizes_of(sizes)
    hosts = selection.hardware_named(hardware)
    refuse(hosts)
    where = place()
    require(hosts, where)
    screen = console()

    def say(text: str) -> None:
        if not as_json:
            screen.print(text, markup=False, highlight=False, style="dim")

    started, now = time.monotonic(), datetime.now(UTC)
    machine = facts_of_machine(hosts)
    with interruptible(), bare(hosts, where, say) as raised:
        found = measure(raised, hosts, asked, say)
        facts = dict(raised.facts())
        tools = tools_of(raised, hosts)
    made = Baseline(
        hardware=hosts.name,
        about=hosts.about,
        measured_at=now.isoformat(timespec="seconds"),
        took_s=time.monotonic() - started,
        tools=tools,
        machine={**machine, **facts},
        figures=tuple(HostFigure(**dict(one)) for one in found),
    )
    folder = out / f"{now:%Y%m%dT%H%M%SZ}-{hosts.name}-{secrets.token_hex(3)}"
    make_folder(folder)
    write_whole(folder / "baseline.json", made.model_dump_json(indent=1) + "\n")
    write_whole(folder / "baseline.csv", baseline_csv(made.figures))
    if as_json:
        click.echo(made.model_dump_json(indent=1))
    else:
        show(made, screen)
        screen.print(f"\nwritten to {folder}", markup=False, highlight=False, soft_wrap=True)
    draw([baseline_chart(made)], folder / "charts", partial(click.echo, err=True))


def sizes_of(text: str) -> tuple[int, ...]:
    """Sizes in bytes, each once. Raises UsageError for what is none."""
    from weighbridge.common.errors import UsageError  # noqa: PLC0415 - as above
    from weighbridge.common.quantities import parse_bytes  # noqa: PLC0415

    sizes: list[int] = []
    faults = []
    for word in filter(None, (one.strip() for one in text.split(","))):
        try:
            size = parse_bytes(word)
        except ValueError as error:
            faults.append(str(error))
            continue
        if not isinstance(size, int) or size <= 0:
            faults.append(f"{word!r} is no size of an object")
        else:
            sizes.append(size)
    if faults:
        raise UsageError("; ".join(faults), advice="Write --sizes 4KiB,64KB,1MB.")
    if not sizes:
        raise UsageError("--sizes names no size", advice="Write --sizes 4KiB,64KB,1MB.")
    return tuple(dict.fromkeys(sizes))


def show(baseline: Baseline, screen: Console) -> None:
    """Print a table a group, and what is odd."""
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415
    from rich.markup import escape  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    from weighbridge.results.analysis.baseline import TITLES, oddities  # noqa: PLC0415
    from weighbridge.results.figures import UNKNOWN  # noqa: PLC0415

    for group, title in TITLES.items():
        own = [one for one in baseline.figures if one.group == group]
        if not own:
            continue
        drawn = Table(
            title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False
        )
        for name in ("host", "what"):
            drawn.add_column(name)
        for name in ("promised", "found", "of it"):
            drawn.add_column(name, justify="right")
        for one in own:
            share = UNKNOWN if one.share is None else f"{100 * one.share:.0f} %"
            drawn.add_row(escape(one.host), escape(one.what), one.promise_shown, one.shown, share)
        screen.print(drawn)
    for sentence in oddities(baseline.figures):
        screen.print(f"• {sentence}", markup=False, highlight=False, style="yellow", soft_wrap=True)
    if not oddities(baseline.figures):
        screen.print(
            "• nothing is odd: promises are kept, and what ought to be alike is",
            markup=False,
            highlight=False,
        )
