"""Long builds on this machine: followed line by line, and ended with this process."""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Event

from weighbridge.common.errors import CommandFailed
from weighbridge.gateways.gateway import Say
from weighbridge.topologies.local_command import HERE

SAY_EVERY_S = 5.0
TAIL_LINES = 30
BUILD_TIMEOUT_S = 1800.0

# mmdebstrap and builds mount this machine's /proc, /sys and devices in the image while they work.
# In these namespaces, which end with this process, no such mount and no process remains however a
# build ends. Without them, removing the remains of a killed build would delete in the machine's own
# /dev.
ALONE = (
    *("setpriv", "--pdeathsig", "KILL", "--"),
    *("unshare", "--mount", "--propagation", "private", "--pid", "--mount-proc"),
    *("--fork", "--kill-child=KILL", "--"),
)


def follow(
    line: Sequence[str],
    what: str,
    say: Say,
    *,
    scratch: Path,
    lock: int,
    ending: Event | None = None,
    timeout_s: float = BUILD_TIMEOUT_S,
) -> None:
    """Run a tool in namespaces of its own and report progress every few seconds; `scratch` is its
    TMPDIR. Raises CommandFailed with its last lines, also when `ending` is set.

    It ends with this process, also if that is killed, and holds the lock until then: nobody removes
    what it still writes.
    """
    started = said = time.monotonic()
    tail: deque[str] = deque(maxlen=TAIL_LINES)
    environment = {**os.environ, "TMPDIR": str(scratch), "LC_ALL": "C.UTF-8"}
    # In its own session Ctrl-C reaches only this process, which ends the session, and not apt.
    with subprocess.Popen(
        [*ALONE, *line],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        pass_fds=(lock,),
        env=environment,
    ) as process:
        try:
            for text in _lines(process, started + timeout_s, ending):
                now = time.monotonic()
                if text:
                    tail.append(text)
                if now - said >= SAY_EVERY_S:
                    said = now
                    last = tail[-1][:100] if tail else "starting"
                    say(f"{what}: {now - started:.0f} s, {last}")
            code = process.wait(10)
        except BaseException:
            process.kill()
            process.wait()
            raise
    if code:
        raise CommandFailed(HERE, line, code, "\n".join(tail))


def _lines(
    process: subprocess.Popen[bytes], deadline: float, ending: Event | None
) -> Iterator[str]:
    """Lines that a process prints, and an empty one every second; ends with its output.

    Raises CommandFailed at the deadline, and when `ending` is set.
    """
    if process.stdout is None:
        raise ValueError("the process was started without a pipe")
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            if time.monotonic() > deadline or (ending is not None and ending.is_set()):
                argv = process.args if isinstance(process.args, list) else []
                raise CommandFailed(HERE, argv, None, "")
            if not selector.select(1.0):
                yield ""
                continue
            data = os.read(process.stdout.fileno(), 65536)
            if not data:
                return
            # apt shows progress by carriage returns
            *lines, rest = (rest + data).replace(b"\r", b"\n").split(b"\n")
            yield from (text for one in lines if (text := one.decode(errors="replace").strip()))
