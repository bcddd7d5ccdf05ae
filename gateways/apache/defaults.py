"""What Apache does by itself, as a program on a host that has it: a bare one is started, asked for
its defaults, and ended.

stdout is JSON: the figures of the MPM by directive, which mod_lua asks the running server for
(`ap_mpm_query`; the numbers of its questions are those of ap_mpm.h), the processes that there are
when it says that it has started, and what its first answer promises of keep-alive. The first
argument is the MPM: `worker` or `event`.
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
    """As little as Apache starts with: nothing in it sets what it is asked for."""
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
    """Figures by directive, of answers by number of question.

    Requests at once are processes times threads.
    """
    found = {name: answers[code] for name, code in _CODES.items()}
    return {**found, "MaxRequestWorkers": answers[_MAX_DAEMONS] * found["ThreadsPerChild"]}


def ask(port: int) -> tuple[str, str]:
    """Head and body of what it answers to a client that would keep the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=_WITHIN_S) as wire:
        wire.sendall(
            f"GET /mpm HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: Keep-Alive\r\n\r\n".encode()
        )
        answer = http.client.HTTPResponse(wire)
        answer.begin()
        return str(answer.headers), answer.read().decode()


def defaults(kind: str) -> dict[str, int]:
    """All of them. Exits with Apache's own words when it does not start."""
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
                log, until = folder / "log", time.monotonic() + _WITHIN_S
                # It says so when it has forked all processes of the start, and before it looks
                # whether they are enough.
                while not log.exists() or STARTED not in log.read_text(encoding="utf-8"):
                    if apache.poll() is not None or time.monotonic() > until:
                        sys.exit(
                            f"Apache with nothing but {kind} did not start: "
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
        sys.exit(f"Apache answered something else than was asked: {head}\n{body}")
    promised = {"KeepAliveTimeout": int(kept[1]), "MaxKeepAliveRequests": int(kept[2])}
    return {**figures(answers), "StartServers": len(children), **promised}


if __name__ == "__main__":
    json.dump(defaults(sys.argv[1]), sys.stdout)
