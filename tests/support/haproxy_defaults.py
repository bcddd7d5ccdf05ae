"""HAProxy's own defaults, as a program on a host that has it: asks the program and a bare instance.

stdout is JSON: `tune.bufsize`, `tune.maxpollevents`, `balance`. HAProxy reports neither its retries
nor its connection reuse.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from weighbridge.gateways.haproxy.haproxy_counters import rows

_WITHIN_S = 30.0


def settings(text: str) -> dict[str, str]:
    """The `Default settings` of `haproxy -vv`. Raises ValueError when there are none."""
    head, found, rest = text.partition("Default settings :\n")
    if not found:
        raise ValueError(f"haproxy -vv has no default settings: {head[:200]}")
    return {
        f"tune.{name}": value
        for name, value in re.findall(r"(\w+) = (\w+)", rest.split("\n\n", 1)[0])
    }


def balance(folder: Path) -> str:
    """The algorithm of a backend without a `balance` line. Exits when HAProxy does not start."""
    path = folder / "socket"
    lines = ["global", f"  stats socket {path} mode 600 level operator", "defaults", "  mode http"]
    lines += [f"  timeout {one} 1s" for one in ("connect", "client", "server")]
    lines += ["backend bare", "  server one 127.0.0.1:1", "  server two 127.0.0.1:2"]
    (folder / "bare.cfg").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with subprocess.Popen(["haproxy", "-db", "-f", str(folder / "bare.cfg")]) as haproxy:
        try:
            deadline = time.monotonic() + _WITHIN_S
            found: list[dict[str, str]] = []
            while not found:
                if haproxy.poll() is not None or time.monotonic() > deadline:
                    sys.exit("HAProxy did not start with a bare backend")
                time.sleep(0.005)
                # Its socket is there before it listens.
                with suppress(FileNotFoundError, ConnectionRefusedError):
                    found = rows(str(path), timeout_s=_WITHIN_S)
        finally:
            haproxy.terminate()
            haproxy.wait()
    return next(row["algo"] for row in found if row["svname"] == "BACKEND")


def main() -> None:
    text = subprocess.run(["haproxy", "-vv"], capture_output=True, text=True, check=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        json.dump({**settings(text), "balance": balance(Path(folder))}, sys.stdout)


if __name__ == "__main__":
    main()
