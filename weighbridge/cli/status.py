"""`weighbridge status`: what stands here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from weighbridge.topologies.hardware import Hardware


@click.command("status")
@click.option(
    "--hardware",
    metavar="FILE",
    help="Ask the real hosts of this hardware file what stands on them.",
)
def command(hardware: str | None) -> None:
    """Show what stands, what of it has died, its hosts, endpoints and credentials."""
    from weighbridge import selection  # noqa: PLC0415 - heavy rooms are imported by what needs them
    from weighbridge.screen.deployments import print_standing  # noqa: PLC0415
    from weighbridge.screen.terminal import console  # noqa: PLC0415
    from weighbridge.surroundings import place  # noqa: PLC0415

    hosts = None if hardware is None else selection.hardware_named(hardware)
    if hosts is not None and hosts.of.by_ssh:
        show_real(hosts)
    else:
        print_standing(place(), console())


def show_real(hardware: Hardware) -> None:
    """Print what stands on real hosts, what of it has died, and what was left there.

    Raises TargetError naming hosts that do not answer, after the others.
    """
    from collections import Counter  # noqa: PLC0415

    from weighbridge.cli.down import counted  # noqa: PLC0415
    from weighbridge.common.errors import TargetError  # noqa: PLC0415
    from weighbridge.screen.deployments import describe, lifeless_there  # noqa: PLC0415
    from weighbridge.screen.terminal import console  # noqa: PLC0415
    from weighbridge.surroundings import place  # noqa: PLC0415
    from weighbridge.topologies.deployment import standing  # noqa: PLC0415
    from weighbridge.topologies.ssh import leftovers  # noqa: PLC0415

    screen = console()
    there = leftovers.find(hardware, whole=True, daemons=True)
    known = {one.label: one for one in standing(place())}
    lines = []
    for stood in there.stood:
        claimed = stood.claimed
        state = (
            "made on another machine"
            if stood.elsewhere
            else "at work"
            if stood.at_work
            else "left standing, its process has ended"
        )
        lines.append(
            f"{claimed.deployment} on {', '.join(stood.hosts)} since {claimed.since}: "
            f"{claimed.by}; {state}"
        )
        stands = known.get(claimed.deployment)
        lines += lifeless_there(stood, stands, there, hardware)
        if stands is not None:
            lines += describe(stands)[1:]
    for host in hardware.hosts:
        own = [one for one in there.found if one.host == host]
        for label in dict.fromkeys(one.deployment for one in own):
            what = counted(Counter(one.kind for one in own if one.deployment == label))
            lines.append(f"  {host}: {what}" + (f" of {label}" if label else ""))
    if not lines and not there.failed:
        lines = [f"nothing stands on the hosts of {hardware.name}"]
    for line in lines:
        screen.print(line, markup=False, highlight=False, soft_wrap=True)
    if there.failed:
        raise TargetError("\n".join(error.message for error in there.failed.values()))
