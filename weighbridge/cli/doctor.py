"""`weighbridge doctor`: what this machine, or real hosts, have and lack."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from weighbridge.cli.options import hardware, named
from weighbridge.common.errors import EXIT_FINE, EXIT_USAGE

if TYPE_CHECKING:
    from rich.console import Console

    from weighbridge.topologies.hardware import Hardware
    from weighbridge.topologies.lab.means import Mean


@click.command("doctor")
@hardware
@click.option(
    "--layouts",
    metavar="A,B",
    callback=named,
    help="Layouts that real hosts are looked at for (default: those that fit).",
)
@click.option(
    "--install",
    is_flag=True,
    help="Have real hosts install the packages that they lack, without starting any of it.",
)
def command(hardware: str | None, layouts: str | None, *, install: bool) -> int:
    """Say what is missing on this machine for hosts of the HARDWARE, and on real hosts, and how to
    get it.

    Exit code 2 when anything is.
    """
    from weighbridge import selection  # noqa: PLC0415
    from weighbridge.common.errors import UsageError  # noqa: PLC0415 - heavy rooms are imported by what needs them

    hosts = selection.hardware_named(hardware)
    if hosts.of.by_ssh:
        return look_at_real(
            hosts,
            tuple(filter(None, (word.strip() for word in (layouts or "").split(",")))),
            install=install,
        )
    if install or layouts:
        raise UsageError(
            f"--install and --layouts are about real hosts, and hardware {hosts.name!r} has none "
            f"(kind: {hosts.kind})"
        )
    return look_here(hosts)


def look_here(hosts: Hardware) -> int:
    """Print what this machine has and lacks; returns the exit code."""
    from weighbridge.means import means_for, welcome  # noqa: PLC0415
    from weighbridge.screen.terminal import console  # noqa: PLC0415
    from weighbridge.surroundings import place  # noqa: PLC0415

    screen = console()
    found = means_for(hosts, place())
    _draw(screen, found, welcome())
    lacking = sum(not mean.found for mean in found)
    screen.print(
        f"{lacking} of {len(found)} missing" if lacking else f"this machine can raise {hosts.name}",
        highlight=False,
    )
    return EXIT_USAGE if lacking else EXIT_FINE


def look_at_real(hosts: Hardware, layouts: tuple[str, ...], *, install: bool) -> int:
    """Print what this machine and the real hosts have and lack, installed first if so asked;
    returns the exit code.

    Raises UsageError for a layout that there is not, TargetError when something could not be
    installed.
    """
    from weighbridge import selection  # noqa: PLC0415
    from weighbridge.conductor.interruption import interruptible  # noqa: PLC0415
    from weighbridge.screen.terminal import console  # noqa: PLC0415
    from weighbridge.topologies.ssh import means  # noqa: PLC0415

    screen = console()
    planned = (
        [selection.layout_named(name, hosts) for name in layouts]
        if layouts
        else list(selection.fitting(hosts))
    )
    with interruptible():
        here = means.here(hosts)
        there = means.look(hosts, planned)
        if install and any(one.packages for one in there):
            means.install(
                hosts,
                there,
                lambda text: screen.print(text, markup=False, highlight=False, soft_wrap=True),
            )
            there = means.look(hosts, planned)
    screen.print("[bold]this machine[/]")
    _draw(screen, here)
    for one in there:
        client = " (client)" if one.host in hosts.clients else ""
        screen.print(
            f"\n[bold]{one.host}[/] {hosts.hosts[one.host].address}{client}", highlight=False
        )
        _draw(screen, one.means)
    everything = [*here, *(mean for one in there for mean in one.means)]
    lacking = sum(not mean.found for mean in everything)
    names = ", ".join(one.layout.name for one in planned) or "no layout that ships"
    said = f"{lacking} of {len(everything)} missing" if lacking else f"{hosts.name} is ready"
    screen.print(f"\n{said}; looked at for {names}", highlight=False, markup=False)
    return EXIT_USAGE if lacking else EXIT_FINE


def _draw(screen: Console, found: Iterable[Mean], welcome: Iterable[Mean] = ()) -> None:
    from rich.markup import escape  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    drawn = Table(box=None, header_style="bold")
    for title in ("", "what", "why", "how to get it"):
        drawn.add_column(title)
    for mean in found:
        mark = "[green]✔[/]" if mean.found else "[red]✘[/]"
        drawn.add_row(
            mark, escape(mean.name), escape(mean.why), "" if mean.found else escape(mean.remedy)
        )
    for mean in welcome:
        # A run does without it: it is not counted among what is missing.
        mark = "[green]✔[/]" if mean.found else "[yellow]·[/]"
        drawn.add_row(
            mark,
            f"{escape(mean.name)} (optional)",
            escape(mean.why),
            "" if mean.found else escape(mean.remedy),
        )
    screen.print(drawn)
