"""The client's side: connects to a run, starts the worker processes that it asks for, and ends
with it.

It starts nothing else, whatever the run says.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO, Final

import zmq
from pydantic import ValidationError
from zmq.utils.monitor import recv_monitor_message

from weighbridge.common.address import host_port
from weighbridge.common.errors import DriverError, UsageError
from weighbridge.common.home import IMPORTED_FROM
from weighbridge.drivers.joining.messages import (
    BEAT_S,
    FROM_RUN,
    TAIL_CHARACTERS,
    Alive,
    Ended,
    FromClient,
    FromRun,
    Greeting,
    Kill,
    Leaving,
    Over,
    Refusal,
    Start,
    Stop,
    Welcome,
)
from weighbridge.drivers.joining.token import Token

SILENCE_S: Final = 10.0
"""A run that says nothing for so long is lost."""
REFUSALS: Final = 3
"""A run that ends so many handshakes in a row does not know the token."""
HANDSHAKE_MS: Final = 5000
LARGEST_BYTES: Final = 64 * 2**20
"""Of a message from the run, whose target may be a ring of object servers."""
END_S: Final = 3.0
READ_S: Final = 1.0
"""How long a worker process that is to end may take to read what it was started with."""
_FAILED: Final = frozenset(
    {
        zmq.Event.HANDSHAKE_FAILED_PROTOCOL,
        zmq.Event.HANDSHAKE_FAILED_AUTH,
        zmq.Event.HANDSHAKE_FAILED_NO_DETAIL,
    }
)


@dataclass(frozen=True)
class Place:
    """Where a run is joined."""

    host: str
    port: int

    def __str__(self) -> str:
        return host_port(self.host, self.port)


class Membership:
    """A client's part in a run. `worker` are the module and first arguments of a worker process."""

    def __init__(
        self,
        place: Place,
        token: Token,
        greeting: Greeting,
        worker: Sequence[str],
        say: Callable[[str], None],
    ) -> None:
        self._place = place
        self._greeting = greeting
        self._worker = tuple(worker)
        self._say = say
        self._programs: dict[int, _WorkerProcess] = {}
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._dealer = self._context.socket(zmq.DEALER)
        self._dealer.ipv6 = True
        self._dealer.handshake_ivl = HANDSHAKE_MS
        self._dealer.maxmsgsize = LARGEST_BYTES
        self._dealer.reconnect_ivl, self._dealer.reconnect_ivl_max = 100, 1000
        # Nothing is kept for a run that is not there: it may be another one, later.
        self._dealer.immediate = True
        self._dealer.curve_publickey, self._dealer.curve_secretkey = zmq.curve_keypair()
        self._dealer.curve_serverkey = token.keys.public
        self._monitor: zmq.Socket[bytes] = self._dealer.get_monitor_socket()
        self._failed_in_a_row = 0
        self._shaken = False
        self._over = False

    def run(self, wait_s: float) -> None:
        """Wait for a run for at most `wait_s`, and be its client until it ends.

        Raises UsageError if it refuses this client, DriverError if there is none or it is lost. All
        that it started has then ended.
        """
        try:
            self._dealer.connect(f"tcp://{self._place}")
            self._join(wait_s)
            self._serve()
        finally:
            self._close()

    def _join(self, wait_s: float) -> None:
        """Connect, greet, and wait for the answer."""
        began_s, said = time.monotonic(), False
        while not self._look(BEAT_S):
            passed_s = time.monotonic() - began_s
            if self._failed_in_a_row >= REFUSALS:
                raise UsageError(
                    f"{self._place} refuses this token, or is not a run that waits for clients",
                    advice="Compare both with what the run printed when it began to wait.",
                )
            if passed_s >= wait_s:
                raise DriverError(f"no run has been waiting at {self._place} for {wait_s:g} s")
            if not said and passed_s > BEAT_S:
                said = True
                self._say(f"no run is waiting at {self._place} yet")
        self._send(self._greeting)
        deadline_s = time.monotonic() + SILENCE_S
        while True:
            answer = self._take()
            if isinstance(answer, Welcome):
                there = f"{answer.joined} of {answer.expected} clients"
                self._say(f"joined the run at {self._place} as {self._greeting.name}: {there}")
                return
            self._check_shaken()
            if time.monotonic() > deadline_s:
                raise DriverError(f"the run at {self._place} does not answer")
            self._look(BEAT_S)

    def _serve(self) -> None:
        """Do what the run asks for, until it is over."""
        silent_s, looked_s, beat_s = 0.0, time.monotonic(), 0.0
        while True:
            # What it said last comes before the end of the connection.
            while (message := self._take()) is not None:
                silent_s = 0.0
                self._do(message)
            if self._over:
                break
            self._check_shaken()
            now_s = time.monotonic()
            # While this process is not scheduled, no more than a second counts.
            silent_s, looked_s = silent_s + min(now_s - looked_s, 1.0), now_s
            if silent_s > SILENCE_S:
                raise DriverError(f"the run at {self._place} has been silent for {SILENCE_S:g} s")
            if now_s - beat_s >= BEAT_S:
                beat_s = now_s
                self._send(Alive())
            self._report_ended()
            self._look(BEAT_S)
        self._say("the run has ended")

    def _do(self, message: FromRun) -> None:
        if isinstance(message, Start):
            if message.program in self._programs:
                raise DriverError(f"the run at {self._place} started {message.program} twice")
            host = message.address or self._place.host
            argv = (*self._worker, host, str(message.port), str(message.number))
            line = message.line.get_secret_value().encode() + b"\n"
            self._programs[message.program] = _WorkerProcess(argv, line)
        elif isinstance(message, Stop | Kill):
            program = self._programs.get(message.program)
            if program is not None:
                program.stop(kill=isinstance(message, Kill))
        elif isinstance(message, Over):
            self._over = True

    def _report_ended(self) -> None:
        for number, program in list(self._programs.items()):
            code = program.process.poll()
            if code is not None:
                del self._programs[number]
                self._send(Ended(program=number, code=code, tail=program.close()))

    def _check_shaken(self) -> None:
        if not self._shaken:
            raise DriverError(
                f"the connection to the run at {self._place} is lost: the run was killed, or the "
                "network failed"
            )

    # ---- the connection

    def _look(self, patience_s: float) -> bool:
        """Wait until something has arrived; whether there is a connection."""
        poller = zmq.Poller()
        poller.register(self._dealer, zmq.POLLIN)
        poller.register(self._monitor, zmq.POLLIN)
        poller.poll(round(patience_s * 1000))
        while self._monitor.poll(0):
            event = recv_monitor_message(self._monitor)["event"]
            if event == zmq.Event.HANDSHAKE_SUCCEEDED:
                self._shaken, self._failed_in_a_row = True, 0
            elif event == zmq.Event.DISCONNECTED:
                self._shaken = False
            elif event in _FAILED:
                self._failed_in_a_row += 1
        return self._shaken

    def _send(self, message: FromClient) -> None:
        # A connection that is lost is noticed elsewhere.
        with contextlib.suppress(zmq.Again):
            self._dealer.send(message.model_dump_json().encode(), zmq.NOBLOCK)

    def _take(self) -> FromRun | None:
        """The run's next message. Raises UsageError for a refusal, DriverError for nonsense."""
        if not self._dealer.poll(0):
            return None
        data = self._dealer.recv()
        try:
            message: FromRun = FROM_RUN.validate_json(data)
        except ValidationError:
            ours = self._greeting.versions.words
            raise UsageError(
                f"the run at {self._place} sends what this client, with {ours}, cannot read",
                advice="Install the same versions on both.",
            ) from None
        if isinstance(message, Refusal):
            raise UsageError(f"the run at {self._place} refuses this client: {message.reason}")
        return message

    def _close(self) -> None:
        """Take leave, so that the run need not find out, and end all that was started."""
        if self._shaken:
            self._send(Leaving())
        for program in self._programs.values():
            program.stop()
        deadline_s = time.monotonic() + END_S
        for program in self._programs.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                program.process.wait(max(0.0, deadline_s - time.monotonic()))
            program.stop(kill=True)
            program.process.wait()
            program.close()
        self._dealer.disable_monitor()
        self._monitor.close(linger=0)
        self._dealer.close(linger=1000 if self._shaken else 0)
        self._context.term()


