"""Apache's counters, its status and its graceful restart, as a program on its host.

Arguments: Apache's address and port, the CA file if it speaks TLS ("" if not), the name of the
virtual host for its status, and address and port of the FastCGI responder behind it (both "" where
there is none). Prints a line of JSON at once and then every second until stdin closes: an object of
numbers by name. A second in which one of them does not answer has no line; stderr gives the reason.

With `once` besides it prints the fields of server-status as one object. With `reload`, Apache's
configuration file, its PidFile, ThreadsPerChild, MinSpareThreads, a timeout in seconds and Apache's
program it restarts gracefully, and waits until every old child process has ended and the new ones
have all their threads, at least MinSpareThreads. Prints `{"ended": number, "new": number}`, child
processes. Exits with 3 and a message on stderr at the timeout; with the exit code and output of
Apache's own program when it refuses the file: Apache then continues as before.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from http import HTTPStatus
from pathlib import Path

from weighbridge.gateways.await_answers import answer_of
from weighbridge.gateways.counter_loop import print_every_second

ANSWER_WITHIN_S = 5.0
_LOOK_EVERY_S = 0.05
LEFT = 3

NUMBERS = {
    "BusyWorkers": "workers_busy",
    "IdleWorkers": "workers_idle",
    "Processes": "processes",
    "Stopping": "processes_stopping",
    "Total Accesses": "requests",
    "Total kBytes": "sent_kib",
    "Total Duration": "request_ms_sum",
}
"""The printed fields of server-status. The last three need ExtendedStatus."""
STATES = {
    "_": "workers_waiting",
    "S": "workers_starting",
    "R": "workers_reading",
    "W": "workers_sending",
    "K": "workers_keepalive",
    "C": "workers_closing",
    "G": "workers_finishing",
}
"""Letters of the scoreboard."""


def status(address: str, port: int, authority: str, name: str) -> dict[str, str]:
    """The fields of server-status. Raises OSError or ValueError."""
    place = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
    url = f"http{'s' if authority else ''}://{place}/server-status?auto"
    head = {"Host": name, "Connection": "close"}
    code, text = answer_of(url, ca=authority, head=head, timeout_s=ANSWER_WITHIN_S)
    if code != HTTPStatus.OK:
        raise ValueError(f"server-status returned {code}")
    return dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)


def counters(status: dict[str, str]) -> dict[str, float]:
    """The numbers in the fields of server-status."""
    values = {key: float(status[name]) for name, key in NUMBERS.items() if name in status}
    board = status.get("Scoreboard", "")
    return values | {name: float(board.count(letter)) for letter, name in STATES.items()}


def responder(address: str, port: int) -> dict[str, float]:
    """The responder's counters. Raises OSError or ValueError."""
    with (
        socket.create_connection((address, port), timeout=ANSWER_WITHIN_S) as wire,
        wire.makefile("r") as lines,
    ):
        line = lines.readline()
    try:
        return {"responder_" + name: float(value) for name, value in json.loads(line).items()}
    except (AttributeError, OverflowError, RecursionError, TypeError) as error:
        raise ValueError(
            f"the responder returned no object of numbers ({error!r}): {line[:200]!r}"
        ) from None


def children(parent: int) -> dict[int, str]:
    """Child processes by pid, with their start times, since pids are reused."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it ended meanwhile
            continue
        if int(fields[1]) == parent:
            found[int(entry.name)] = fields[19]
    return found


def threads(child: int) -> int:
    """The number of threads of a process; 0 when it has ended."""
    try:
        lines = Path(f"/proc/{child}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Threads:")), 0)


def restart(conf: str, pid_file: Path, each: int, spare: int, within_s: float, apache: str) -> int:
    """Restart gracefully and wait; exit status."""
    parent = int(pid_file.read_text())
    before = children(parent)
    done = subprocess.run(
        [apache, "-f", conf, "-k", "graceful"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.stderr.write(done.stdout + done.stderr)
        return done.returncode
    deadline = time.monotonic() + within_s
    while True:
        now = children(parent).items()
        left = now & before.items()
        new = now - before.items()
        # A process has its first thread and the listener beside the workers.
        ready = [child for child, _ in new if threads(child) > each]
        if not left and len(ready) == len(new) and len(ready) * each >= max(spare, 1):
            break
        if time.monotonic() > deadline:
            what = (
                f"{len(left)} of {len(before)} old child processes are left, {len(ready)} of "
                f"{len(new)} new ones are ready"
            )
            sys.stderr.write(what)
            return LEFT
        time.sleep(_LOOK_EVERY_S)
    sys.stdout.write(json.dumps({"ended": len(before), "new": len(ready)}) + "\n")
    return 0


def main() -> int:
    """Print counters until stdin closes, or do what the arguments say; exit status."""
    address, port, authority, name, responder_address, responder_port, *words = sys.argv[1:]
    if words[:1] == ["reload"]:
        conf, pid_file, each, spare, within_s, apache = words[1:]
        return restart(conf, Path(pid_file), int(each), int(spare), float(within_s), apache)
    if words == ["once"]:
        sys.stdout.write(json.dumps(status(address, int(port), authority, name)) + "\n")
        return 0

    def look() -> dict[str, float]:
        values = counters(status(address, int(port), authority, name))
        if responder_port:
            values.update(responder(responder_address, int(responder_port)))
        return values

    print_every_second(look, f"Apache at {address}:{port}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
