"""Apache's own defaults, as a program on a host that has it: starts and asks a bare instance.

stdout is JSON: the MPM's figures by directive, from mod_lua's `mpm_query` of the running server
(`ap_mpm_query`; the query codes are those of ap_mpm.h), the number of processes when it logs that
it has started, and the keep-alive header of its first answer. The argument is the MPM: `worker` or
`event`.
"""

from __future__ import annotations

import http.client
import json
import re
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MODULES = "/usr/lib/apache2/modules"
STARTED = "resuming normal operations"
_WITHIN_S = 30.0

_ASK = """
function handle(r)
  for code = 1, 12 do r:puts(code .. " " .. r.mpm_query(code) .. "\\n") end
  return apache2.OK
end
"""
_CODES = {
    "ServerLimit": 4,
    "ThreadLimit": 5,
    "ThreadsPerChild": 6,
    "MinSpareThreads": 8,
    "MaxSpareThreads": 10,
    "MaxConnectionsPerChild": 11,
}
_MAX_DAEMONS = 12


def configuration(folder: Path, kind: str, port: int) -> str:
    """The minimal configuration Apache starts with: it sets none of the requested values."""
    lines = [
        f'ServerRoot "{folder}"',
        f'PidFile "{folder}/pid"',
        f'DefaultRuntimeDir "{folder}"',
        f'ErrorLog "{folder}/log"',
        "ServerName localhost",
        "User www-data",
        "Group www-data",
        *(
            f'LoadModule {name}_module "{MODULES}/mod_{name}.so"'
            for name in (f"mpm_{kind}", "authz_core", "lua")
        ),
        f"Listen 127.0.0.1:{port}",
        f'LuaMapHandler "^/mpm$" "{folder}/ask.lua" handle',
    ]
    return "\n".join(lines) + "\n"


def figures(answers: dict[int, int]) -> dict[str, int]:
    """The figures by directive, from the answers by query code.

    Concurrent requests are processes times threads.
    """
    found = {name: answers[code] for name, code in _CODES.items()}
    return {**found, "MaxRequestWorkers": answers[_MAX_DAEMONS] * found["ThreadsPerChild"]}


def ask(port: int) -> tuple[str, str]:
    """Head and body of its answer to a client that asks for keep-alive."""
    with socket.create_connection(("127.0.0.1", port), timeout=_WITHIN_S) as wire:
        wire.sendall(
            f"GET /mpm HTTP/1.1\r\nHost: localhost:{port}\r\n".encode()
            + b"Connection: Keep-Alive\r\n\r\n"
        )
        answer = http.client.HTTPResponse(wire)
        answer.begin()
        return str(answer.headers), answer.read().decode()


def defaults(kind: str) -> dict[str, int]:
    """All defaults. Exits with Apache's log when it does not start."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        (folder / "ask.lua").write_text(_ASK, encoding="utf-8")
        (folder / "bare.conf").write_text(configuration(folder, kind, port), encoding="utf-8")
        with subprocess.Popen(
            ["apache2", "-f", str(folder / "bare.conf"), "-DFOREGROUND"]
        ) as apache:
            try:
                log, deadline = folder / "log", time.monotonic() + _WITHIN_S
                # Logged after forking the initial processes and before checking whether they are
                # enough.
                while not log.exists() or STARTED not in log.read_text(encoding="utf-8"):
                    if apache.poll() is not None or time.monotonic() > deadline:
                        sys.exit(
                            f"Apache did not start with {kind} alone: "
                            f"{log.read_text() if log.exists() else 'no log'}"
                        )
                    time.sleep(0.005)
                children = (
                    Path(f"/proc/{apache.pid}/task/{apache.pid}/children")
                    .read_text(encoding="ascii")
                    .split()
                )
                head, body = ask(port)
            finally:
                apache.terminate()
                apache.wait()
    answers = {
        int(code): int(value) for code, value in re.findall(r"^(\d+) (-?\d+)$", body, re.MULTILINE)
    }
    kept = re.search(r"(?im)^Keep-Alive: timeout=(\d+), max=(\d+)", head)
    if kept is None or _MAX_DAEMONS not in answers:
        sys.exit(f"Apache gave an unexpected answer: {head}\n{body}")
    promised = {"KeepAliveTimeout": int(kept[1]), "MaxKeepAliveRequests": int(kept[2])}
    return {**figures(answers), "StartServers": len(children), **promised}


if __name__ == "__main__":
    json.dump(defaults(sys.argv[1]), sys.stdout)
