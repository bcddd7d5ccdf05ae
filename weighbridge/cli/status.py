from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import click

from weighbridge.cli import complete
from weighbridge.cli.options import as_json, ssh_hardware
from weighbridge.common.errors import EXIT_FINE, TargetError

if TYPE_CHECKING:
    from weighbridge.documents import ReachedEndpoint, StatusDocument
    from weighbridge.topologies.deployment import DeploymentRecord
    from weighbridge.topologies.hardware import Hardware


@click.command("status")
@click.option(
    "--hardware",
    metavar="FILE",
    shell_complete=complete.hardware,
    help="Show what is running on the real hosts of this hardware file.",
)
@as_json
def command(hardware: str | None, *, as_json: bool) -> int:
    """Show running deployments: what has died, hosts, endpoints and credentials."""
    from weighbridge.environment import place
    from weighbridge.screen.deployments import print_running
    from weighbridge.screen.terminal import console

    hosts = ssh_hardware(hardware)
    if as_json:
        from weighbridge.results_output import print_document

        document = status_here() if hosts is None else status_there(hosts)
        print_document(document)
        return document.exit_code
    if hosts is not None:
        show_real(hosts)
    else:
        print_running(place(), console())
    return EXIT_FINE


def show_real(hardware: Hardware) -> None:
    """What runs, has died, or was left on real hosts. Raises TargetError naming those that do not
    answer, after the others.
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


def status_here() -> StatusDocument:
    """What is running on this machine. Raises TargetError if that cannot be found out."""
    from weighbridge.documents import DeadDaemon, RunningDeployment, StatusDocument
    from weighbridge.environment import place
    from weighbridge.screen.deployments import dead_of_lab
    from weighbridge.topologies.deployment import running_deployments

    return StatusDocument(
        deployments=tuple(
            RunningDeployment(
                label=one.label,
                layout=one.layout,
                hardware=one.hardware,
                since=one.since,
                state="running",
                addresses=one.hosts,
                endpoints=_endpoints(one),
                dead=tuple(
                    DeadDaemon(host=daemon.host, service=daemon.service, log=str(log))
                    for daemon, log in dead_of_lab(one, place())[0].items()
                ),
            )
            for one in running_deployments(place())
        )
    )


def status_there(hardware: Hardware) -> StatusDocument:
    """What is running on real hosts, as far as they answer."""
    from weighbridge.documents import DeadDaemon, RunningDeployment, StatusDocument
    from weighbridge.environment import place
    from weighbridge.topologies.deployment import running_deployments
    from weighbridge.topologies.ssh import leftovers

    there = leftovers.find(hardware, include_suites=True, daemons=True)
    known = {one.label: one for one in running_deployments(place())}
    found = []
    for one in there.deployments:
        label, record = one.claimed.deployment, known.get(one.claimed.deployment)
        addresses = {name: hardware.hosts[name].address or "" for name in one.hosts}
        found.append(
            RunningDeployment(
                label=label,
                layout="" if record is None else record.layout,
                hardware=hardware.name,
                since=one.claimed.since,
                state="made on another machine"
                if one.elsewhere
                else "in use"
                if one.at_work
                else "left running",
                addresses=addresses if record is None else record.hosts,
                endpoints=() if record is None else _endpoints(record),
                dead=tuple(
                    DeadDaemon(host=daemon.host, service=daemon.service, log=daemon.log)
                    for daemon in there.daemons
                    if daemon.deployment == label and not daemon.alive
                ),
            )
        )
    silent = {name: error.message for name, error in there.failed.items()}
    return StatusDocument(
        deployments=tuple(found), silent=silent, exit_code=TargetError.exit_code if silent else 0
    )


def _endpoints(record: DeploymentRecord) -> tuple[ReachedEndpoint, ...]:
    from weighbridge.documents import ReachedEndpoint

    return tuple(
        ReachedEndpoint(
            api=one.api,
            urls=tuple(each.url for each in one.each()),
            user=one.user,
            key=one.key.get_secret_value(),
        )
        for one in record.endpoints
    )
