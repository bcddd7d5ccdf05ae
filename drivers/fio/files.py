"""CephFS by fio: each worker has a file on a mount by ceph-fuse, and bypasses its caches.

FUSE passes O_DIRECT on to ceph-fuse, which then sends every request to the OSDs; a large one
reaches it in the pieces that the kernel makes. Files are separate because the kernel lets only one
worker at a time write to a file.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from weighbridge.common.host import Host
from weighbridge.drivers.driver import OnProgress
from weighbridge.drivers.fio.filesystem import CephFs
from weighbridge.drivers.fio.tool import FioDriver
from weighbridge.drivers.protocol import Cleaned, Cleanup, Prepare, Prepared
from weighbridge.drivers.rados.cluster import RadosCluster
from weighbridge.drivers.rados.host_commands import CommandOutput, kept_of
from weighbridge.drivers.rados.tool import FILL_S, object_bytes
from weighbridge.results.record.measurement import Load
from weighbridge.suites import Workload

_FILL_BYTES: Final = 2**20


class FioCephFs(FioDriver):
    """The driver of CephFS by fio; `mon` runs the metadata server, `pg_num` is the data pool's."""

    api = "cephfs"
    driver_name = "fio"

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
        self._system = CephFs(cluster, mon, name=f"{prefix}-fs", log=log, pg_num=pg_num)
        self._files: dict[str, int] = {}

    def versions(self) -> Mapping[str, str]:
        how = "engine psync, direct I/O, a file for each worker, on ceph-fuse"
        return {"fio on cephfs": f"{self.fio()}, {how} of {self.cluster.version()}"}

    def is_prepared(self, workload: Workload) -> bool:
        return workload.name in self._files

    def target(self, workload: Workload, workers: int) -> tuple[str, ...]:
        self._system.check()
        return (
            *self._placed(workload),
            "--ioengine=psync",
            "--direct=1",
            "--thread",
            f"--numjobs={workers}",
        )

    def notes(self, workload: Workload, workers: int) -> Sequence[str]:
        files = self._files[workload.name]
        notes = ["direct I/O through ceph-fuse"]
        if workers < files:
            notes.append(f"{workers} of {files} files were used: each worker has its own")
        return notes

    def client_load(self, ran: Sequence[CommandOutput]) -> Load | None:
        """Unknown: ceph-fuse does most of the work, and is not fio's."""
        return None

    def _placed(self, workload: Workload) -> tuple[str, ...]:
        folder = f"{self._system.mount}/{workload.name}"
        # With $filenum in place of $jobnum all workers of fio 3.33 but the first do nothing,
        # silently.
        return (
            f"--directory={folder}",
            "--filename_format=$jobnum",
            f"--size={self._file_bytes(workload)}",
        )

    def _file_bytes(self, workload: Workload) -> int:
        """A multiple of the object size, so that all files together have at least the workload's
        size.
        """
        return -(-workload.objects.count // max(workload.workers)) * object_bytes(workload)

    def prepare(self, command: Prepare, on_progress: OnProgress | None = None) -> Prepared:
        began = time.monotonic()
        workload = command.workload
        if workload.name in self._files:
            return Prepared(objects=0, bytes=0, seconds=0.0)
        if not self._system.is_mounted:
            self._system.start()
        files, size = max(workload.workers), self._file_bytes(workload)
        self.machine.run(["mkdir", "-p", f"{self._system.mount}/{workload.name}"])
        words = ["--rw=write", f"--bs={min(_FILL_BYTES, size)}", "--ioengine=psync", "--direct=1"]
        words += ["--thread", f"--numjobs={files}", *self._placed(workload)]
        ran = self.run([self.argv(*words)], "prepare", on_progress, total_s=FILL_S)
        self._files[workload.name] = files
        seconds = time.monotonic() - began
        return Prepared(
            objects=files, bytes=files * size, seconds=seconds, kept=kept_of(ran, "fio")
        )

    def cleanup(self, command: Cleanup, on_progress: OnProgress | None = None) -> Cleaned:
        """Do nothing after a step, which overwrites data; for `all` remove the files, and with the
        last ones the file system.
        """
        if command.what == "written" or command.workload.name not in self._files:
            return Cleaned(deleted=0)
        deleted = self._files.pop(command.workload.name)
        folder = f"{self._system.mount}/{command.workload.name}"
        self.machine.run(["rm", "-r", folder], timeout_s=FILL_S)
        if not self._files:
            self._system.stop()
        return Cleaned(deleted=deleted)

    def end(self) -> None:
        self._system.stop()
