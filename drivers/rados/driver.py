"""RADOS itself as what is weighed: several `rados bench` at once, each in a pool of its own.

`rados bench` has no warm-up, and tells latencies of a whole run only: a run of its own, which is
not counted, goes before.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from weighbridge.common.errors import DriverError
from weighbridge.drivers.driver import GaveUp, Heard
from weighbridge.drivers.order import Cleaned, Cleanup, Measured, Prepare, Prepared, Step
from weighbridge.drivers.rados.bench import (
    FOR_EVER_S,
    Mode,
    RadosBenchCommand,
    RadosBenchResult,
    together,
)
from weighbridge.drivers.rados.cluster import RadosCluster, groups_each, shared_out
from weighbridge.drivers.rados.host_commands import CommandOutput, kept_of
from weighbridge.drivers.rados.tool import (
    FILL_S,
    Phase,
    Tool,
    now,
    object_bytes,
    one_operation,
    seconds_up,
)
from weighbridge.results.record.measurement import Measurement
from weighbridge.suites import RadosBenchOptions as Settings
from weighbridge.suites import Workload

_EARLY = 0.95
"""Reads that took less than this part of their time ran out of objects."""
_LINGERS_S = 1.0
"""rados bench waits up to so long after its last operation, which says nothing about the CPU that
it wanted.
"""
_MODES: Mapping[str, Mode] = {"sequential": "seq", "uniform": "rand"}


class RadosBench(Tool):
    """The driver. `settings` say how many run at once, and how many placement groups they have
    together.
    """

    def __init__(
        self,
        cluster: RadosCluster,
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
        """Ceph's release, and how it is run."""
        groups = groups_each(self._settings.pg_num, self._settings.instances)
        how = f"{self._settings.instances} at once, each with a pool of {groups} placement groups"
        return {"rados bench": f"{self.cluster.version()}; {how}"}

    def _pools(self) -> list[str]:
        return [f"{self.prefix}-rados-{number}" for number in range(self._settings.instances)]

    def prepare(self, order: Prepare, heard: Heard | None = None) -> Prepared:
        """Make the pools, and write the objects that reads want, shared out to them."""
        began = time.monotonic()
        workload = order.workload
        groups = groups_each(self._settings.pg_num, self._settings.instances)
        self.cluster.make_pools(dict.fromkeys(self._pools(), groups), "rados")
        if not workload.needs_objects or workload.name in self._prepared:
            return Prepared(objects=0, bytes=0, seconds=time.monotonic() - began)
        size = object_bytes(workload)
        shares = [
            share for share in shared_out(workload.objects.count, self._settings.instances) if share
        ]
        fills = [
            RadosBenchCommand(
                pool=pool,
                mode="write",
                seconds=FOR_EVER_S,
                # More at once than there are objects would write more of them.
                workers=min(order.parallel, share),
                object_bytes=size,
                run=f"{self.prefix}-{workload.name}",
                objects=share,
            )
            for pool, share in zip(self._pools(), shares, strict=False)
        ]
        ran, answers = self._bench(fills, "prepare", heard, total_s=FILL_S)
        for fill, answer in zip(fills, answers, strict=True):
            if answer.count != fill.objects:
                what = (
                    f"rados bench wrote {answer.count} objects into {fill.pool} where "
                    f"{fill.objects} were asked for"
                )
                raise GaveUp(f"{self.machine.name}: {what}", kept=kept_of(ran, "rados-bench"))
        self._prepared[workload.name] = fills
        count = sum(answer.count for answer in answers)
        seconds = time.monotonic() - began
        return Prepared(
            objects=count, bytes=count * size, seconds=seconds, kept=kept_of(ran, "rados-bench")
        )

    def step(self, order: Step, heard: Heard | None = None) -> Measured:
        """Run all instances once for the warm-up, and once for the window."""
        workload = order.workload
        operation = one_operation(workload)
        mode: Mode = "write" if operation == "write" else _MODES[str(workload.pick)]
        warmup_s = seconds_up(workload.warmup) if workload.warmup else 0
        if warmup_s:
            self._bench(
                self._benches(workload, order.workers, mode, warmup_s),
                "warm-up",
                heard,
                total_s=warmup_s,
            )
        started_at = now()
        runtime_s = seconds_up(workload.runtime)
        benches = self._benches(workload, order.workers, mode, runtime_s)
        ran, answers = self._bench(benches, "measure", heard, total_s=runtime_s)
        tally, window_s = together(answers, operation)
        measurement = Measurement(
            api="rados",
            workload=workload.name,
            workers=order.workers,
            driver="rados-bench",
            started_at=started_at,
            window_s=window_s,
            warmup_s=float(warmup_s),
            tallies=(tally,),
            load=self.load(ran, max(window_s, max(one.seconds for one in ran) - _LINGERS_S)),
            notes=tuple(self._notes(benches, answers, mode, runtime_s)),
        )
        return Measured(measurement=measurement, kept=kept_of(ran, "rados-bench"))

    def _notes(
        self,
        benches: Sequence[RadosBenchCommand],
        answers: Sequence[RadosBenchResult],
        mode: Mode,
        runtime_s: int,
    ) -> list[str]:
        notes = [f"{len(benches)} rados bench at once, a pool each"] if len(benches) > 1 else []
        if len(benches) < self._settings.instances:
            notes.append(
                f"{len(benches)} of {self._settings.instances} instances: there is no worker or "
                "object for more"
            )
        early = [answer.seconds for answer in answers if answer.seconds < _EARLY * runtime_s]
        if mode == "seq" and early:
            notes.append(
                f"objects to read ran out after {min(early):.3g} s of {runtime_s} s: the window "
                "ends there"
            )
        return notes

    def _benches(
        self, workload: Workload, workers: int, mode: Mode, seconds: int
    ) -> list[RadosBenchCommand]:
        size = object_bytes(workload)
        if mode == "write":
            self._runs += 1
            names = [
                (pool, f"{self.prefix}-{workload.name}-{self._runs}") for pool in self._pools()
            ]
        else:
            if workload.name not in self._prepared:
                raise DriverError(f"{workload.name} is to be read and was not prepared")
            names = [(fill.pool, fill.run) for fill in self._prepared[workload.name]]
        shares = [share for share in shared_out(workers, len(names)) if share]
        benches = [
            RadosBenchCommand(
                pool=pool, mode=mode, seconds=seconds, workers=share, object_bytes=size, run=run
            )
            for (pool, run), share in zip(names, shares, strict=False)
        ]
        if mode == "write":
            # Before they run: what one writes that fails is there all the same.
            self._written.setdefault(workload.name, []).extend(benches)
        return benches

    def _bench(
        self,
        benches: Sequence[RadosBenchCommand],
        phase: Phase,
        heard: Heard | None,
        *,
        total_s: float,
    ) -> tuple[list[CommandOutput], list[RadosBenchResult]]:
        ran = self.run([bench.argv() for bench in benches], phase, heard, total_s=total_s)
        return ran, [
            RadosBenchResult.of(bench.mode, one.text)
            for bench, one in zip(benches, ran, strict=True)
        ]

    def cleanup(self, order: Cleanup, heard: Heard | None = None) -> Cleaned:
        """Delete what steps of the workload wrote; for `all`, what was prepared for it too.

        The pools stay for the next workload: eight of them take longer to come up than a short
        step.
        """
        name = order.workload.name
        doomed = self._written.pop(name, [])
        if order.what == "all":
            doomed += self._prepared.pop(name, [])
        deleted = 0
        if doomed:
            ran = self.run(
                [bench.cleanup_argv() for bench in doomed], "cleanup", heard, total_s=FILL_S
            )
            deleted = sum(
                int(found[1])
                for one in ran
                if (found := re.search(r"Removed (\d+) objects?", one.text))
            )
        return Cleaned(deleted=deleted)
