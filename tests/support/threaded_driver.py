"""Programs in the test's own process: a start costs nothing.

Most tests start the fake driver for each deployment, and as a program it would take half a second
of CPU each time; it is a thread behind the pipes of a program. What depends on a real program's end
(signals, silence) starts one: `tests/drivers/`. What asks an endpoint is a call.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Self, TextIO

import fake_driver
from weighbridge.common.errors import CommandFailed
from weighbridge.common.host import Completed, PipedProcess
from weighbridge.gateways import verify
from weighbridge.gateways.existing import clear, look
from weighbridge.topologies.fake import FakeHost

MODULE = "tests.support.fake_driver"
spawn_program = FakeHost.spawn
run_program = FakeHost.run

Serve = Callable[[TextIO, TextIO], int]
"""What a program does with its stdin and stdout, and the status that it ends with."""


class ThreadedProgram:
    """A PipedProcess whose program is a function in a thread of this process."""

    def __init__(self, serve: Serve) -> None:
        read_commands, write_commands = os.pipe()
        read_events, write_events = os.pipe()
        self.stdin: IO[bytes] | None = os.fdopen(write_commands, "wb")
        self.stdout: IO[bytes] | None = os.fdopen(read_events, "rb")
        self.returncode: int | None = None
        self._function = serve
        self._thread = threading.Thread(
            target=self._serve,
            args=(read_commands, write_events),
            name="threaded-program",
            daemon=True,
        )
        self._thread.start()

    def _serve(self, read_commands: int, write_events: int) -> None:
        status = 1
        try:
            with (
                os.fdopen(read_commands, encoding="utf-8") as commands,
                os.fdopen(write_events, "w", encoding="utf-8") as events,
            ):
                status = self._function(commands, events)
        except BrokenPipeError:
            status = 141  # 128 + SIGPIPE, as the program would end
        finally:
            self.returncode = status

    def poll(self) -> int | None:
        return None if self._thread.is_alive() else self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its exit status. Raises subprocess.TimeoutExpired after `timeout` seconds."""
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise subprocess.TimeoutExpired("a threaded program", timeout or 0)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, sig: int) -> None:
        """Close its input, at which it ends as soon as it has answered."""
        if self.stdin is not None and not self.stdin.closed:
            self.stdin.close()

    def kill(self) -> None:
        """The same: it takes no more than a moment to answer."""
        self.send_signal(9)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self.wait()
        if self.stdout is not None:
            self.stdout.close()


def spawn(
    host: FakeHost, argv: Sequence[str], *, stderr: Path, env: Mapping[str, str] | None = None
) -> PipedProcess:
    """As FakeHost.spawn, but the fake driver without `--hang` or `--end` is a thread."""
    arguments = list(argv)[argv.index(MODULE) + 1 :] if MODULE in argv else None
    if arguments is None or "--hang" in arguments or "--end" in arguments:
        return spawn_program(host, argv, stderr=stderr, env=env)
    stderr.touch()
    return ThreadedProgram(lambda commands, events: fake_driver.serve(arguments, commands, events))


ASKING: Mapping[str, Callable[[Any], Sequence[Any]]] = {
    verify.__name__: lambda order: [verify.run_order(order)],
    clear.__name__: lambda order: [clear.clear_all(order)],
    look.__name__: lambda order: [look.look(endpoint) for endpoint in order["endpoints"]],
}
"""What programs that ask endpoints print as lines of JSON, by module."""
SHORT_S = 5.0
"""A program that may not take longer is started: it may have to be ended."""


def run(host: FakeHost, argv: Sequence[str], *, timeout_s: float = 60, **given: Any) -> Completed:
    """As FakeHost.run, but a program that asks endpoints is a call."""
    if argv[-1] not in ASKING or timeout_s < SHORT_S:
        return run_program(host, argv, timeout_s=timeout_s, **given)
    try:
        lines = ASKING[argv[-1]](json.loads(given["stdin"]))
    except Exception as error:
        raise CommandFailed(host.name, argv, 1, traceback.format_exc()) from error
    return Completed("".join(f"{json.dumps(line)}\n" for line in lines), "")
