"""The base of drivers by fio: its command line, its windows, and their measurements."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from weighbridge.common.errors import DriverError, InvalidMeasurement
from weighbridge.common.tool_output import json_object, printable
from weighbridge.drivers.fio.filesystem import FilesDriver
from weighbridge.drivers.protocol import (
    Measured,
    OnProgress,
    Prepared,
    Step,
)
from weighbridge.drivers.rados.block import ImageDriver
from weighbridge.drivers.rados.host_commands import CommandOutput, kept_of
from weighbridge.drivers.rados.tool import FILL_S, AdminToolDriver, now, object_bytes, one_operation
from weighbridge.results.run.histogram import Histogram
from weighbridge.results.run.step import Load, Measurement, Tally
from weighbridge.suites import Workload

# fio's output (3.33, `--output-format=json+`) as a tally.
#
# Latencies are from passing a request to the engine until it is done (`lat`). fio counts them in
# bins of 1/64 of a power of two and reports the middle of each, so a latency is off by at most
# 0.8 %; the histogram that they are put into is off by 0.1 %. Minimum, maximum and mean are
# exact.
#
# The count is `lat_ns.N`: requests done in the window. `total_ios` were started in it.


BINS_NOTE: Final = "latencies are from fio's bins: percentiles are within 0.8 %"


def tally_of(
    output: str, operation: Literal["read", "write"], request_bytes: int
) -> tuple[Tally, float]:
    """The tally of one reported group of jobs, and its window's seconds. Raises DriverError."""
    found = json_object("fio", output, DriverError)
    try:
        (job,) = found["jobs"]
        if job["error"]:
            raise DriverError(
                f"fio: error {printable(job['error'])}: {output[: output.find('{')][-300:]}"
            )
        side = job[operation]
        latency = side["lat_ns"]
        count, window_s = int(latency["N"]), float(side["runtime"]) / 1000
        if not 0 < window_s < math.inf and (count or window_s):
            raise DriverError(
                f"fio: {count} requests in a window of {window_s} s in its output: {output[:300]!r}"
            )
        if not count:
            return Tally(operation=operation, count=0, bytes=0), window_s
        bins = {int(middle): int(many) for middle, many in latency["bins"].items()}
        if sum(bins.values()) != count or min(bins.values()) < 0:
            raise DriverError(
                f"fio: its bins have {sum(bins.values())} requests, its total is {count}"
            )
        min_us, max_us = round(latency["min"] / 1000), round(latency["max"] / 1000)
        # The middle of the first and of the last bin may be outside of the exact extremes.
        counts = [
            (max(1, min(max(round(middle / 1000), min_us), max_us)), many)
            for middle, many in bins.items()
        ]
        tally = Tally(
            operation=operation,
            count=count,
            bytes=count * request_bytes,
            latency=Histogram.counted(counts).encode(),
            min_us=min_us,
            max_us=max_us,
            sum_us=round(float(latency["mean"]) * count / 1000),
        )
    except InvalidMeasurement as error:
        raise DriverError(f"fio: {error} (in its bins)") from error
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise DriverError(f"fio: {error!r} in its output: {output[:300]!r}") from error
    return tally, window_s


_JOBS: Final = {
    ("read", "sequential"): "read",
    ("read", "uniform"): "randread",
    ("write", "sequential"): "write",
    ("write", "uniform"): "randwrite",
}


