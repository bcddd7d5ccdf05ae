"""Verbs that try stores: what they support, what survives a power cut; and a store in memory.

They raise UsageError before anything is started. A layout that fails is named, the others are
tried, and the exit code is 3. That of `durability` is 1 if a layout lost anything that it had
acknowledged, 4 if it cannot be told of any.
"""

from __future__ import annotations

import json
import secrets
import signal
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weighbridge.cli import complete
from weighbridge.cli.options import (
    OUTPUT,
    api_option,
    as_json,
    checked,
    dry_run,
    hardware,
    introduce,
    listed,
    shown,
    time_option,
)
from weighbridge.common.errors import (
    EXIT_DIFFERENCE,
    EXIT_FINE,
    EXIT_INVALID,
    EXIT_TARGET,
    DriverError,
    TargetError,
    UsageError,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from weighbridge.common.endpoint import ObjectApi
    from weighbridge.gateways.capabilities.capability import Capability, CapabilityMatrix
    from weighbridge.suites import Durability
    from weighbridge.topologies.hardware import Hardware
    from weighbridge.topologies.loader import Planned


@click.command("capabilities")
@click.argument("layouts", nargs=-1, metavar="LAYOUT...", shell_complete=complete.layouts)
@hardware
@api_option("Try only these APIs: s3, swift.")
@click.option("--only", callback=listed, metavar="A,B", help="Try only these, by key or group.")
@click.option(
    "--dangerous",
    is_flag=True,
    help="On a gateway that already runs, also try what is known to end some gateways.",
)
@click.option(
    "--out",
    type=OUTPUT,
    help="Write capabilities.json, capabilities.csv and the logs to this folder.",
)
@dry_run("Print what would be started and asked, and about how long it takes; start nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print capabilities.json, not the table.")
@click.option("--list", "listing", is_flag=True, help="List what is tried; start nothing.")
def capabilities_verb(
    layouts: tuple[str, ...],
    hardware: str | None,
    api: tuple[str, ...] | None,
    only: tuple[str, ...] | None,
    dangerous: bool,
    out: Path | None,
    dry_run: bool,
    as_json: bool,
    listing: bool,
) -> int:
    """Try once on each LAYOUT (as `up` names them) all that S3 and Swift clients ask of stores
    today: what works, what is refused, and what is accepted but wrong.
    """
    from weighbridge import selection
    from weighbridge.common.safe_files import remove_tree
    from weighbridge.conductor.capable import ask_layout
    from weighbridge.conductor.interruption import interruptible
    from weighbridge.gateways.capabilities.capability import CapabilityMatrix, matrix_csv
    from weighbridge.results.run.reading import write_atomically
    from weighbridge.results.show.terminal import console, print_line, print_table

    _refuse_json(as_json=as_json, dry_run=dry_run, listing=listing)
    chosen = _chosen(api, only)
    screen = console(stderr=as_json)
    if listing:
        rows = [(one.key, one.group, one.title, one.asks) for one in chosen]
        print_table(screen, ("key", "group", "capability", "asks"), rows)
        return EXIT_FINE
    if not layouts:
        raise UsageError(
            "name at least one layout", advice="`weighbridge topologies` lists those that ship."
        )
    hosts = selection.hardware_named(hardware)
    named = [selection.layout_named(name, hosts) for name in dict.fromkeys(layouts)]
    if dry_run:
        asked = [_asked(one, chosen, dangerous=dangerous) for one in named]
        _print_asking(named, hosts, asked, screen)
        return EXIT_FINE
    say = partial(print_line, screen, style="dim")
    hosts, planned, where = checked(named, hosts, screen, say)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    own = where.home / "logs" / f"capabilities-{secrets.token_hex(3)}"
    logs = own if out is None else out / "logs"
    answers = []
    try:
        for one in planned:
            mine = _asked(one, chosen, dangerous=dangerous)
            with interruptible():
                answers.append(ask_layout(one, hosts, where, mine, say, logs=logs))
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
    from weighbridge.gateways.capabilities.asking import CAPABILITIES, in_order

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


def _refuse_json(*, as_json: bool, dry_run: bool, listing: bool = False) -> None:
    if as_json and (dry_run or listing):
        option = "--list" if listing else "--dry-run"
        raise UsageError(f"{option} prints a table; it has no --json")


def _asked(
    planned: Planned, chosen: Sequence[Capability], *, dangerous: bool
) -> tuple[Capability, ...]:
    if dangerous or not planned.gateway.already_runs:
        return tuple(chosen)
    return tuple(one for one in chosen if not one.dangerous)


def _print_asking(
    planned: Sequence[Planned],
    hosts: Hardware,
    asked: Sequence[Sequence[Capability]],
    screen: Console,
) -> None:
    """Print what would be `asked` of each layout."""
    from weighbridge.conductor.time_estimate import ASKING_S
    from weighbridge.plan_outline import print_trial
    from weighbridge.results.numbers import counted

    introduce(hosts, screen)
    trials = []
    for layout, mine in zip(planned, asked, strict=True):
        apis = layout.gateway.apis()
        count = sum(one.api in apis for one in mine)
        words = f"{layout.layout.name}: {counted(count, 'question')} over {' and '.join(apis)}"
        trials.append((words, count * ASKING_S))
    print_trial(planned, hosts, screen, trials)


def print_matrix(
    matrix: CapabilityMatrix, capabilities: tuple[Capability, ...], screen: Console
) -> None:
    """Print the table, its footnotes, what has died and what is left."""
    from weighbridge.gateways.capabilities.capability import LEGEND, cell, footnotes
    from weighbridge.results.show.terminal import print_line, print_table

    names = [one.layout for one in matrix.layouts]
    for api in dict.fromkeys(one.api for one in capabilities):
        rows = []
        before = ""
        for one in capabilities:
            if one.api == api:
                cells = [cell(layout.answers.get(one.key)) for layout in matrix.layouts]
                group = one.group if one.group != before else ""
                before = one.group
                rows.append((group, one.title, *cells))
        print_line(screen, {"s3": "S3", "swift": "Swift API"}[api], "bold")
        print_table(screen, ("group", "capability", *names), rows)
    print_line(screen, LEGEND, "dim")
    for note in footnotes(matrix, capabilities):
        print_line(screen, note)
    for layout in matrix.layouts:
        if layout.died:
            print_line(screen, f"{layout.layout}: {layout.died}", "red")
        for text in layout.left:
            print_line(screen, f"{layout.layout}: left: {text}", "yellow")


@click.command("durability")
@click.argument(
    "layouts", nargs=-1, required=True, metavar="LAYOUT...", shell_complete=complete.layouts
)
@hardware
@shown("--cuts", type=click.IntRange(1, 1000), default=20, help="Power cuts, all from one load.")
@time_option("--load", "How long to write (default: 30s).")
@shown("--workers", type=click.IntRange(1, 256), default=8, help="Workers that write.")
@api_option("Write over these APIs: s3, swift.")
@click.option(
    "--control/--no-control",
    default=True,
    help="First run a control on disks that ignore flushes: it must lose objects.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**63 - 1),
    default=2014,
    help="Seed of the moments, the operations and the blocks that are kept.",
)
@click.option(
    "--out",
    type=OUTPUT,
    required=True,
    help=(
        "Folder for durability.jsonl and logs; an incomplete one with the same settings is "
        "completed."
    ),
)
@dry_run("Print what would be started and cut, and about how long it takes; start nothing.")
@as_json
def durability_verb(
    layouts: tuple[str, ...],
    hardware: str | None,
    cuts: int,
    load: float | None,
    workers: int,
    api: tuple[str, ...] | None,
    control: bool,
    seed: int,
    out: Path,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Write to each LAYOUT, cut the power of all its hosts at one instant, start it again on what
    its disks have, and read every object that it had acknowledged.
    """
    from weighbridge import selection
    from weighbridge.conductor.durability import (
        DurabilityOrder,
        DurabilityPass,
        missing,
        refuse_unfit,
    )
    from weighbridge.conductor.interruption import interruptible
    from weighbridge.conductor.plan import refuse_same_names
    from weighbridge.documents import DurabilityDocument
    from weighbridge.results.features.durability import durability_of, durability_section
    from weighbridge.results.outcome import print_section
    from weighbridge.results.run.durability import read_cuts
    from weighbridge.results.run.store import lock_run_folder
    from weighbridge.results.show.terminal import console, print_line
    from weighbridge.results_output import print_document
    from weighbridge.run import alone
    from weighbridge.suites import Durability

    _refuse_json(as_json=as_json, dry_run=dry_run)
    screen = console(stderr=as_json)
    hosts = selection.hardware_named(hardware)
    named = [selection.layout_named(name, hosts) for name in dict.fromkeys(layouts)]
    refuse_same_names(named)
    wanted = Durability(
        cuts=cuts, load=load or 30.0, workers=workers, control=control, api=chosen(api)
    )
    refuse_unfit(wanted, named, hosts)
    if dry_run:
        _print_cutting(named, hosts, wanted, out, screen)
        return EXIT_FINE
    say = partial(print_line, screen, style="dim")
    hosts, sized, where = checked(named, hosts, screen, say)
    planned = {one.layout.name: one for one in sized}
    (out / "logs").mkdir(parents=True, exist_ok=True)
    failed: list[str] = []
    order = DurabilityOrder(
        wanted=wanted,
        seed=seed,
        hardware=hosts.name,
        layouts={name: one.layout for name, one in planned.items()},
    )
    with interruptible(), lock_run_folder(out), alone(hosts, where) as register:
        register(str(out))
        order.record(out)
        for name, is_control in missing(out, planned, wanted):
            one = DurabilityPass(
                planned[name],
                hosts,
                where,
                say,
                wanted=wanted,
                seed=seed,
                folder=out,
                control=is_control,
            )
            try:
                one.run()
            except (DriverError, TargetError) as error:
                failed.append(f"{name}: {error}")
                print_line(screen, failed[-1], "red")
    found = durability_of(read_cuts(out))
    if failed:
        code = EXIT_TARGET
    elif any(one.judgement == "lost" for one in found):
        code = EXIT_DIFFERENCE
    else:
        code = EXIT_FINE if any(one.judgement == "kept" for one in found) else EXIT_INVALID
    if as_json:
        print_document(DurabilityDocument(exit_code=code, layouts=found, failed=tuple(failed)))
    else:
        print_section(durability_section(found), screen)
    return code


def _print_cutting(
    planned: Sequence[Planned], hosts: Hardware, wanted: Durability, out: Path, screen: Console
) -> None:
    """Print which power cuts would be made of layouts: those that a folder lacks."""
    from weighbridge.conductor.durability import cuts_of, missing
    from weighbridge.conductor.time_estimate import CUT_S
    from weighbridge.plan_outline import print_trial
    from weighbridge.results.numbers import counted

    introduce(hosts, screen)
    trials = []
    for name, is_control in missing(out, [one.layout.name for one in planned], wanted):
        cuts, load_s = cuts_of(wanted, control=is_control)
        what = f"{name}, control" if is_control else name
        load = f"{counted(wanted.workers, 'worker')} write for {load_s:g} s"
        words = f"{what}: {load}, {counted(cuts, 'power cut')}"
        trials.append((words, load_s + cuts * CUT_S))
    print_trial(planned, hosts, screen, trials)


def chosen(given: tuple[str, ...] | None) -> tuple[ObjectApi, ...] | None:
    """The APIs of these names; None: all. Raises UsageError."""
    from typing import get_args

    from weighbridge.common.endpoint import ObjectApi

    known: tuple[ObjectApi, ...] = get_args(ObjectApi)
    unknown = sorted(set(given or ()) - set(known))
    if unknown:
        raise UsageError(
            f"there is no API {', '.join(unknown)}", advice=f"APIs are {', '.join(known)}."
        )
    return None if given is None else tuple(one for one in known if one in given)


_MS = click.FloatRange(0, 600_000)
_SHARE = click.FloatRange(0, 1)
_SECONDS = click.FloatRange(0)


@click.command("null-target")
@shown("--host", default="127.0.0.1", help="Address to listen on.")
@shown(
    "--port",
    default=8080,
    type=click.IntRange(0, 65535),
    help="Port to listen on; 0: any free one.",
)
@shown("--threads", default=1, type=click.IntRange(1, 64), help="Server threads.")
@shown("--delay-ms", default=0.0, type=_MS, help="Wait before each answer, in ms.")
@shown(
    "--delay-spread",
    default=0.0,
    type=_SHARE,
    help="Vary each wait at random by up to this share below and above.",
)
@shown("--fail-share", default=0.0, type=_SHARE, help="Share of requests answered with an error.")
@shown("--fail-status", default=503, type=click.IntRange(400, 599), help="Status of those errors.")
@shown(
    "--stall-after",
    "stall_after_s",
    type=_SECONDS,
    help="Stall once, this many seconds after the first request.",
)
@shown("--stall", "stall_s", default=1.0, type=_SECONDS, help="Length of that stall, in seconds.")
@shown(
    "--seed",
    default=2014,
    type=click.IntRange(0),
    help="Seed of errors, random waits and contents.",
)
@shown("--user", default="null:user", help="S3 access key and Swift user.")
@shown("--key", default="nullkey", envvar="WEIGHBRIDGE_NULL_KEY", help="S3 secret and Swift key.")
def null_target_verb(**options: str | float | None) -> None:
    """Serve the S3 and Swift APIs from memory without storing bodies, until interrupted."""
    from weighbridge.drivers.engine._native import null_target

    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # as nohup does
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # no handler runs while Rust waits for others
    try:
        null_target(json.dumps(options))
    except OSError as error:
        raise UsageError(str(error), advice="Name another with --host and --port.") from None
