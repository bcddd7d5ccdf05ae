"""`weighbridge status`: what is running here."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import click

from weighbridge.cli import complete
from weighbridge.cli.options import ssh_hardware
from weighbridge.common.errors import TargetError

if TYPE_CHECKING:
    from weighbridge.topologies.hardware import Hardware


@click.command("status")
@click.option(
    "--hardware",
    metavar="FILE",
    shell_complete=complete.hardware,
    help="Show what is running on the real hosts of this hardware file.",
)
def command(hardware: str | None) -> None:
    """Show running deployments: what has died, hosts, endpoints and credentials."""
    from weighbridge.environment import place
    from weighbridge.screen.deployments import print_running
    from weighbridge.screen.terminal import console

    hosts = ssh_hardware(hardware)
    if hosts is not None:
        show_real(hosts)
    else:
        print_running(place(), console())


def show_real(hardware: Hardware) -> None:
    """Print what is running on real hosts, what has died, and what was left there.

    Raises TargetError naming hosts that do not answer, after the others.
    """
    from weighbridge.cli.down import counted
    from weighbridge.environment import place
    from weighbridge.screen.deployments import dead_there, describe
    from weighbridge.screen.terminal import console, print_line
    from weighbridge.topologies.deployment import running_deployments
    from weighbridge.topologies.ssh import leftovers

    screen = console()
    there = leftovers.find(hardware, include_suites=True, daemons=True)
    known = {one.label: one for one in running_deployments(place())}
    lines = []
    for found in there.deployments:
        claimed = found.claimed
        if found.elsewhere:
            state = "made on another machine"
        else:
            state = "in use" if found.at_work else "left running, its process has ended"
        lines.append(
            f"{claimed.deployment} on {', '.join(found.hosts)} since {claimed.since}: "
            f"{claimed.by}; {state}"
        )
        record = known.get(claimed.deployment)
        lines += dead_there(found, record, there, hardware)
        if record is not None:
            lines += describe(record)[1:]
    for host in hardware.hosts:
        own = [one for one in there.found if one.host == host]
        for label in dict.fromkeys(one.deployment for one in own):
            what = counted(Counter(one.kind for one in own if one.deployment == label))
            lines.append(f"  {host}: {what}" + (f" of {label}" if label else ""))
    if not lines and not there.failed:
        lines = [f"nothing is running on the hosts of {hardware.name}"]
    for line in lines:
        print_line(screen, line)
    if there.failed:
        raise TargetError("\n".join(error.message for error in there.failed.values()))