class FioDriver(AdminToolDriver):
    """A driver by fio of the tools' image, which hosts must have been started with."""

    api: Literal["rbd", "cephfs"]
    driver_name: Literal["fio-rbd", "fio"]

    def fio(self) -> str:
        """Fio's version. Raises MissingPrerequisite, CommandFailed."""
        return self.machine.run([*self.machine.tool("fio"), "--version"]).stdout.strip()

    def argv(self, *words: str) -> tuple[str, ...]:
        """A command with the common options; by its seed offsets are the same in every run."""
        common = ("--output-format=json+", "--eta=never", "--randseed=2014", "--group_reporting")
        return (*self.machine.tool("fio"), "--name=weighbridge", *common, *words)

    @abstractmethod
    def target(self, workload: Workload, workers: int) -> tuple[str, ...]:
        """Fio's options for what these workers read or write."""

    @abstractmethod
    def is_prepared(self, workload: Workload) -> bool:
        """Whether the workload was prepared."""

    def notes(self, workload: Workload, workers: int) -> Sequence[str]:
        return ()

    def step(self, command: Step, on_progress: OnProgress | None = None) -> Measured:
        """Run fio through warm-up (which it excludes itself) and window."""
        workload = command.workload
        operation = one_operation(workload)
        if not self.is_prepared(workload):
            raise DriverError(f"{workload.name} was not prepared")
        size = object_bytes(workload)
        words = [f"--rw={_JOBS[operation, str(workload.pick)]}", f"--bs={size}", "--time_based"]
        words += [
            f"--ramp_time={round(workload.warmup * 1000)}ms",
            f"--runtime={round(workload.runtime * 1000)}ms",
        ]
        # Latencies as clients see them, and offsets drawn independently, not each once before any
        # twice.
        words += ["--lat_percentiles=1", "--clat_percentiles=0", "--norandommap"]
        started_at = now()
        argv = self.argv(*words, *self.target(workload, command.workers))
        ran = self.run(
            [argv], "measure", on_progress, total_s=workload.runtime, warmup_s=workload.warmup
        )
        tally, window_s = tally_of(ran[0].text, operation, size)
        measurement = Measurement(
            api=self.api,
            workload=workload.name,
            workers=command.workers,
            driver=self.driver_name,
            started_at=started_at,
            window_s=window_s,
            warmup_s=workload.warmup,
            tallies=(tally,),
            load=self.client_load(ran),
            notes=(BINS_NOTE, *self.notes(workload, command.workers)),
        )
        return Measured(measurement=measurement, kept=kept_of(ran, "fio"))

    def client_load(self, ran: Sequence[CommandOutput]) -> Load | None:
        return self.load(ran)


# fio uses the librbd of the tools' image (16.2), the same client for all releases of clusters.


class FioRbd(ImageDriver, FioDriver):
    """The driver of RBD by fio. A worker is an outstanding request: all come from one client."""

    api = "rbd"
    driver_name = "fio-rbd"
    mark = "fio"

    def versions(self) -> Mapping[str, str]:
        how = (
            "engine rbd with the librbd of the tools' image, image without cache, completely "
            "written first"
        )
        return {"fio on rbd": f"{self.fio()}, {how}; the cluster: {self.cluster.version()}"}

    def is_prepared(self, workload: Workload) -> bool:
        return workload.name in self._images

    def target(self, workload: Workload, workers: int) -> tuple[str, ...]:
        image = self._images[workload.name]
        where = (
            "--ioengine=rbd",
            "--clientname=admin",
            f"--pool={image.pool}",
            f"--rbdname={image.name}",
        )
        return (*where, f"--iodepth={workers}")


# CephFS by fio: each worker has a file on a mount by ceph-fuse, and bypasses its caches.
#
# FUSE passes O_DIRECT on to ceph-fuse, which then sends every request to the OSDs; a large one
# reaches it in the pieces that the kernel makes. Files are separate because the kernel lets only
# one worker at a time write to a file.


_FILL_BYTES: Final = 2**20


class FioCephFs(FilesDriver, FioDriver):
    """The driver of CephFS by fio."""

    api = "cephfs"
    driver_name = "fio"
    mark = "fs"

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
        # With $filenum in place of $jobnum all workers of fio 3.33 but the first do nothing,
        # silently.
        return (
            f"--directory={self.place(workload)}",
            "--filename_format=$jobnum",
            f"--size={self._file_bytes(workload)}",
        )

    def _file_bytes(self, workload: Workload) -> int:
        return -(-workload.objects.count // max(workload.workers)) * object_bytes(workload)

    def fill(self, workload: Workload, on_progress: OnProgress | None) -> Prepared:
        files, size = max(workload.workers), self._file_bytes(workload)
        self.machine.run(["mkdir", "-p", self.place(workload)])
        words = ["--rw=write", f"--bs={min(_FILL_BYTES, size)}", "--ioengine=psync", "--direct=1"]
        words += ["--thread", f"--numjobs={files}", *self._placed(workload)]
        ran = self.run([self.argv(*words)], "prepare", on_progress, total_s=FILL_S)
        return Prepared(objects=files, bytes=files * size, seconds=0.0, kept=kept_of(ran, "fio"))
