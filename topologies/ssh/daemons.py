"""Which services of a deployment were started on a real host and not stopped, and which of them died: asked of the host itself."""

from __future__ import annotations

import re
from typing import Final

from weighbridge.common.errors import TargetError
from weighbridge.common.printed import printable
from weighbridge.common.record import Record
from weighbridge.topologies.ssh import ending
from weighbridge.topologies.ssh.claim import ClaimedHost
from weighbridge.topologies.ssh.host import SERVICE_NAME
from weighbridge.topologies.ssh.shell import Shell

MOST: Final = 1000
"""Services of one host: a host that tells of more is not believed."""
LONGEST_LINE: Final = 80
"""Characters of a name and what is said of it."""
_LINE: Final = re.compile(rf"({SERVICE_NAME.pattern}) (alive|dead)")


class HostDaemon(Record):
    """A service that was started on a host and not stopped."""

    host: str
    deployment: str
    service: str
    alive: bool
    """Whether the very process that it began with is there."""
    log: str
    """Path on that host of what it printed."""


def daemons_of(shell: Shell, claimed: ClaimedHost) -> tuple[HostDaemon, ...]:
    """What the deployment that has claimed a host runs there. Raises CommandFailed, or TargetError where the answer is none."""
    services = ending.services_of(claimed, systemd=ending.has_systemd(shell))
    told = shell.sh(services.ask()).stdout
    if len(told) > MOST * LONGEST_LINE:
        raise TargetError(f"{shell.name} ({shell.address}): tells of more services than a host can have")
    alive: dict[str, bool] = {}
    for line in told.splitlines():
        one = _LINE.fullmatch(line)
        if one is None or one[1] in alive:
            raise TargetError(f"{shell.name} ({shell.address}): does not tell which services are alive: {printable(line)!r}")
        alive[one[1]] = one[2] == "alive"
    label, logs = claimed.deployment, f"{services.stand.folder}/log"
    return tuple(
        HostDaemon(host=shell.name, deployment=label, service=name, alive=there, log=f"{logs}/{name}.out")
        for name, there in alive.items()
    )
