"""What is kept of one step of one repeat: points, verdicts and what the hosts used.

`steps.jsonl` has what was measured, and the verdicts made then. Verdicts that need a complete
window, or what the hosts used, are made here, and so again whenever results are derived: whether
the step was steady, and whether the NIC of the driver's host may have been the bottleneck. An
unreadable histogram spoils only its own step: none of its figures is ranked, and a note says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import NonNegativeFloat, NonNegativeInt

from weighbridge.common.errors import InvalidMeasurement, UsageError
from weighbridge.common.record import Record
from weighbridge.results.figures.metrics import METRICS, Figures
from weighbridge.results.figures.reading import OF_ANY, MetricFigure, Reading, before_fault
from weighbridge.results.figures.steadiness import (
    Steadiness,
    steadiness,
    window_grain,
    window_move,
    window_shape,
)
from weighbridge.results.figures.use import StepUse, full_nics, step_use
from weighbridge.results.figures.validity import DRIVER_CPU_SHARE
from weighbridge.results.run import ResolvedPlan, RunStore, StepKey, StepResult
from weighbridge.results.run.durability import Outage, read_outages
from weighbridge.suites import Operation, Workload


class Point(Figures):
    """One operation in one repeat of one step."""

    repeat: NonNegativeInt
    valid: bool
    steady: bool | None = None
    """None: unknown."""
    steady_before: bool | None = None
    """Whether it was steady until something died in it; None: unknown, or nothing did."""
    move: float | None = None
    """The change of its step over the window, relative to the mean (`window_move`); None: unknown.
    """
    grain: NonNegativeFloat = 0.0
    """The move that its window cannot resolve (`window_grain`)."""
    shape: tuple[float, ...] = ()
    """The fifths of its window (`window_shape`)."""
    warmup_s: NonNegativeFloat | None = None
    """The warm-up that would have sufficed, if it was still warming up."""
    driver_full: bool = False
    """Whether the load generator's CPU or network was at its bound."""
    notes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    """What the driver noted with its figures: never why a repeat is not valid."""

    @property
    def ops_s(self) -> float:
        """Its throughput; 0 if unknown."""
        return self.value("throughput") or 0.0

    @property
    def ranked(self) -> bool:
        """Whether it counts in compared figures: valid and not known to be unsteady."""
        return self.valid and self.steady is not False


class JudgedStep(Record):
    """One step of one repeat; `notes` are its own and those made here, gravest first."""

    key: StepKey
    valid: bool
    steady: bool | None = None
    drifts: bool = False
    notes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    use: StepUse | None = None
    dead: tuple[str, ...] = ()
    points: dict[Operation, Point]

    @property
    def ranked(self) -> bool:
        return self.valid and self.steady is not False


def read_visits(store: RunStore, plan: ResolvedPlan) -> dict[StepKey, JudgedStep]:
    """All steps of a run folder with what the hosts used, read one by one; the last result of each.

    Unreadable telemetry is a gap of its step. Raises InvalidMeasurement with file:line on an
    unreadable line of `steps.jsonl`, and UsageError if the file is unreadable.
    """
    workloads, outages = workloads_of(plan), read_outages(store.folder)
    return {
        step.key: read_visit(
            store,
            step,
            workloads,
            place=f"steps.jsonl:{number}",
            outage=outages.get(step.key),
        )
        for number, step in enumerate(store.each_step(), start=1)
    }


def read_visit(
    store: RunStore,
    step: StepResult,
    workloads: Mapping[str, Workload],
    *,
    closed_loop: bool | None = None,
    place: str = "steps.jsonl",
    outage: Outage | None = None,
) -> JudgedStep:
    """One step with what the hosts used. `workloads` are the suite's by name; they say whether it
    is a closed loop, unless the caller knows. `outage` is what died in it.
    """
    use, gaps = None, []
    try:
        telemetry = None if step.measurement is None else store.telemetry(step.key)
        if telemetry is not None and step.measurement is not None:
            use = step_use(telemetry, step.measurement.window_s)
    except (InvalidMeasurement, UsageError) as error:
        gaps.append(f"what the hosts used is not known: {error}")
    workload = workloads.get(step.key.workload)
    if closed_loop is None:
        closed_loop = workload is not None and workload.rate_per_s is None
    return visit(
        step,
        use,
        closed_loop=closed_loop,
        workload=workload,
        place=place,
        gaps=gaps,
        outage=outage,
    )


