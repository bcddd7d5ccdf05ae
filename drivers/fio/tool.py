"""The base of drivers by fio: its command line, its windows, and their measurements."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Final, Literal

from weighbridge.common.errors import DriverError
from weighbridge.drivers.driver import OnProgress
from weighbridge.drivers.fio.result import BINS_NOTE, tally_of
from weighbridge.drivers.protocol import Measured, Step
from weighbridge.drivers.rados.host_commands import CommandOutput, kept_of
from weighbridge.drivers.rados.tool import AdminToolDriver, now, object_bytes, one_operation
from weighbridge.results.record.measurement import Load, Measurement
from weighbridge.suites import Workload

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
        """What a reader must know about such a step."""
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
        """The client's use of CPU."""
        return self.load(ran)
