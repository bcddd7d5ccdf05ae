"""Wait until services answer on their ports, as seen from the client host.

A running process is not enough: radosgw with an unknown front end stays up without listening. The
daemons are watched meanwhile, so that one that died is reported at once, not at the deadline.

As a program (`python -m weighbridge.gateways.ports`, on the client host): reads the line `{"ports":
[[address, port], ...], "deadline_s": s}` from stdin and prints the index of each port when it
accepts a connection, one a line. Exits with 0 when all have, with 1 at the deadline or when stdin
closes.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from weighbridge.common.program_lines import NoLine, ProgramLines, end

if TYPE_CHECKING:
    from pathlib import Path

    from weighbridge.common.host import Host
    from weighbridge.gateways.daemon import Daemon
    from weighbridge.gateways.gateway import Say

DEADLINE_S = 180.0
"""Generous timeout of a port: Swift's servers took 5 s on an idle machine, 32 s on a busy one."""

_CONNECT_TIMEOUT_S = 1.0
_PAUSE_S = 0.05
_GRACE_S = 10.0
"""The program's own start, on a host with a fraction of a CPU."""
_REPORT_EVERY_S = 10.0


def await_ports(
    client: Host, daemons: Sequence[Daemon], say: Say, *, deadline_s: float = DEADLINE_S
) -> None:
    """Return when all ports answer `client`. Raises ServiceFailed on a death or `deadline_s`."""
    waiting = {index: daemon for index, daemon in enumerate(daemons) if daemon.port is not None}
    order = {
        "ports": [[daemon.host.address, daemon.port] for daemon in waiting.values()],
        "deadline_s": deadline_s,
    }
    names = list(waiting)
    deadline = time.monotonic() + deadline_s
    reported = time.monotonic()

    def watch() -> None:
        nonlocal reported
        for daemon in waiting.values():
            daemon.check()
        if time.monotonic() - reported > _REPORT_EVERY_S:
            reported = time.monotonic()
            say(
                f"waiting for {len(waiting)} of {len(names)} ports, such as that of "
                f"{next(iter(waiting.values()))}"
            )

    with (
        _running(client, client.log("ports.err"), json.dumps(order)) as lines,
        contextlib.suppress(NoLine),  # it died, or has given up: those that wait are named below
    ):
        while waiting:
            line = lines.next(deadline + _GRACE_S - time.monotonic(), watch)
            waiting.pop(names[int(line)], None)
    # A last check: another process may answer on the port of a daemon that died.
    for daemon in daemons:
        daemon.check()
    for daemon in waiting.values():
        raise daemon.failed(
            f"port {daemon.port} did not answer within {deadline_s:g} s, although the process is "
            "running"
        )


@contextlib.contextmanager
def _running(client: Host, errors: Path, order: str) -> Iterator[ProgramLines]:
    command = client.module("weighbridge.gateways.ports")
    process = client.spawn(command.argv, stderr=errors, env=command.env)
    try:
        lines = ProgramLines(process)
        with contextlib.suppress(NoLine):  # it died: the end of its output shows it
            lines.send(order, _GRACE_S)
        yield lines
    finally:
        end(process)


def ask(
    ports: Sequence[tuple[str, int]], deadline_s: float, pause: Callable[[], bool]
) -> Iterator[int]:
    """The index of each port as it answers; ends at the deadline or when `pause` is true."""
    waiting = dict(enumerate(ports))
    deadline = time.monotonic() + deadline_s
    while waiting and time.monotonic() < deadline:
        for index, place in list(waiting.items()):
            try:
                socket.create_connection(place, timeout=_CONNECT_TIMEOUT_S).close()
            except OSError:
                continue
            del waiting[index]
            yield index
        # A refused connection returns at once: without a pause this loop would eat the client's
        # CPU.
        if waiting and pause():
            return


def main() -> int:
    """Read the order from stdin, print the index of each open port; exit status."""
    order = json.loads(sys.stdin.readline())
    ports = [(str(address), int(port)) for address, port in order["ports"]]
    answered = 0
    for index in ask(
        ports,
        float(order["deadline_s"]),
        lambda: bool(select.select([sys.stdin], [], [], _PAUSE_S)[0]),
    ):
        answered += 1
        sys.stdout.write(f"{index}\n")
        sys.stdout.flush()
    return 0 if answered == len(ports) else 1


if __name__ == "__main__":
    sys.exit(main())
