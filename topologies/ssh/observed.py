"""Hosts of a cluster that already runs: their counters, by a program in an ssh session that only
reads, and programs that a layout names. This suite writes no file there and changes nothing.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from weighbridge.common.errors import TargetError, UsageError
from weighbridge.common.host import Counters
from weighbridge.common.tool_output import printable
from weighbridge.topologies.hardware import Hardware, HostSpec, Observed
from weighbridge.topologies.ssh.connection import RemoteProgram, SshConnection
from weighbridge.topologies.ssh.host_telemetry import HostTelemetry, source

_LOOK: Final = """
nproc
for disk; do
  test -b "$disk" || { echo "$disk: there is no such block device" >&2; exit 1; }
  stat -Lc %t:%T "$disk"
done
"""
"""Prints the number of CPUs, and of each device its major and minor number in hexadecimal."""
_NUMBERS: Final = re.compile(r"[0-9a-f]{1,8}:[0-9a-f]{1,8}")


class ObservedHost:
    """One such host, from its first reading on. `connect` makes a connection to it."""

    def __init__(
        self,
        connect: Callable[[], SshConnection],
        of: Observed,
        python: str,
        folder: Path,
        name: str,
    ) -> None:
        """Raises UsageError, MissingPrerequisite, CommandFailed or TargetError."""
        self.name = name
        self.python = python
        self._connect = connect
        self._programs = connect()
        connection = connect()
        self._stack = contextlib.ExitStack()
        with contextlib.ExitStack() as stack:
            stack.callback(connection.close)
            connection.reach()
            self.cores, numbers = _looked_at(connection, of)
            words = {"group": None, "nic": of.nic, "disks": numbers, "log": "/nonexistent"}
            errors = folder / f"observed-{name}.err"
            start = partial(
                connection.spawn,
                (python, "-I", "-B", "-c", source(), json.dumps(words)),
                stderr=errors,
                # With the session its stdin ends, and it with that.
                send=lambda _: connection.close(),
            )
            self._telemetry = HostTelemetry(start, connection.where, errors=errors)
            stack.callback(self._telemetry.close)
            self._telemetry.counters()  # from now on
            self._stack = stack.pop_all()

    def counters(self) -> Counters:
        """What was used since the first reading. Raises TargetError."""
        return self._telemetry.counters()

    def spawn(
        self, argv: Sequence[str], *, stderr: Path, env: Mapping[str, str] | None = None
    ) -> RemoteProgram:
        """Start a program as the user of the login, beside the counters. When its session ends, its
        stdin does: it must end by itself then. Raises TargetError.
        """
        if self._programs.lost:
            self._drop(self._programs)  # it may answer again
        connection = self._programs
        variables = {"LC_ALL": "C.UTF-8", **(env or {})}
        words = ("env", *(f"{key}={value}" for key, value in variables.items()), *argv)
        stderr.parent.mkdir(parents=True, exist_ok=True)
        try:
            return connection.spawn(words, stderr=stderr, send=lambda _: self._drop(connection))
        except UsageError as error:  # such as a login that is refused now
            raise TargetError(error.message, advice=error.advice) from error

    def _drop(self, connection: SshConnection) -> None:
        if connection is self._programs:
            self._programs = self._connect()
        connection.close()

    def close(self) -> None:
        try:
            self._programs.close()
        finally:
            self._stack.close()


class ObservedHosts:
    """All of a hardware file, by name; closed once."""

    def __init__(self, hardware: Hardware, folder: Path) -> None:
        """Raises as `ObservedHost`, after all connections are closed."""
        self._stack = contextlib.ExitStack()
        self.hosts: Mapping[str, ObservedHost] = {}
        with contextlib.ExitStack() as stack:
            folder.mkdir(parents=True, exist_ok=True)
            found: dict[str, ObservedHost] = {}
            for name, one in hardware.observed.items():
                spec = HostSpec(ssh=one.ssh)
                connect = partial(SshConnection, name, spec, hardware.access)
                host = ObservedHost(connect, one, hardware.access.python, folder, name)
                stack.callback(host.close)
                found[name] = host
            self.hosts = found
            self._stack = stack.pop_all()

    def close(self) -> None:
        self._stack.close()


def _looked_at(connection: SshConnection, of: Observed) -> tuple[int, list[str]]:
    lines = connection.sh(_LOOK, *of.disks).stdout.split()
    if (
        len(lines) != 1 + len(of.disks)
        or not re.fullmatch(r"[1-9][0-9]{0,4}", lines[0])
        or not all(_NUMBERS.fullmatch(one) for one in lines[1:])
    ):
        shown = printable(" ".join(lines))
        raise TargetError(f"{connection.where}: does not say its CPUs and disks: {shown}")
    pairs = [one.split(":") for one in lines[1:]]
    return int(lines[0]), [f"{int(major, 16)}:{int(minor, 16)}" for major, minor in pairs]
