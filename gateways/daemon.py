"""A daemon of a gateway: its service, host, port and logs."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby

from weighbridge.common.errors import ServiceFailed, VerificationFailed
from weighbridge.common.host import Host, Service
from weighbridge.gateways.together import together

_DIES_WITHIN_S = 5.0
_PAUSE_S = 0.1


@dataclass(frozen=True)
class Daemon:
    """A service on a host. `port`: None without one; `logs` are used when it printed nothing."""

    host: Host
    service: Service
    port: int | None = None
    logs: tuple[str, ...] = ()
    reads: tuple[str, ...] | None = None
    """Files whose change it is restarted for; None: a change of settings leaves it alone."""
    disks: tuple[str, ...] = ()
    """Disks of the host that it holds."""

    def __str__(self) -> str:
        return f"{self.host.name} {self.service.name}" + (
            f" (port {self.port})" if self.port else ""
        )

    def failed(self, what: str, *, advice: str = "") -> ServiceFailed:
        """The error that `what` happened, with the last lines of the daemon's output or logs."""
        names = (f"{self.service.name}.out", *self.logs)
        name = next((name for name in names if self.host.log_tail(name)), names[0])
        return ServiceFailed(
            self.host.name,
            self.service.name,
            what,
            log=str(self.host.log(name)),
            tail=self.host.log_tail(name),
            advice=advice,
        )

    def check(self) -> None:
        """Raise ServiceFailed when the daemon has died."""
        check([self])


def start(daemons: Sequence[Daemon]) -> None:
    """Start daemons on all hosts concurrently. Raises CommandFailed."""
    together(
        [
            partial(group[0].host.start, [daemon.service for daemon in group])
            for group in by_host(daemons)
        ]
    )


def stop(daemons: Sequence[Daemon], *, timeout_s: float = 10) -> None:
    """Stop daemons on all hosts concurrently, in order on each; kill them at the timeout."""

    def end(some: Sequence[Daemon]) -> None:
        for one in some:
            one.host.stop(one.service.name, timeout_s=timeout_s)

    together([partial(end, group) for group in by_host(daemons)])


def by_host(daemons: Sequence[Daemon]) -> list[list[Daemon]]:
    """The daemons of each host, in their order; hosts sorted by name."""
    ordered = sorted(daemons, key=lambda daemon: daemon.host.name)
    return [list(group) for _, group in groupby(ordered, key=lambda daemon: daemon.host.name)]


@contextlib.contextmanager
def blaming(daemons: Sequence[Daemon]) -> Iterator[None]:
    """Raise ServiceFailed for a VerificationFailed if a daemon dies: another had its port."""
    try:
        yield
    except VerificationFailed:
        deadline = time.monotonic() + _DIES_WITHIN_S
        while time.monotonic() < deadline:
            check(daemons)
            time.sleep(_PAUSE_S)
        raise


def check(daemons: Sequence[Daemon]) -> None:
    """Raise ServiceFailed for the first dead daemon, with the others and a host that is gone."""
    running = together([partial(daemon.host.alive, daemon.service.name) for daemon in daemons])
    dead = [daemon for daemon, alive in zip(daemons, running, strict=True) if not alive]
    if dead:
        raise dead[0].failed(_how(dead))


def _how(dead: Sequence[Daemon]) -> str:
    """For example `died; so did container-server and object-server on store-1`."""
    first, *others = dead
    words = "died" if first.host.is_up() else "died with its host, where nothing is running"
    by_host: dict[str, list[str]] = {}
    for one in others:
        by_host.setdefault(one.host.name, []).append(one.service.name)
    also = [
        f"{', '.join(names[:-1])} and {names[-1]} on {host}".removeprefix(" and ")
        for host, names in by_host.items()
    ]
    return f"{words}; so did {'; '.join(also)}" if also else words
