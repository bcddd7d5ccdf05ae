"""Small programs of this suite: those the client host runs from here, and those that are put on hosts to run there."""

from __future__ import annotations

import contextlib
import subprocess

from weighbridge.common.home import IMPORTED_FROM
from weighbridge.common.host import Host
from weighbridge.common.piped import Piped

_FOLDER = "/usr/local/lib/weighbridge"


def ship(host: Host, module: str) -> tuple[str, ...]:
    """Put the one file of `module` on a host and return the command that runs it with the host's own Python.

    Such a module uses nothing but what the host's image has, and is good for Python 3.9.
    """
    source = IMPORTED_FROM / (module.replace(".", "/") + ".py")
    path = f"{_FOLDER}/{source.name}"
    host.put(path, source.read_text(encoding="utf-8"))
    return ("python3", "-I", path)


def end(process: Piped, *, within_s: float = 5.0) -> None:
    """End a program that ends when its stdin does; it is killed when it has not within `within_s`.

    Closing comes first: what a host runs for us may be behind a program (runc, ssh) whose killing it would not notice.
    """
    if process.stdin is not None:
        with contextlib.suppress(BrokenPipeError):  # it ended before it had read all
            process.stdin.close()
    try:
        process.wait(within_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    finally:
        if process.stdout is not None:
            process.stdout.close()
