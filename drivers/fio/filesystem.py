"""CephFS in a cluster without one: two pools, a file system, a metadata server on the mon's host,
and a mount by ceph-fuse.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from weighbridge.common.errors import CommandFailed, TargetError
from weighbridge.common.host import Host, PipedProcess
from weighbridge.drivers.protocol import DriverFailure
from weighbridge.drivers.rados.cluster import RadosCluster

METADATA_PG_NUM: Final = 8
UNCACHED: Final = ("--client-oc=false", "--fuse-disable-pagecache=true")
_MDS: Final = "weighbridge"
_KEYRING: Final = f"/var/lib/ceph/mds.{_MDS}.keyring"
_UP_WITHIN_S: Final = 60.0
_END_WITHIN_S: Final = 5.0
_POLL_S: Final = 0.5

LOGGED: Final = 'exec "$@" >>/var/log/host/$0.out 2>&1'
"""A shell that runs a program with a log of its host: nobody reads a pipe while a step runs."""


class CephFs:
    """A file system with a metadata server and a mount on `cluster.machine`; `log` has the shells'
    stderr. Without `caches` neither ceph-fuse nor its kernel keeps data: for tools that read what
    they wrote by other than direct I/O.
    """

    def __init__(
        self,
        cluster: RadosCluster,
        mon: Host,
        *,
        name: str,
        log: Path,
        pg_num: int,
        caches: bool = True,
    ) -> None:
        self._cluster = cluster
        self._mon = mon
        self._name = name
        self._log = log
        self._pg_num = pg_num
        self._options = () if caches else UNCACHED
        self._programs: list[PipedProcess] = []
        self._made = False
        self._keyed = False
        self.mount = f"/run/{name}"
        """The mount point."""
        self.is_mounted = False

    def start(self) -> None:
        """Make it and mount it. Raises CommandFailed, DriverFailure."""
        cluster, name = self._cluster, self._name
        if not Path("/dev/fuse").is_char_device():
            raise DriverFailure(
                f"{cluster.machine.name}: no /dev/fuse: CephFS cannot be mounted",
                advice="Load the kernel module fuse.",
            )
        cluster.make_pools({f"{name}-metadata": METADATA_PG_NUM, f"{name}-data": self._pg_num}, "")
        cluster.ceph("fs", "new", name, f"{name}-metadata", f"{name}-data")
        self._made = True
        caps = ("mon", "allow profile mds", "mgr", "allow profile mds", "osd", "allow rwx")
        self._keyed = True
        key = cluster.ceph("auth", "get-or-create", f"mds.{_MDS}", *caps, "mds", "allow")
        self._mon.put(_KEYRING, key, mode=0o600)
        self._start(self._mon, "ceph-mds", "ceph-mds", "-f", "-i", _MDS, "--keyring", _KEYRING)
        self._await_active()
        cluster.machine.run(["mkdir", "-p", self.mount])
        self.is_mounted = True
        self._start(cluster.machine, "ceph-fuse", "ceph-fuse", "-f", *self._options, self.mount)
        self._await("ceph-fuse", self._mounted)

    def check(self) -> None:
        """Raise DriverFailure when the metadata server or ceph-fuse has ended."""
        for program, what in zip(self._programs, ("ceph-mds", "ceph-fuse"), strict=False):
            if program.poll() is not None:
                host = self._mon if what == "ceph-mds" else self._cluster.machine
                ended = f"{host.name}: {what} has ended with {program.returncode}"
                raise DriverFailure(f"{ended}\n{tail_of(host, what)}")

    def stop(self) -> None:
        """Unmount and remove it, as far as it was started.

        Raises TargetError for what could not be removed.
        """
        if self.is_mounted:
            # A mount that hangs is detached, so that its program can be ended.
            unmount = 'umount "$0" || umount --lazy "$0" || ! mountpoint -q "$0"'
            self._cluster.machine.run(["sh", "-c", unmount, self.mount])
            self.is_mounted = False
        for program in reversed(self._programs):
            end_program(program)
        self._programs.clear()
        if self._made:
            self._cluster.ceph("fs", "fail", self._name)
            self._cluster.ceph("fs", "rm", self._name, "--yes-i-really-mean-it")
            self._made = False
        if self._keyed:
            self._cluster.ceph("auth", "rm", f"mds.{_MDS}")
            self._keyed = False
        self._cluster.remove_made()

    def _start(self, host: Host, name: str, *argv: str) -> None:
        self._programs.append(host.spawn(["sh", "-c", LOGGED, name, *argv], stderr=self._log))

    def _await_active(self) -> None:
        def active() -> bool:
            systems = (one["mdsmap"] for one in self._cluster.ask("fs", "dump")["filesystems"])
            return any(
                mds["state"] == "up:active"
                for system in systems
                if system["fs_name"] == self._name
                for mds in system["info"].values()
            )

        self._await("ceph-mds", active)
        self._cluster.await_clean()

    def _mounted(self) -> bool:
        try:
            self._cluster.machine.run(["mountpoint", "-q", self.mount])
        except CommandFailed:
            return False
        return True

    def _await(self, what: str, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _UP_WITHIN_S
        while not done():
            self.check()
            if time.monotonic() > deadline:
                host = self._mon if what == "ceph-mds" else self._cluster.machine
                raise DriverFailure(
                    f"{host.name}: {what} was not ready after {_UP_WITHIN_S:g} s\n"
                    f"{tail_of(host, what)}"
                )
            time.sleep(_POLL_S)


def tail_of(host: Host, name: str) -> str:
    """The last lines of a program's log, indented."""
    try:
        text = host.run(["tail", "-n", "15", f"/var/log/host/{name}.out"]).stdout
    except TargetError:
        return "  | (there is no log)"
    return "\n".join(f"  | {line}" for line in text.splitlines())


def end_program(program: PipedProcess) -> None:
    """End it, by force if it does not end by itself, and close its pipes."""
    program.send_signal(signal.SIGTERM)
    try:
        program.wait(_END_WITHIN_S)
    except subprocess.TimeoutExpired:
        program.kill()
        program.wait()
    for pipe in (program.stdin, program.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