class _WorkerProcess:
    """A worker process, which is killed with this one; its log is kept until it has ended."""

    def __init__(self, argv: Sequence[str], line: bytes) -> None:
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - `close` closes it
        self.process = subprocess.Popen(
            [sys.executable, "-m", *argv, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self._log,
            env={**os.environ, "PYTHONPATH": str(IMPORTED_FROM), "PYTHONSAFEPATH": "1"},
        )
        # In a thread: one that does not read must not keep the run waiting.
        self._writing = threading.Thread(target=self._write, args=(line,), daemon=True)
        self._writing.start()

    def stop(self, *, kill: bool = False) -> None:
        """Have it end by the end of its stdin, or kill it."""
        self._writing.join(0.0 if kill else READ_S)
        if kill or self._writing.is_alive():
            self.process.kill()
            self._writing.join()
        if self.process.stdin is not None:
            with contextlib.suppress(OSError):
                self.process.stdin.close()

    def close(self) -> str:
        """The end of its log; it has ended."""
        self.stop()
        with self._log as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(0, size - TAIL_CHARACTERS))
            return log.read().decode(errors="replace")[-TAIL_CHARACTERS:]

    def _write(self, line: bytes) -> None:
        if self.process.stdin is not None:
            # How it ended is reported.
            with contextlib.suppress(OSError, ValueError):
                self.process.stdin.write(line)
                self.process.stdin.flush()
