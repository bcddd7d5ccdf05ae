"""`weighbridge capabilities LAYOUT...`: what works, what is refused, and what is wrong though
accepted.

Raises UsageError before anything is started. A layout that fails is named, the others are asked,
and the exit code is 3.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from weighbridge.cli import complete
from weighbridge.cli.options import hardware, introduce, listed

if TYPE_CHECKING:
    from rich.console import Console

    from weighbridge.gateways.capabilities.capability import Capability
    from weighbridge.gateways.capabilities.matrix import CapabilityMatrix


@click.command("capabilities")
@click.argument("layouts", nargs=-1, metavar="LAYOUT...", shell_complete=complete.layouts)
@hardware
@click.option(
    "--api",
    callback=listed,
    shell_complete=complete.words("s3", "swift"),
    metavar="A,B",
    help="Try only these APIs: s3, swift.",
)
@click.option(
    "--only",
    callback=listed,
    metavar="A,B",
    help="Try only these, by key or group.",
)
@click.option(
    "--dangerous",
    is_flag=True,
    help="On a gateway that already runs, also try what is known to end some gateways.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write capabilities.json, capabilities.csv and the logs to this folder.",
)
@click.option("--json", "as_json", is_flag=True, help="Print capabilities.json, not the table.")
@click.option("--list", "listing", is_flag=True, help="List what is tried; start nothing.")
def command(
    layouts: tuple[str, ...],
    hardware: str | None,
    api: tuple[str, ...] | None,
    only: tuple[str, ...] | None,
    dangerous: bool,
    out: Path | None,
    as_json: bool,
    listing: bool,
) -> int:
    """Try once on each LAYOUT (as `up` names them) all that S3 and Swift clients ask of stores
    today: what works, what is refused, and what is accepted but wrong.
    """
    import secrets
    from datetime import UTC, datetime
    from importlib.metadata import version

    from weighbridge import selection
    from weighbridge.common.errors import EXIT_FINE, EXIT_INVALID, EXIT_TARGET, UsageError
    from weighbridge.common.safe_files import remove_tree
    from weighbridge.conductor.capable import ask_layout
    from weighbridge.conductor.interruption import interruptible
    from weighbridge.environment import place, require
    from weighbridge.gateways.capabilities.matrix import CapabilityMatrix, matrix_csv
    from weighbridge.results.record.writing import write_atomically
    from weighbridge.screen.terminal import console, print_line

    chosen = _chosen(api, only)
    screen = console(stderr=as_json)
    if listing:
        print_list(chosen, screen)
        return EXIT_FINE
    if not layouts:
        raise UsageError(
            "name at least one layout", advice="`weighbridge topologies` lists those that ship."
        )
    hosts = selection.hardware_named(hardware)
    planned = tuple(selection.layout_named(name, hosts) for name in dict.fromkeys(layouts))
    where = place()
    require(hosts, where)

    def say(text: str) -> None:
        print_line(screen, text, "dim")

    introduce(hosts, screen)
    with interruptible():
        hosts, planned = selection.on_sized_hosts(planned, hosts)
        selection.check(planned, hosts, where, say)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    own = where.home / "logs" / f"capabilities-{secrets.token_hex(3)}"
    logs = own if out is None else out / "logs"
    answers = []
    try:
        for one in planned:
            asked = tuple(
                capability
                for capability in chosen
                if dangerous or not (one.gateway.already_runs and capability.dangerous)
            )
            with interruptible():
                answers.append(ask_layout(one, hosts, where, asked, say, logs=logs))
            say(f"{one.layout.name}: {answers[-1].summary}")
    finally:
        if out is None and answers and not any(one.died for one in answers):
            remove_tree(logs)
    matrix = CapabilityMatrix(
        asked_at=datetime.now(UTC).isoformat(timespec="seconds"),
        hardware=hosts.name,
        weighbridge_version=version("weighbridge"),
        layouts=tuple(answers),
    )
    text = matrix.model_dump_json(indent=1) + "\n"
    if out is not None:
        write_atomically(out / "capabilities.json", text)
        write_atomically(out / "capabilities.csv", matrix_csv(matrix, chosen))
    if as_json:
        click.echo(text, nl=False)
    else:
        print_matrix(matrix, chosen, screen)
    if any(one.died or one.left for one in answers):
        return EXIT_TARGET
    known = any(answer.outcome != "unknown" for one in answers for answer in one.answers.values())
    return EXIT_FINE if known else EXIT_INVALID


def _chosen(apis: tuple[str, ...] | None, only: tuple[str, ...] | None) -> tuple[Capability, ...]:
    """The capabilities to ask, dangerous ones last. Raises UsageError for unknown names."""
    from weighbridge.common.document import did_you_mean
    from weighbridge.common.errors import UsageError
    from weighbridge.gateways.capabilities.asking import in_order
    from weighbridge.gateways.capabilities.registry import CAPABILITIES

    every = in_order(CAPABILITIES)
    known: dict[str, set[str]] = {
        "--api": {one.api for one in every},
        "--only": {name for one in every for name in (one.key, one.group)},
    }
    faults = [
        f"{option}: there is no {name!r}{did_you_mean(name, sorted(known[option]))}"
        for option, names in (("--api", apis), ("--only", only))
        for name in names or ()
        if name not in known[option]
    ]
    if faults:
        raise UsageError("; ".join(faults), advice="`weighbridge capabilities --list` lists all.")
    return tuple(
        one
        for one in every
        if (apis is None or one.api in apis)
        and (only is None or one.key in only or one.group in only)
    )


def print_list(capabilities: tuple[Capability, ...], screen: Console) -> None:
    """Print what is asked."""
    from rich.markup import escape

    from weighbridge.screen.terminal import new_table

    table = new_table("key", "group", "capability", "asks")
    for one in capabilities:
        table.add_row(one.key, one.group, escape(one.title), escape(one.asks))
    screen.print(table)


def print_matrix(
    matrix: CapabilityMatrix, capabilities: tuple[Capability, ...], screen: Console
) -> None:
    """Print the table, its footnotes, what has died and what is left."""
    from rich.markup import escape

    from weighbridge.gateways.capabilities.matrix import LEGEND, cell, footnotes
    from weighbridge.screen.terminal import new_table, print_line

    names = [one.layout for one in matrix.layouts]
    for api in dict.fromkeys(one.api for one in capabilities):
        table = new_table("group", "capability", *names)
        before = ""
        for one in capabilities:
            if one.api == api:
                cells = [cell(layout.answers.get(one.key)) for layout in matrix.layouts]
                group = one.group if one.group != before else ""
                before = one.group
                table.add_row(group, escape(one.title), *map(escape, cells))
        print_line(screen, {"s3": "S3", "swift": "Swift API"}[api], "bold")
        screen.print(table)
    print_line(screen, LEGEND, "dim")
    for note in footnotes(matrix, capabilities):
        print_line(screen, note)
    for layout in matrix.layouts:
        if layout.died:
            print_line(screen, f"{layout.layout}: {layout.died}", "red")
        for text in layout.left:
            print_line(screen, f"{layout.layout}: left: {text}", "yellow")
