"""CephFS in a cluster without one, mounted by ceph-fuse, and drivers on its files."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, Final

from weighbridge.common.errors import CommandFailed, TargetError
from weighbridge.common.host import Host, PipedProcess
from weighbridge.common.program_lines import end
from weighbridge.drivers.protocol import (
    Cleaned,
    Cleanup,
    DriverFailure,
    OnProgress,
    Prepare,
    Prepared,
)
from weighbridge.drivers.rados.cluster import RadosCluster
from weighbridge.drivers.rados.tool import FILL_S, AdminToolDriver
from weighbridge.suites import Workload

METADATA_PG_NUM: Final = 8
UNCACHED: Final = ("--client-oc=false", "--fuse-disable-pagecache=true")
_MDS: Final = "weighbridge"
_KEYRING: Final = f"/var/lib/ceph/mds.{_MDS}.keyring"
_UP_WITHIN_S: Final = 60.0
END_WITHIN_S: Final = 5.0
_POLL_S: Final = 0.5

LOGGED: Final = 'exec "$@" >>/var/log/host/$0.out 2>&1'
"""A shell that runs a program with a log of its host: nobody reads a pipe while a step runs."""


class CephFs:
    """A CephFS mounted on `cluster.machine`; without `caches` not even its kernel keeps data."""

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
        check_fuse(cluster.machine, "CephFS")
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
        self._await("ceph-fuse", lambda: mounted(cluster.machine, self.mount))

    def check(self) -> None:
        """Raise DriverFailure when the metadata server or ceph-fuse has ended."""
        for program, what in zip(self._programs, ("ceph-mds", "ceph-fuse"), strict=False):
            if program.poll() is not None:
                host = self._mon if what == "ceph-mds" else self._cluster.machine
                ended = f"{host.name}: {what} has ended with {program.returncode}"
                raise DriverFailure(f"{ended}\n{tail_of(host, what)}")

    def stop(self) -> None:
        """Unmount and remove it, as far as it was started. Raises TargetError for what is left."""
        if self.is_mounted:
            unmount(self._cluster.machine, self.mount)
            self.is_mounted = False
        for program in reversed(self._programs):
            end(program, within_s=0, terminate_s=END_WITHIN_S)
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


class FilesDriver(AdminToolDriver):
    """A driver whose tool uses files on a mount of CephFS by ceph-fuse; `mon` runs the metadata
    server, `pg_num` is the data pool's.
    """

    mark: ClassVar[str]
    """The end of the file system's name."""

    def __init__(
        self,
        cluster: RadosCluster,
        mon: Host,
        *,
        prefix: str,
        log: Path,
        pg_num: int = 32,
        cpus: float | None = None,
    ) -> None:
        super().__init__(cluster, prefix=prefix, log=log, cpus=cpus)
        name = f"{prefix}-{self.mark}"
        self._system = CephFs(cluster, mon, name=name, log=log, pg_num=pg_num)
        self._files: dict[str, int] = {}

    def place(self, workload: Workload) -> str:
        """The file or folder of a workload."""
        return f"{self._system.mount}/{workload.name}"

    @abstractmethod
    def fill(self, workload: Workload, on_progress: OnProgress | None) -> Prepared:
        """Write a workload's files."""

    def prepare(self, command: Prepare, on_progress: OnProgress | None = None) -> Prepared:
        began = time.monotonic()
        workload = command.workload
        if workload.name in self._files:
            return Prepared(objects=0, bytes=0, seconds=0.0)
        if not self._system.is_mounted:
            self._system.start()
        prepared = self.fill(workload, on_progress)
        self._files[workload.name] = prepared.objects
        return prepared.model_copy(update={"seconds": time.monotonic() - began})

    def cleanup(self, command: Cleanup, on_progress: OnProgress | None = None) -> Cleaned:
        """A step overwrites data; `all` removes the files, and the last ones the file system."""
        if command.what == "written" or command.workload.name not in self._files:
            return Cleaned(deleted=0)
        deleted = self._files.pop(command.workload.name)
        self.machine.run(["rm", "-r", self.place(command.workload)], timeout_s=FILL_S)
        if not self._files:
            self._system.stop()
        return Cleaned(deleted=deleted)

    def end(self) -> None:
        self._system.stop()


def check_fuse(machine: Host, what: str) -> None:
    """Raise DriverFailure where nothing can be mounted by FUSE."""
    if not Path("/dev/fuse").is_char_device():
        raise DriverFailure(
            f"{machine.name}: no /dev/fuse: {what} cannot be mounted",
            advice="Load the kernel module fuse.",
        )


def mounted(machine: Host, folder: str) -> bool:
    """Whether something is mounted there. Raises TargetError."""
    try:
        machine.run(["mountpoint", "-q", folder])
    except CommandFailed:
        return False
    return True


def unmount(machine: Host, folder: str) -> None:
    """Unmount, or detach a mount that hangs so that its program can end. Raises CommandFailed."""
    words = 'umount "$0" || umount --lazy "$0" || ! mountpoint -q "$0"'
    machine.run(["sh", "-c", words, folder])


def tail_of(host: Host, name: str) -> str:
    """The last lines of a program's log, indented."""
    try:
        text = host.run(["tail", "-n", "15", f"/var/log/host/{name}.out"]).stdout
    except TargetError:
        return "  | (there is no log)"
    return "\n".join(f"  | {line}" for line in text.splitlines())
