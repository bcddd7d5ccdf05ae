"""bonnie++ on CephFS, mounted by ceph-fuse without caches: its parts of blocks, without those of
single characters and of small files.

One run writes, rewrites, reads and seeks in a file of all blocks of a workload; a step takes the
part that the workload names. On RBD it would need a block device and a file system on it, which
hosts without the kernel modules rbd or nbd cannot have.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

from weighbridge.common.errors import DriverError
from weighbridge.common.host import Host
from weighbridge.common.tool_output import printable
from weighbridge.drivers.fio.filesystem import CephFs
from weighbridge.drivers.protocol import (
    Cleaned,
    Cleanup,
    Measured,
    OnProgress,
    Prepare,
    Prepared,
    Step,
)
from weighbridge.drivers.rados.cluster import RadosCluster
from weighbridge.drivers.rados.host_commands import kept_of
from weighbridge.drivers.rados.tool import FILL_S, AdminToolDriver, now, object_bytes, one_operation
from weighbridge.results.run.step import Measurement, Tally

# A line of bonnie++ (2.00a, `-q`: only CSV on stdout) as a tally.
#
# Its fields are those of bon_csv2html(1), format 1.98: 2 the name, 11 blocks written and 17 read,
# in KiB a second as whole numbers. `+++++` stands for a part that took less than half a second:
# it is not a figure. Latencies are only maxima of requests, without a mean, and are left out.


_FORMATS: Final = ("1.96", "1.97", "1.98")
_FIELDS: Final = 44
"""All figures of the test of throughput are before this one."""
_NAME: Final = 2
_RATE: Final = {"write": 11, "read": 17}
_WHOLE: Final = re.compile(r"[0-9]{1,12}", re.ASCII)
TOO_FAST: Final = "+++++"


def tally_of(
    printed: str,
    operation: Literal["read", "write"],
    *,
    name: str,
    block_bytes: int,
    file_bytes: int,
) -> tuple[Tally, float]:
    """The tally of one part, and how many seconds it took by its own rate. Raises DriverError."""
    try:
        lines = [line for line in csv.reader(printed.splitlines()) if line[:1]]
    except csv.Error as error:
        raise DriverError(f"bonnie++: {error}: {printable(printed[-300:])!r}") from error
    found = [line for line in lines if line[0] in _FORMATS and len(line) >= _FIELDS]
    if len(found) != 1 or found[0][_NAME] != name:
        raise DriverError(f"bonnie++: no single result line in {printable(printed[-300:])!r}")
    figure = found[0][_RATE[operation]]
    if figure == TOO_FAST:
        raise DriverError(
            f"bonnie++: it took less than half a second to {operation} its file, too short to "
            "measure",
            advice="Give the workload more objects.",
        )
    if not _WHOLE.fullmatch(figure) or not int(figure):
        raise DriverError(f"bonnie++: {printable(figure)!r} is not a number of KiB per second")
    count = file_bytes // block_bytes
    seconds = file_bytes / (int(figure) * 1024)
    return Tally(operation=operation, count=count, bytes=count * block_bytes, sum_us=None), seconds


NAME: Final = "weighbridge"
"""The machine's name in its output."""
BONNIE: Final = "bonnie++"


class BonnieCephFs(AdminToolDriver):
    """The driver of CephFS by bonnie++; `mon` runs the metadata server."""

    def __init__(
        self, cluster: RadosCluster, mon: Host, *, prefix: str, log: Path, pg_num: int = 32
    ) -> None:
        super().__init__(cluster, prefix=prefix, log=log)
        name = f"{prefix}-bonnie-fs"
        # It reads what it has just written, and not by direct I/O: as in the study, that would be
        # the speed of memory.
        self._system = CephFs(cluster, mon, name=name, log=log, pg_num=pg_num, caches=False)
        self._prepared: set[str] = set()

    def versions(self) -> Mapping[str, str]:
        # bonnie++ has no option for its version alone; it is in every line of its output.
        self.machine.tool(BONNIE)
        how = "bonnie++ 2.00a, one request outstanding, file on a mount by ceph-fuse without caches"
        return {"bonnie++ on cephfs": f"{how}; {self.cluster.version()}"}

    def prepare(self, command: Prepare, on_progress: OnProgress | None = None) -> Prepared:
        if not self._system.is_mounted:
            self._system.start()
        self._prepared.add(command.workload.name)
        return Prepared(objects=0, bytes=0, seconds=0.0)

    def step(self, command: Step, on_progress: OnProgress | None = None) -> Measured:
        self._system.check()
        workload = command.workload
        operation = one_operation(workload)
        block = object_bytes(workload)
        total = workload.objects.count * block
        # -r 0: the file need not be twice the memory, since nothing is cached. -n 0: no
        # small files. -f: no single characters. One seek: that part is not used.
        words = ["-d", self._system.mount, "-s", f"{total // 2**20}:{block}:1:1", "-r", "0"]
        words += ["-n", "0", "-f", "-D", "-u", "root", "-q", "-m", NAME]

        started_at = now()
        argv = (*self.machine.tool(BONNIE), *words)
        # As long as it takes: its file is of the size that the suite says.
        ran = self.run([argv], "measure", on_progress, total_s=workload.runtime, grace_s=FILL_S)
        tally, window_s = tally_of(
            ran[0].text, operation, name=NAME, block_bytes=block, file_bytes=total
        )
        measurement = Measurement(
            api="cephfs",
            workload=workload.name,
            workers=command.workers,
            driver="bonnie",
            started_at=started_at,
            window_s=window_s,
            warmup_s=0.0,
            tallies=(tally,),
            load=None,  # ceph-fuse does most of the work, and is not bonnie++'s
            notes=("ceph-fuse without caches; the window is as long as this part took",),
        )
        return Measured(measurement=measurement, kept=kept_of(ran, "bonnie"))

    def cleanup(self, command: Cleanup, on_progress: OnProgress | None = None) -> Cleaned:
        """Do nothing: bonnie++ removes its file; after the last workload remove the file system."""
        if command.what == "all":
            self._prepared.discard(command.workload.name)
            if not self._prepared:
                self._system.stop()
        return Cleaned(deleted=0)

    def end(self) -> None:
        """Unmount and remove the file system. Raises TargetError."""
        self._system.stop()
