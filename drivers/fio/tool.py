"""What the drivers by fio have alike: how it is told what to do, its windows, and what comes of
them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Final, Literal

from weighbridge.common.errors import DriverError
from weighbridge.drivers.driver import Heard
from weighbridge.drivers.fio.answer import BINS_NOTE, tally_of
from weighbridge.drivers.order import Measured, Step
from weighbridge.drivers.rados.host_commands import CommandOutput, kept_of
from weighbridge.drivers.rados.tool import Tool, now, object_bytes, one_operation
from weighbridge.results.record.measurement import Load, Measurement
from weighbridge.suites import Workload

_JOBS: Final = {
    ("read", "sequential"): "read",
    ("read", "uniform"): "randread",
    ("write", "sequential"): "write",
    ("write", "uniform"): "randwrite",
}


class FioTool(Tool):
    """A driver by fio, the one of the image of tools: hosts must have been raised with it."""

    api: Literal["rbd", "cephfs"]
    named: Literal["fio-rbd", "fio"]

    def fio(self) -> str:
        """Which fio it is. Raises MissingMeans, CommandFailed."""
        return self.machine.run([*self.machine.tool("fio"), "--version"]).stdout.strip()

    def argv(self, *words: str) -> tuple[str, ...]:
        """The command with what all of its uses have alike; a seed makes places the same in every
        run.
        """
        alike = ("--output-format=json+", "--eta=never", "--randseed=2014", "--group_reporting")
        return (*self.machine.tool("fio"), "--name=weighbridge", *alike, *words)

    @abstractmethod
    def target(self, workload: Workload, workers: int) -> tuple[str, ...]:
        """What is read or written by so many workers, in words for fio."""

    @abstractmethod
    def ready(self, workload: Workload) -> bool:
        """Whether the workload was prepared."""

    def notes(self, workload: Workload, workers: int) -> Sequence[str]:
        """What a reader must know of such a step."""
        return ()

    def step(self, order: Step, heard: Heard | None = None) -> Measured:
        """Run fio through warm-up (which it leaves out itself) and window."""
        workload = order.workload
        operation = one_operation(workload)
        if not self.ready(workload):
            raise DriverError(f"{workload.name} was not prepared")
        size = object_bytes(workload)
        words = [f"--rw={_JOBS[operation, str(workload.pick)]}", f"--bs={size}", "--time_based"]
        words += [
            f"--ramp_time={round(workload.warmup * 1000)}ms",
            f"--runtime={round(workload.runtime * 1000)}ms",
        ]
        # Latencies as clients see them, and places that are drawn each time anew, not each once
        # before any twice.
        words += ["--lat_percentiles=1", "--clat_percentiles=0", "--norandommap"]
        started_at = now()
        command = self.argv(*words, *self.target(workload, order.workers))
        ran = self.run(
            [command], "measure", heard, total_s=workload.runtime, warmup_s=workload.warmup
        )
        tally, window_s = tally_of(ran[0].text, operation, size)
        measurement = Measurement(
            api=self.api,
            workload=workload.name,
            workers=order.workers,
            driver=self.named,
            started_at=started_at,
            window_s=window_s,
            warmup_s=workload.warmup,
            tallies=(tally,),
            load=self.used(ran),
            notes=(BINS_NOTE, *self.notes(workload, order.workers)),
        )
        return Measured(measurement=measurement, kept=kept_of(ran, "fio"))

    def used(self, ran: Sequence[CommandOutput]) -> Load | None:
        """What the client took."""
        return self.load(ran)
