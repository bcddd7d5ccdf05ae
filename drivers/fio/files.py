"""CephFS by fio: each worker reads or writes a file of its own on a mount by ceph-fuse, past its
caches.

FUSE passes O_DIRECT on to ceph-fuse, which then goes to the OSDs with every request; a large one
reaches it in pieces, as the kernel cuts them. A file each, because the kernel lets one worker at a
time write to a file.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from weighbridge.common.errors import DriverError, TargetError
from weighbridge.common.host import Host
from weighbridge.drivers.driver import Heard
from weighbridge.drivers.fio.filesystem import CephFs
from weighbridge.drivers.fio.tool import FioTool
from weighbridge.drivers.order import Cleaned, Cleanup, Prepare, Prepared
from weighbridge.drivers.rados.cluster import RadosCluster
from weighbridge.drivers.rados.host_commands import CommandOutput, kept_of
from weighbridge.drivers.rados.tool import FILL_S, object_bytes
from weighbridge.results.record.measurement import Load
from weighbridge.suites import Workload

_FILL_BYTES: Final = 2**20


class FioCephFs(FioTool):
    """The driver; `mon` is the host that the metadata server runs on, `pg_num` what the data has of
    placement groups.
    """

    api = "cephfs"
    named = "fio"

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
        """Of fio and of the cluster."""
        how = "engine psync, direct I/O, a file for each worker, on ceph-fuse"
        return {"fio on cephfs": f"{self.fio()}, {how} of {self.cluster.version()}"}

    def ready(self, workload: Workload) -> bool:
        """Whether its files are there."""
        return workload.name in self._files

    def target(self, workload: Workload, workers: int) -> tuple[str, ...]:
        """A file for each of so many workers."""
        self._system.check()
        return (
            *self._placed(workload),
            "--ioengine=psync",
            "--direct=1",
            "--thread",
            f"--numjobs={workers}",
        )

    def notes(self, workload: Workload, workers: int) -> Sequence[str]:
        """How it reached the store, and whether all files were used."""
        files = self._files[workload.name]
        notes = ["direct I/O through ceph-fuse"]
        if workers < files:
            notes.append(f"{workers} of {files} files were used: each worker has one of its own")
        return notes

    def used(self, ran: Sequence[CommandOutput]) -> Load | None:
        """Not known: ceph-fuse does most of the work, and is not fio's."""
        return None

    def _placed(self, workload: Workload) -> tuple[str, ...]:
        folder = f"{self._system.mount}/{workload.name}"
        # $filenum in place of $jobnum lets all workers but the first of fio 3.33 do nothing, and it
        # does not say so.
        return (
            f"--directory={folder}",
            "--filename_format=$jobnum",
            f"--size={self._file_bytes(workload)}",
        )

    def _file_bytes(self, workload: Workload) -> int:
        """Whole objects: what all workers of the largest step have together is at least what the
        workload says.
        """
        return -(-workload.objects.count // max(workload.workers)) * object_bytes(workload)

    def prepare(self, order: Prepare, heard: Heard | None = None) -> Prepared:
        """Make the file system, and write a file for each worker of the largest step."""
        began = time.monotonic()
        workload = order.workload
        if workload.name in self._files:
            return Prepared(objects=0, bytes=0, seconds=0.0)
        if not self._system.stands:
            self._system.up()
        files, size = max(workload.workers), self._file_bytes(workload)
        self.machine.run(["mkdir", "-p", f"{self._system.mount}/{workload.name}"])
        words = (
            "--rw=write",
            f"--bs={min(_FILL_BYTES, size)}",
            "--ioengine=psync",
            "--direct=1",
            "--thread",
            f"--numjobs={files}",
        )
        ran = self.run(
            [self.argv(*words, *self._placed(workload))], "prepare", heard, total_s=FILL_S
        )
        self._files[workload.name] = files
        seconds = time.monotonic() - began
        return Prepared(
            objects=files, bytes=files * size, seconds=seconds, kept=kept_of(ran, "fio")
        )

    def cleanup(self, order: Cleanup, heard: Heard | None = None) -> Cleaned:
        """Nothing after a step, which overwrites what is there; for `all` the files go, and the
        file system with the last.
        """
        if order.what == "written" or order.workload.name not in self._files:
            return Cleaned(deleted=0)
        deleted = self._files.pop(order.workload.name)
        self.machine.run(
            ["rm", "-r", f"{self._system.mount}/{order.workload.name}"], timeout_s=FILL_S
        )
        if not self._files:
            self._system.down()
        return Cleaned(deleted=deleted)

    def end(self) -> None:
        """Unmount and remove the file system."""
        self._system.down()

    def close(self) -> None:
        """End everything; what cannot be removed goes with the cluster."""
        self.crew.close()
        with contextlib.suppress(TargetError, DriverError):
            self._system.down()
