"""Wait until services answer on their ports, as seen from the client host.

A running process is not enough: radosgw with an unknown front end stays up without listening. The
daemons are watched meanwhile, so that one that died is reported at once, not at the deadline.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Sequence

from weighbridge.common.host import Host
from weighbridge.common.program_lines import NoLine, ProgramLines, end
from weighbridge.gateways.certificates import CA_FILE
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.gateway import Say

DEADLINE_S = 180.0
"""Generous timeout of a port: Swift's servers took 5 s on an idle machine, 32 s on a busy one."""

_GRACE_S = 10.0
"""The program's own start, on a host with a fraction of a CPU."""
_REPORT_EVERY_S = 10.0


def await_ports(
    client: Host,
    daemons: Sequence[Daemon],
    say: Say,
    *,
    deadline_s: float = DEADLINE_S,
    url: Callable[[Daemon], str] | None = None,
) -> None:
    """Return when all ports answer `client`, with a `url` a request that is not 5xx: a port is open
    as soon as a server listens, and its workers may be ready seconds later. Raises ServiceFailed on
    a death or `deadline_s`.
    """
    listening = [daemon for daemon in daemons if daemon.port is not None]
    wanted: list[dict[str, object]] = []
    for daemon in listening:
        place: dict[str, object] = {"address": daemon.host.address, "port": daemon.port}
        if url is not None:
            place = {"url": url(daemon), "ca": CA_FILE, "below": 500}
        wanted.append(place)
    waiting = dict(enumerate(listening))
    deadline = time.monotonic() + deadline_s
    reported = time.monotonic()

    def watch() -> None:
        nonlocal reported
        for daemon in waiting.values():
            daemon.check()
        if time.monotonic() - reported > _REPORT_EVERY_S:
            reported = time.monotonic()
            say(
                f"waiting for {len(waiting)} of {len(listening)} ports, such as that of "
                f"{next(iter(waiting.values()))}"
            )

    command = client.module("weighbridge.gateways.await_answers")
    process = client.spawn(command.argv, stderr=client.log("ports.err"), env=command.env)
    try:
        # If it died, or has given up: those that wait are named below.
        with contextlib.suppress(NoLine):
            lines = ProgramLines(process)
            order = {"wanted": wanted, "deadline_s": deadline_s, "watched": True}
            lines.send(json.dumps(order), _GRACE_S)
            while waiting:
                line = lines.next(deadline + _GRACE_S - time.monotonic(), watch)
                waiting.pop(int(line), None)
    finally:
        end(process)
    # A last check: another process may answer on the port of a daemon that died.
    for daemon in daemons:
        daemon.check()
    for daemon in waiting.values():
        raise daemon.failed(
            f"port {daemon.port} did not answer within {deadline_s:g} s, although the process is "
            "running"
        )
