from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from weighbridge.cli import complete
from weighbridge.cli.options import as_json, hardware, introduce, named, split
from weighbridge.common.errors import EXIT_FINE, EXIT_USAGE, UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from weighbridge.topologies.hardware import Hardware
    from weighbridge.topologies.lab.requirements import HostRequirement


@click.command("doctor")
@hardware
@click.option(
    "--layouts",
    shell_complete=complete.layouts,
    metavar="A,B",
    callback=named,
    help="Layouts to check real hosts for (default: those that fit).",
)
@as_json
def command(hardware: str | None, layouts: str | None, *, as_json: bool) -> int:
    """Report what this machine, and real hosts, lack for the HARDWARE, and how to get it.

    Exits with 2 if anything is missing.
    """
    from weighbridge import selection

    hosts = selection.hardware_named(hardware)
    if hosts.of.by_ssh:
        return check_real_hosts(hosts, split(layouts), as_json=as_json)
    if layouts:
        raise UsageError(
            f"--layouts is for real hosts, and hardware {hosts.name!r} has none "
            f"(kind: {hosts.kind})"
        )
    return check_this_machine(hosts, as_json=as_json)


def check_this_machine(hosts: Hardware, *, as_json: bool) -> int:
    """Print what this machine has and lacks; returns the exit code."""
    from weighbridge.environment import optional_tools, place, requirements
    from weighbridge.screen.terminal import console

    screen = console(stderr=as_json)
    introduce(hosts, screen)
    found, optional = requirements(hosts, place()), optional_tools()
    _print(screen, found, optional)
    lacking = sum(not one.found for one in found)
    screen.print(
        f"{lacking} of {len(found)} missing" if lacking else f"this machine can run {hosts.name}",
        highlight=False,
    )
    code = EXIT_USAGE if lacking else EXIT_FINE
    if as_json:
        _print_document(hosts, code, [("", found, False), ("", optional, True)])
    return code


def check_real_hosts(hosts: Hardware, layouts: tuple[str, ...], *, as_json: bool) -> int:
    """What this machine and real hosts have and lack; the exit code. Raises UsageError."""
    from weighbridge import selection
    from weighbridge.conductor.interruption import interruptible
    from weighbridge.screen.terminal import console, print_line
    from weighbridge.topologies.ssh import requirements

    screen = console(stderr=as_json)
    planned = (
        [selection.layout_named(name, hosts) for name in layouts]
        if layouts
        else list(selection.fitting(hosts))
    )
    with interruptible():
        here = requirements.here(hosts)
        there = requirements.look(hosts, planned)
    screen.print("[bold]this machine[/]")
    _print(screen, here)
    for one in there:
        client = " (client)" if one.host in hosts.clients else ""
        screen.print(
            f"\n[bold]{one.host}[/] {hosts.hosts[one.host].address}{client}", highlight=False
        )
        _print(screen, one.requirements)
    everything = [*here, *(requirement for one in there for requirement in one.requirements)]
    lacking = sum(not requirement.found for requirement in everything)
    names = ", ".join(one.layout.name for one in planned) or "no layout that ships"
    verdict = f"{lacking} of {len(everything)} missing" if lacking else f"{hosts.name} is ready"
    print_line(screen, f"\n{verdict}; checked for {names}")
    advice = tuple(text for one in planned for text in one.advice)
    for text in advice:
        print_line(screen, text)
    code = EXIT_USAGE if lacking else EXIT_FINE
    if as_json:
        seen = [(one.host, one.requirements, False) for one in there]
        _print_document(hosts, code, [("", here, False), *seen], advice)
    return code


def _print_document(
    hosts: Hardware,
    code: int,
    seen: Iterable[tuple[str, Iterable[HostRequirement], bool]],
    advice: tuple[str, ...] = (),
) -> None:
    from weighbridge.documents import DoctorDocument, RequirementSeen
    from weighbridge.results_output import print_document

    requirements = tuple(
        RequirementSeen(
            host=host,
            name=one.name,
            found=one.found,
            optional=optional,
            why=one.why,
            remedy=one.remedy,
        )
        for host, some, optional in seen
        for one in some
    )
    print_document(
        DoctorDocument(
            exit_code=code, hardware=hosts.name, requirements=requirements, advice=advice
        )
    )


def _print(
    screen: Console, required: Iterable[HostRequirement], optional: Iterable[HostRequirement] = ()
) -> None:
    from rich.markup import escape
    from rich.table import Table

    table = Table("", "what", "why", "how to get it", box=None, header_style="bold")
    lines = [(one, "", "[red]✘[/]") for one in required]
    lines += [(one, " (optional)", "[yellow]·[/]") for one in optional]
    for one, remark, missing in lines:
        mark, remedy = ("[green]✔[/]", "") if one.found else (missing, one.remedy)
        table.add_row(mark, f"{escape(one.name)}{remark}", escape(one.why), escape(remedy))
    screen.print(table)
