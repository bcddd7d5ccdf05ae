"""The measurement of a step from COSBench's archive, with notes on what other drivers do not do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from weighbridge.common.errors import DriverError
from weighbridge.drivers.cosbench.archive import Archived
from weighbridge.drivers.cosbench.figures import (
    StageFigures,
    bins,
    codes,
    log_of_stage,
    reasons,
    rows,
)
from weighbridge.drivers.protocol import Step
from weighbridge.results.record.measurement import Load, Measurement, Tally
from weighbridge.suites import Api

UNTOLD: Final = "untold"
"""The error class of COSBench's failures, of which it gives a number but no reason."""
DEVIATION: Final = 0.03
"""By how much COSBench's throughput may differ from ours without a note: it divides by the time
that it saw each worker working.
"""

HALF_A_DIGIT: Final = 0.00005
"""Half of 0.01 %: the rounding error of COSBench's success ratio."""

_CLOCK: Final = (
    "COSBench's driver sets its host's clock before each stage (date -s) if it can, and this "
    "controller was not started here: steps of the clock are in these figures"
)


@dataclass(frozen=True)
class StepContext:
    """What the archive lacks about a step."""

    api: Api
    started_at: str
    """UTC, when the window opened."""
    load: Load | None
    started_by_us: bool
    drivers: int


def measurement_of(archived: Archived, stage: str, step: Step, context: StepContext) -> Measurement:
    """The measurement of a step with this one stage. Raises DriverError without credible figures.

    A stage that COSBench calls failed may have figures: a measurement with errors.
    """
    if archived.state not in ("FINISHED", "FAILED"):
        raise DriverError(outcome(archived))
    found = {row.operation: row for row in rows(archived.summary) if row.stage == stage}
    workload = step.workload
    notes: list[str] = []
    tallies = []
    for operation in workload.operations:
        row = found.get(operation)
        if row is None or not row.count or row.bytes is None:
            what = "has no figures" if row is None or row.count is None else "never succeeded"
            raise DriverError(f"{outcome(archived)}\n{operation} of stage {stage} {what}")
        counted = bins(archived.histogram, stage, operation)
        if counted is None or counted.count != row.count:
            many = "none" if counted is None else str(counted.count)
            raise DriverError(
                f"{outcome(archived)}\n{operation}: the histogram has {many} of {row.count} "
                "response times",
                advice="Its archive is incomplete, or has several workloads' results.",
            )
        failed, note = _failed(row)
        notes += [f"{operation}: {note}"] if note else []
        notes += _throughput_note(row, workload.runtime)
        try:
            tally = Tally(
                operation=operation,
                count=row.count,
                bytes=row.bytes,
                errors={UNTOLD: failed} if failed else {},
                bins=counted,
                sum_us=round((row.mean_ms or 0.0) * row.count * 1000),
            )
        except ValueError as error:
            raise DriverError(
                f"COSBench's summary of {operation} of {stage} is impossible: {error}"
            ) from None
        tallies.append(tally)
    notes += _log_note(log_of_stage(archived.log, stage))
    return Measurement(
        api=context.api,
        workload=workload.name,
        workers=step.workers,
        driver="cosbench",
        started_at=context.started_at,
        window_s=workload.runtime,
        warmup_s=workload.warmup,
        tallies=tuple(tallies),
        load=context.load,
        notes=(*notes, *_differences(context, step)),
    )


def outcome(archived: Archived) -> str:
    """How a workload ended, with COSBench's reasons."""
    why = reasons(archived.system_log, archived.log)
    if archived.state == "CANCELLED":
        why = ("somebody cancelled it",)
    elif not why and archived.state in ("TERMINATED", "FAILED"):
        why = (
            "its logs give no reason; see log/system.log of its controller, and check its drivers",
        )
    elif not why and not any(row.count for row in rows(archived.summary)):
        why = ("with nothing in its logs; check that its drivers' JVM has its storage's libraries",)
    ended = f"COSBench workload {archived.id}-{archived.name} ended as {archived.state}"
    return ": ".join([ended, *(["; ".join(why)] if why else [])])


def _failed(row: StageFigures) -> tuple[int, str]:
    """How many operations failed besides a row's successes, and a note on how exact that is.

    Only a share to 0.01 % is known: with 94.66 % and 1010 successes, 56 to 58 failed.
    """
    count = row.count or 0
    if row.success is None or row.success <= HALF_A_DIGIT:
        raise DriverError(f"COSBench reports {count} successes of {row.operation}, but no share")
    if row.success >= 1:
        return 0, ""
    nearest = round(count / row.success) - count
    fewest = round(count / min(1.0, row.success + HALF_A_DIGIT)) - count
    most = round(count / (row.success - HALF_A_DIGIT)) - count
    if fewest == most:
        return nearest, ""
    note = (
        f"between {fewest} and {most} failed: COSBench reports that {row.success:.2%} succeeded, "
        "no count"
    )
    return max(1, nearest), note


def _throughput_note(row: StageFigures, runtime_s: float) -> list[str]:
    """COSBench's own throughput where it differs."""
    ours = (row.count or 0) / runtime_s
    theirs = row.throughput_per_s
    if theirs is None or abs(theirs / ours - 1) <= DEVIATION:
        return []
    note = (
        f"{row.operation}: COSBench reports {theirs:g} op/s, over the time its workers worked; "
        f"{ours:.4g} over the window"
    )
    return [note]


def _log_note(log: str) -> list[str]:
    found = codes(log)
    if not found:
        return []
    counts = ", ".join(
        f"{'no status' if code == 'N/A' else code} {times} times"
        for code, times in sorted(found.items())
    )
    note = (
        f"COSBench's log of the entire stage has failures with {counts}; it groups them loosely, "
        "so they are not counted by class"
    )
    return [note]


def _differences(context: StepContext, step: Step) -> list[str]:
    """What COSBench does differently from other drivers."""
    operations = step.workload.operations
    notes = ["COSBench cuts each response time to whole milliseconds: means are about 0.5 ms low"]
    if context.api == "swift":
        notes.append(
            "each request over Swift waits about 1 ms for COSBench's own check of its connection, "
            "inside its response time"
        )
    else:
        notes.append(
            "COSBench's S3 client signs by version 2, and retries a failed request, inside its "
            "response time"
        )
    if "write" in operations:
        notes.append("COSBench writes a repeated block of 4096 letters, which compresses")
        if context.drivers > 1:
            notes.append(
                f"{context.drivers} COSBench drivers number what they write alike: some of it is "
                "overwritten"
            )
    if "delete" in operations:
        notes.append(
            "COSBench counts every delete as a success; listings showed that the objects are gone"
        )
    if "list" in operations:
        notes.append(
            "COSBench lists as many names as the gateway returns at once, container by container"
        )
    if not context.started_by_us:
        notes.append(_CLOCK)
    return notes
