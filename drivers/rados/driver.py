"""RADOS: several `rados bench` in parallel, each in a separate pool, or all in one that is given.

`rados bench` has no warm-up, and reports latencies of complete runs only: a separate run goes first
and is not counted.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from weighbridge.common.errors import DriverError
from weighbridge.drivers.protocol import (
    Cleaned,
    Cleanup,
    DriverFailure,
    Measured,
    OnProgress,
    Prepare,
    Prepared,
    Step,
)
from weighbridge.drivers.rados.cluster import (
    FOR_EVER_S,
    BenchCluster,
    BenchPlace,
    Mode,
    RadosBenchCommand,
    RadosBenchResult,
    combined,
    split_evenly,
)
from weighbridge.drivers.rados.host_commands import CommandOutput, kept_of
from weighbridge.drivers.rados.tool import (
    FILL_S,
    Phase,
    ToolDriver,
    now,
    object_bytes,
    one_operation,
    seconds_up,
)
from weighbridge.results.run.step import Measurement
from weighbridge.suites import RadosBenchOptions as Settings
from weighbridge.suites import Workload

_EARLY = 0.95
"""Reads that took less than this share of their time ran out of objects."""
_LINGERS_S = 1.0
"""rados bench waits up to so long after its last operation, without using CPU."""
_MODES: Mapping[str, Mode] = {"sequential": "seq", "uniform": "rand"}


class RadosBench(ToolDriver):
    """The rados bench driver. `settings`: how many run in parallel, and pools' groups."""

    cluster: BenchCluster

    def __init__(
        self,
        cluster: BenchCluster,
        *,
        prefix: str,
        log: Path,
        settings: Settings | None = None,
        cpus: float | None = None,
    ) -> None:
        super().__init__(cluster, prefix=prefix, log=log, cpus=cpus)
        self._settings = settings or Settings()
        self._prepared: dict[str, list[RadosBenchCommand]] = {}
        self._written: dict[str, list[RadosBenchCommand]] = {}
        self._runs = 0

    def versions(self) -> Mapping[str, str]:
        how = f"{self._settings.instances} in parallel, {self.cluster.how(self._settings)}"
        return {"rados bench": f"{self.cluster.version()}; {how}"}

    def _places(self) -> tuple[BenchPlace, ...]:
        return self.cluster.places(self.prefix, self._settings)

    def prepare(self, command: Prepare, on_progress: OnProgress | None = None) -> Prepared:
        began = time.monotonic()
        workload = command.workload
        self.cluster.make_places(self.prefix, self._settings)
        if not workload.needs_objects or workload.name in self._prepared:
            return Prepared(objects=0, bytes=0, seconds=time.monotonic() - began)
        size = object_bytes(workload)
        counts = split_evenly(workload.objects.count, self._settings.instances)
        shares = [count for count in counts if count]
        fills = [
            RadosBenchCommand(
                place=place,
                mode="write",
                seconds=FOR_EVER_S,
                # More workers than objects would write more of them.
                workers=min(command.parallel, share),
                object_bytes=size,
                run=f"{self.prefix}-{workload.name}{place.tag}",
                objects=share,
            )
            for place, share in zip(self._places(), shares, strict=False)
        ]
        ran, results = self._bench(fills, "prepare", on_progress, total_s=FILL_S)
        for fill, result in zip(fills, results, strict=True):
            if result.count != fill.objects:
                what = (
                    f"rados bench wrote {result.count} objects into {fill.place.pool} instead of "
                    f"{fill.objects}"
                )
                raise DriverFailure(
                    f"{self.cluster.machine.name}: {what}", kept=kept_of(ran, "rados-bench")
                )
        self._prepared[workload.name] = fills
        count = sum(result.count for result in results)
        seconds = time.monotonic() - began
        return Prepared(
            objects=count, bytes=count * size, seconds=seconds, kept=kept_of(ran, "rados-bench")
        )

    def step(self, command: Step, on_progress: OnProgress | None = None) -> Measured:
        workload = command.workload
        operation = one_operation(workload)
        mode: Mode = "write" if operation == "write" else _MODES[str(workload.pick)]
        warmup_s = seconds_up(workload.warmup) if workload.warmup else 0
        if warmup_s:
            warmup = self._benches(workload, command.workers, mode, warmup_s)
            self._bench(warmup, "warm-up", on_progress, total_s=warmup_s)
        started_at = now()
        runtime_s = seconds_up(workload.runtime)
        benches = self._benches(workload, command.workers, mode, runtime_s)
        ran, results = self._bench(benches, "measure", on_progress, total_s=runtime_s)
        tally, window_s = combined(results, operation)
        measurement = Measurement(
            api="rados",
            workload=workload.name,
            workers=command.workers,
            driver="rados-bench",
            started_at=started_at,
            window_s=window_s,
            warmup_s=float(warmup_s),
            tallies=(tally,),
            load=self.load(ran, max(window_s, max(one.seconds for one in ran) - _LINGERS_S)),
            notes=tuple(self._notes(benches, results, mode, runtime_s)),
        )
        return Measured(measurement=measurement, kept=kept_of(ran, "rados-bench"))

    def _notes(
        self,
        benches: Sequence[RadosBenchCommand],
        results: Sequence[RadosBenchResult],
        mode: Mode,
        runtime_s: int,
    ) -> list[str]:
        how = self.cluster.how(self._settings)
        notes = [f"{len(benches)} rados bench in parallel, {how}"] if len(benches) > 1 else []
        notes += self.cluster.notes
        if len(benches) < self._settings.instances:
            notes.append(
                f"{len(benches)} of {self._settings.instances} instances: there are no workers or "
                "objects for more"
            )
        early = [result.seconds for result in results if result.seconds < _EARLY * runtime_s]
        if mode == "seq" and early:
            notes.append(
                f"objects to read ran out after {min(early):.3g} s of {runtime_s} s: the window "
                "ended there"
            )
        return notes

    def _benches(
        self, workload: Workload, workers: int, mode: Mode, seconds: int
    ) -> list[RadosBenchCommand]:
        size = object_bytes(workload)
        if mode == "write":
            self._runs += 1
            stem = f"{self.prefix}-{workload.name}-{self._runs}"
            names = [(place, f"{stem}{place.tag}") for place in self._places()]
        else:
            if workload.name not in self._prepared:
                raise DriverError(f"{workload.name} was not prepared")
            names = [(fill.place, fill.run) for fill in self._prepared[workload.name]]
        shares = [share for share in split_evenly(workers, len(names)) if share]
        benches = [
            RadosBenchCommand(
                place=place, mode=mode, seconds=seconds, workers=share, object_bytes=size, run=run
            )
            for (place, run), share in zip(names, shares, strict=False)
        ]
        if mode == "write":
            # Noted before they run: objects of a failed one exist all the same.
            self._written.setdefault(workload.name, []).extend(benches)
        return benches

    def _bench(
        self,
        benches: Sequence[RadosBenchCommand],
        phase: Phase,
        on_progress: OnProgress | None,
        *,
        total_s: float,
    ) -> tuple[list[CommandOutput], list[RadosBenchResult]]:
        ran = self.run([bench.argv() for bench in benches], phase, on_progress, total_s=total_s)
        return ran, [
            RadosBenchResult.of(bench.mode, one.text)
            for bench, one in zip(benches, ran, strict=True)
        ]

    def cleanup(self, command: Cleanup, on_progress: OnProgress | None = None) -> Cleaned:
        """Delete what the workload's steps wrote; for `all`, also what was prepared.

        Pools remain for the next workload: making eight takes longer than a short step.
        """
        name = command.workload.name
        benches = self._written.pop(name, [])
        if command.what == "all":
            benches += self._prepared.pop(name, [])
        deleted = 0
        if benches:
            commands = [bench.cleanup_argv() for bench in benches]
            ran = self.run(commands, "cleanup", on_progress, total_s=FILL_S)
            deleted = sum(
                int(found[1])
                for one in ran
                if (found := re.search(r"Removed (\d+) objects?", one.text))
            )
        return Cleaned(deleted=deleted)
