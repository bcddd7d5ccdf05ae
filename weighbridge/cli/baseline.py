"""`weighbridge baseline HARDWARE`: what the hosts of a hardware file can do, without a gateway.

Raises UsageError before anything is started; CommandFailed or TargetError after all is torn down.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weighbridge.cli import complete
from weighbridge.cli.options import shown, split

if TYPE_CHECKING:
    from rich.console import Console

    from weighbridge.results.analysis.baseline import Baseline


@click.command("baseline")
@click.argument("hardware", default="auto", shell_complete=complete.hardware)
@shown("--sizes", default="4KiB,64KB,1MB", metavar="A,B", help="Object sizes to test disks with.")
@shown(
    "--out",
    default="baselines",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder in which the baseline's folder is made.",
)
@click.option("--json", "as_json", is_flag=True, help="Print baseline.json instead of the table.")
def command(hardware: str, sizes: str, out: Path, as_json: bool) -> None:
    """Measure the hosts of HARDWARE (a file, the name of one that ships, or auto: made from this
    machine, the default), one by one and all at once.
    """
    import secrets
    import time
    from datetime import UTC, datetime

    from weighbridge import selection
    from weighbridge.conductor.facts import facts_of_machine
    from weighbridge.conductor.interruption import interruptible
    from weighbridge.environment import place, require
    from weighbridge.results.analysis.baseline import Baseline, HostFigure, baseline_csv
    from weighbridge.results.charts.baseline_chart import baseline_chart
    from weighbridge.results.record.writing import make_folder, write_atomically
    from weighbridge.results_output import draw
    from weighbridge.screen.terminal import console, print_line
    from weighbridge.topologies.attestation import tools_of
    from weighbridge.topologies.baseline import bare, measure, refuse

    sizes_bytes = sizes_of(sizes)
    hosts = selection.hardware_named(hardware)
    refuse(hosts)
    where = place()
    require(hosts, where)
    screen = console(stderr=as_json)

    def say(text: str) -> None:
        print_line(screen, text, "dim")

    say(f"{hosts.name}: {hosts.about}")
    started, now = time.monotonic(), datetime.now(UTC)
    machine = facts_of_machine(hosts)
    with interruptible(), bare(hosts, where, say) as running:
        figures = measure(running, hosts, sizes_bytes, say)
        facts = dict(running.facts())
        tools = tools_of(running, hosts)
    baseline = Baseline(
        hardware=hosts.name,
        about=hosts.about,
        measured_at=now.isoformat(timespec="seconds"),
        took_s=time.monotonic() - started,
        tools=tools,
        machine={**machine, **facts},
        figures=tuple(HostFigure(**dict(one)) for one in figures),
    )
    folder = out / f"{now:%Y%m%dT%H%M%SZ}-{hosts.name}-{secrets.token_hex(3)}"
    make_folder(folder)
    write_atomically(folder / "baseline.json", baseline.model_dump_json(indent=1) + "\n")
    write_atomically(folder / "baseline.csv", baseline_csv(baseline.figures))
    if as_json:
        click.echo(baseline.model_dump_json(indent=1))
    else:
        print_baseline(baseline, screen)
        print_line(screen, f"\nwritten to {folder}")
    draw([baseline_chart(baseline)], folder / "charts", partial(click.echo, err=True))


def sizes_of(text: str) -> tuple[int, ...]:
    """Sizes in bytes, each once. Raises UsageError."""
    from weighbridge.common.errors import UsageError
    from weighbridge.common.quantities import parse_bytes

    sizes: list[int] = []
    faults = []
    for word in split(text):
        try:
            size = parse_bytes(word)
        except ValueError as error:
            faults.append(str(error))
            continue
        if not isinstance(size, int) or size <= 0:
            faults.append(f"{word!r} is not an object size")
        else:
            sizes.append(size)
    if faults or not sizes:
        raise UsageError(
            "; ".join(faults) or "--sizes names no size", advice="Write --sizes 4KiB,64KB,1MB."
        )
    return tuple(dict.fromkeys(sizes))


def print_baseline(baseline: Baseline, screen: Console) -> None:
    """Print a table for each group, and what is unexpected."""
    from rich.markup import escape

    from weighbridge.results.analysis.baseline import TITLES, oddities
    from weighbridge.results.figures import UNKNOWN
    from weighbridge.screen.terminal import new_table, print_line

    numbers = ("promised", "found", "of it")
    for group, title in TITLES.items():
        figures = [one for one in baseline.figures if one.group == group]
        if not figures:
            continue
        table = new_table(
            *("host", "what", *numbers),
            right=numbers,
            title=title,
            title_justify="left",
            title_style="bold",
        )
        for one in figures:
            share = UNKNOWN if one.share is None else f"{100 * one.share:.0f} %"
            table.add_row(escape(one.host), escape(one.what), one.promise_shown, one.shown, share)
        screen.print(table)
    odd = oddities(baseline.figures)
    for sentence in odd:
        print_line(screen, f"• {sentence}", "yellow")
    if not odd:
        print_line(screen, "• every limit is reached, and equal hosts measured the same")