def workloads_of(plan: ResolvedPlan) -> dict[str, Workload]:
    """The suite's workloads by name."""
    return {workload.name: workload for workload in plan.suite.workloads}


def visit(
    step: StepResult,
    use: StepUse | None = None,
    *,
    closed_loop: bool = True,
    workload: Workload | None = None,
    place: str = "steps.jsonl",
    gaps: Sequence[str] = (),
    outage: Outage | None = None,
) -> JudgedStep:
    """What is kept of a step. `closed_loop`: its workload has no rate (a step of a search has).

    `workload`: the suite's; without one nothing is known of goodput.
    `place`: where the step was read from, for notes. `gaps`: what could not be read with it.
    `outage`: what died in it, if its workload has a fault; its rate is then not expected to be
    steady, and is not judged.
    """
    measurement = step.measurement
    closed_loop = closed_loop and step.key.rate_per_s is None
    if measurement is None:
        return JudgedStep(key=step.key, valid=False, notes=step.notes, use=use, points={})
    readings = [Reading(tally, measurement, use, workload, outage) for tally in measurement.tallies]
    full = () if use is None else full_nics(use.resources)
    faults = [
        *(
            f"{place}: latencies of {reading.tally.operation}: {reading.fault}"
            for reading in readings
            if reading.fault
        ),
        *(nic.words for nic in full),
    ]
    fault = None if workload is None else workload.fault
    before: bool | None = None
    move: float | None = None
    grain, shape = 0.0, tuple[float, ...]()
    if fault is not None:
        verdict = Steadiness(steady=True)
        until = before_fault(measurement, fault, outage)
        before = None if faults else steadiness(until, closed_loop=closed_loop).steady
    elif faults:
        verdict = Steadiness(steady=None)
    else:
        move = window_move(measurement, closed_loop=closed_loop)
        verdict = Steadiness(steady=None)
        if step.valid:
            verdict = steadiness(measurement, closed_loop=closed_loop)
    if move is not None:
        grain = window_grain(measurement) if closed_loop else 0.0
        shape = window_shape(measurement, closed_loop=closed_loop)
    load = measurement.load
    judged: dict[str, Any] = {
        "valid": step.valid and not faults,
        "steady": verdict.steady,
        "notes": (*faults, *verdict.notes, *step.notes, *gaps),
        "remarks": measurement.notes,
    }
    points = {
        reading.tally.operation: Point(
            **judged,
            repeat=step.key.repeat,
            steady_before=before,
            move=move,
            grain=grain,
            shape=shape,
            warmup_s=verdict.warmup_s,
            driver_full=bool(full) or (load is not None and load.share >= DRIVER_CPU_SHARE),
            figures=_figures(reading),
        )
        for reading in readings
    }
    return JudgedStep(
        **judged,
        key=step.key,
        drifts=verdict.drifts,
        use=use,
        dead=tuple(endpoint.name for endpoint in measurement.endpoints if endpoint.left_out),
        points=points,
    )


def _figures(reading: Reading) -> dict[str, MetricFigure]:
    """All that is known of an operation, by metric."""
    known: dict[str, MetricFigure] = {}
    for metric in METRICS.values():
        if reading.broken and not (metric.of_outage or metric.key in OF_ANY):
            continue
        figure = metric.read(reading)
        if figure is not None and not isinstance(figure, MetricFigure):
            figure = MetricFigure(value=figure)
        if figure is not None and figure.known:
            known[metric.key] = figure
    return known
