"""Commands to a cluster: to its monitors in one session, and to daemons by their admin sockets."""

from __future__ import annotations

import json
import os
import select
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from weighbridge.common.errors import CommandFailed, ServiceFailed
from weighbridge.common.host import Host
from weighbridge.common.piped_process import PipedProcess
from weighbridge.gateways import program
from weighbridge.gateways.probe import Probe
from weighbridge.gateways.rgw.counters import OSD, RADOSGW, SHOWN_OF_OSD, SHOWN_OF_RADOSGW

Command = Mapping[str, Any]

_ANSWER_WITHIN_S = 90.0
_WATCH_S = 0.5


class Monitor:
    """One session with the monitors, kept open while a cluster starts.

    A context manager; calls `watch` while it waits.
    """

    def __init__(self, host: Host, watch: Callable[[], None]) -> None:
        """Start the session's program on the mon host. Raises CommandFailed."""
        self._host = host
        self._watch = watch
        self._argv = program.ship(host, "weighbridge.gateways.rgw.ask_mon")
        self._log = host.log("ask-mon.err")
        self._process: PipedProcess = host.spawn(self._argv, stderr=self._log)
        self._read = b""

    def ask(self, *commands: Command) -> list[str]:
        """The outputs of commands, which the session sends concurrently.

        Raises CommandFailed with the first one refused.
        """
        pipes = self._process.stdin, self._process.stdout
        assert pipes[0] is not None  # noqa: S101 - spawn promises pipes
        assert pipes[1] is not None  # noqa: S101
        try:
            pipes[0].write(json.dumps(commands).encode() + b"\n")
            pipes[0].flush()
        except BrokenPipeError:
            raise self._failed(self._process.wait()) from None
        answers = json.loads(self._line(pipes[1].fileno()))
        for command, (code, output, message) in zip(commands, answers, strict=True):
            if code:
                raise CommandFailed(
                    self._host.name, ("ceph", json.dumps(command)), code, f"{message}\n{output}"
                )
        return [output for _, output, _ in answers]

    def status(self) -> dict[str, Any]:
        """The output of `ceph status`."""
        found: dict[str, Any] = json.loads(self.ask({"prefix": "status", "format": "json"})[0])
        return found

    def _line(self, pipe: int) -> bytes:
        deadline = time.monotonic() + _ANSWER_WITHIN_S
        while b"\n" not in self._read:
            if select.select([pipe], [], [], _WATCH_S)[0]:
                chunk = os.read(pipe, 65536)
                if not chunk:
                    self._watch()
                    raise self._failed(self._process.wait())
                self._read += chunk
            else:
                self._watch()
                if time.monotonic() > deadline:
                    raise self._failed(None)
        line, self._read = self._read.split(b"\n", 1)
        return line

    def _failed(self, code: int | None) -> CommandFailed:
        return CommandFailed(
            self._host.name, self._argv, code, "\n".join(self._host.log_tail(self._log.name))
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        program.end(self._process)


@dataclass(frozen=True)
class CephDaemon:
    """A running Ceph daemon with its admin socket, such as osd.0 or client.rgw.gateway-1."""

    host: Host
    name: str

    @property
    def socket(self) -> str:
        """The path of its admin socket on its host."""
        return f"/run/ceph/{self.name}.asok"

    def failed(self, what: str, *, advice: str = "") -> ServiceFailed:
        """The error that `what` happened, with the last lines of its log."""
        log = f"{self.name}.log"
        return ServiceFailed(
            self.host.name,
            self.name,
            what,
            log=str(self.host.log(log)),
            tail=self.host.log_tail(log),
            advice=advice,
        )

    def probe(self) -> Probe:
        """The program that prints its counters every second; it is put on the host."""
        counters, shown = (
            (RADOSGW, SHOWN_OF_RADOSGW) if self.name.startswith("client.") else (OSD, SHOWN_OF_OSD)
        )
        # Users know client.rgw.gateway-1 as radosgw.gateway-1.
        name = self.name.replace("client.rgw", "radosgw")
        argv = program.ship(self.host, "weighbridge.gateways.rgw.ceph_counters")
        return Probe(self.host, name, (*argv, self.socket, *counters), counters=shown)


def ask(daemons: Sequence[CephDaemon], *commands: Command) -> dict[CephDaemon, list[str]]:
    """The answers of daemons of one host to commands, by daemon. Raises CommandFailed."""
    argv = program.ship(daemons[0].host, "weighbridge.gateways.rgw.ask_daemon")
    order = [[daemon.socket, command] for daemon in daemons for command in commands]
    answers: list[str] = json.loads(
        daemons[0].host.run(argv, stdin=json.dumps(order), timeout_s=120).stdout
    )
    size = len(commands)
    return {
        daemon: answers[index * size : (index + 1) * size] for index, daemon in enumerate(daemons)
    }


def option(answer: str, name: str) -> str | None:
    """The value in the answer to `config get`; None when the daemon does not know the option."""
    try:
        value = json.loads(answer).get(name)
    except json.JSONDecodeError:
        return None
    return None if value is None else str(value)
