"""HAProxy's counters, as a program on its host.

`haproxy_counters.py SOCKET` prints a line of JSON at once and then one every second until its stdin
closes: numbers by `frontend.NAME`, `backend.NAME` and `SERVER.NAME`, where NAME is the field's name
in `show stat` (HAProxy's management manual, CSV format); `up` is 1 for a server that takes
requests. A second in which HAProxy does not answer has no line; stderr gives the reason.
`haproxy_counters.py SOCKET once` prints `{"info": {...}, "rows": [...]}`, `show info` and `show
stat` as they are. `haproxy_counters.py SOCKET up SECONDS` exits with 0 when every server has passed
all checks that it needs, and with 3 and a message on stderr at the timeout.
"""

from __future__ import annotations

import csv
import json
import socket
import sys
import time

from weighbridge.gateways.counter_loop import print_every_second

NAMES = (
    *("scur", "stot", "qcur", "bin", "bout", "req_tot", "hrsp_2xx", "hrsp_4xx", "hrsp_5xx"),
    *("ereq", "econ", "eresp", "wretr", "wredis", "cli_abrt", "srv_abrt", "connect", "reuse"),
    *("qtime", "ctime", "rtime", "ttime"),
)
"""Printed where a row has them; the times are means of the last 1024 requests, in ms."""

TIMEOUT_S = 5.0
LOOK_EVERY_S = 0.05
NOT_UP = 3


def ask(path: str, command: str, *, timeout_s: float = TIMEOUT_S) -> str:
    """HAProxy's answer to a command."""
    with socket.socket(socket.AF_UNIX) as wire:
        wire.settimeout(timeout_s)
        wire.connect(path)
        wire.sendall(command.encode() + b"\n")
        parts: list[bytes] = []
        while True:
            part = wire.recv(65536)
            if not part:
                return b"".join(parts).decode()
            parts.append(part)


def rows(path: str, *, timeout_s: float = TIMEOUT_S) -> list[dict[str, str]]:
    """The rows of `show stat`: front ends, backends, servers. Raises OSError or ValueError."""
    answer = ask(path, "show stat", timeout_s=timeout_s)
    try:
        reader = csv.DictReader(answer.lstrip("# ").splitlines())
        found, names = list(reader), reader.fieldnames or ()
    except csv.Error as error:
        raise ValueError(f"show stat returned no CSV ({error}): {answer[:200]!r}") from None
    # DictReader puts surplus cells in a list under None, and None into missing ones.
    complete = all(None not in row and None not in row.values() for row in found)
    if "svname" not in names or "status" not in names or not complete:
        raise ValueError(f"show stat returned incomplete rows: {answer[:200]!r}")
    return found


def info(path: str) -> dict[str, str]:
    """`show info` by name."""
    pairs = (line.partition(":") for line in ask(path, "show info").splitlines())
    return {name.strip(): value.strip() for name, colon, value in pairs if colon}


def numbers(found: list[dict[str, str]]) -> dict[str, int]:
    """The counters of one second."""
    values = {}
    for row in found:
        total = row["svname"] in ("FRONTEND", "BACKEND")
        name = row["svname"].lower() if total else row["svname"]
        values.update({f"{name}.{field}": int(row[field]) for field in NAMES if row.get(field)})
        if not total:
            values[f"{name}.up"] = int(row["status"].startswith("UP"))
    return values


def waiting(found: list[dict[str, str]]) -> list[str]:
    """Servers that are not fully up, in words: `UP 1/3` may still go down without a check."""
    left = []
    for row in found:
        if row["svname"] in ("FRONTEND", "BACKEND") or row["status"] == "no check":
            continue
        # A running check is a star before the outcome of the last one.
        last = row.get("check_status", "").lstrip("* ")
        if row["status"] != "UP" or not last.endswith(("OK", "OKC")):
            left.append(f"{row['svname']} is {row['status']}, last check {last or 'not done'}")
    return left


def await_up(path: str, within_s: float) -> list[str]:
    """The servers that are not up; returns as soon as there are none, or at the deadline."""
    deadline = time.monotonic() + within_s
    while True:
        try:
            left = waiting(rows(path))
        except (OSError, ValueError) as error:
            left = [str(error)]
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(LOOK_EVERY_S)


def main() -> None:
    """Print counters until stdin closes, or do what the arguments say."""
    path = sys.argv[1]
    if sys.argv[2:3] == ["up"]:
        left = await_up(path, float(sys.argv[3]))
        sys.stderr.write("; ".join(left))
        sys.exit(NOT_UP if left else 0)
    if sys.argv[2:] == ["once"]:
        json.dump({"info": info(path), "rows": rows(path)}, sys.stdout)
        return
    print_every_second(lambda: numbers(rows(path)), path)


if __name__ == "__main__":
    main()
