"""From COSBench's archive to a measurement: what is in it, what is not, and what a reader must know
of the difference.
"""

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
from weighbridge.drivers.order import Step
from weighbridge.results.record.measurement import Load, Measurement, Tally
from weighbridge.suites import Api

UNTOLD: Final = "untold"
"""The class of failures of which COSBench tells how many, and not why."""
STRAY: Final = 0.03
"""COSBench's throughput and ours may differ by so much without a word: it divides by the time each
worker was seen at work.
"""

HALF_A_STEP: Final = 0.00005
"""Half a hundredth of a per cent: so far a share that COSBench tells may be off."""

_CLOCK: Final = (
    "COSBench's driver sets the clock of its host before each stage (date -s) where it may, and "
    "this controller was not started"
    " by us: steps of the clock are in these figures"
)


@dataclass(frozen=True)
class Circumstances:
    """What the archive does not tell of a step."""

    api: Api
    started_at: str
    """UTC, of the start of the window."""
    load: Load | None
    started_by_us: bool
    drivers: int


def measured(archived: Archived, stage: str, step: Step, around: Circumstances) -> Measurement:
    """The measurement of a step whose only stage this was. Raises DriverError when there are no
    figures to be believed.

    A stage that COSBench calls failed may have figures: then they are a measurement with errors.
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
            what = "has no figures" if row is None or row.count is None else "succeeded not once"
            raise DriverError(f"{outcome(archived)}\n{operation} of stage {stage} {what}")
        counted = bins(archived.histogram, stage, operation)
        if counted is None or counted.count != row.count:
            many = "none" if counted is None else str(counted.count)
            raise DriverError(
                f"{outcome(archived)}\n{operation}: the histogram has {many} of {row.count} "
                "response times",
                advice="Its archive is not whole, or is of several workloads.",
            )
        failed, note = _failed(row)
        notes += [f"{operation}: {note}"] if note else []
        notes += _slow(row, workload.runtime)
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
                f"COSBench's summary tells of {operation} of {stage} what cannot be: {error}"
            ) from None
        tallies.append(tally)
    notes += _seen_in_log(log_of_stage(archived.log, stage))
    return Measurement(
        api=around.api,
        workload=workload.name,
        workers=step.workers,
        driver="cosbench",
        started_at=around.started_at,
        window_s=workload.runtime,
        warmup_s=workload.warmup,
        tallies=tuple(tallies),
        load=around.load,
        notes=(*notes, *_ways(around, step)),
    )


def outcome(archived: Archived) -> str:
    """How a workload ended, with COSBench's reasons."""
    said = reasons(archived.system_log, archived.log)
    if archived.state == "CANCELLED":
        said = ("somebody cancelled it",)
    elif not said and archived.state in ("TERMINATED", "FAILED"):
        said = (
            (
                "its logs tell no reason; see log/system.log of its controller, and that its drivers "
                "run"
            ),
        )
    elif not said:
        said = (
            ("with nothing in its logs; see that its drivers' JVM has all that its storage needs",)
            if _empty(archived)
            else ()
        )
    return ": ".join(
        [
            f"COSBench workload {archived.id}-{archived.name} ended as {archived.state}",
            *(["; ".join(said)] if said else []),
        ]
    )


def _empty(archived: Archived) -> bool:
    return all(row.count is None or not row.count for row in rows(archived.summary))


def _failed(row: StageFigures) -> tuple[int, str]:
    """How many failed beside the successes of a row, and what to say of how well that is known.

    All there is to it is a share in hundredths of a per cent: 94.66 % of which 1010 succeeded is 56
    to 58 failures.
    """
    count = row.count or 0
    if row.success is None or row.success <= HALF_A_STEP:
        raise DriverError(
            f"COSBench tells {count} successes of {row.operation} and no share that succeeded"
        )
    if row.success >= 1:
        return 0, ""
    nearest = round(count / row.success) - count
    fewest = round(count / min(1.0, row.success + HALF_A_STEP)) - count
    most = round(count / (row.success - HALF_A_STEP)) - count
    if fewest == most:
        return nearest, ""
    return (
        max(1, nearest),
        (
            f"between {fewest} and {most} failed: COSBench tells a share of {row.success:.2%} that "
            "succeeded, no count"
        ),
    )


def _slow(row: StageFigures, runtime_s: float) -> list[str]:
    """COSBench's own throughput where it is another one."""
    ours = (row.count or 0) / runtime_s
    theirs = row.throughput_per_s
    if theirs is None or abs(theirs / ours - 1) <= STRAY:
        return []
    return [
        (
            f"{row.operation}: COSBench itself says {theirs:g} op/s, by the time its workers were at "
            f"work; {ours:.4g} over the window"
        )
    ]


def _seen_in_log(log: str) -> list[str]:
    found = codes(log)
    if not found:
        return []
    said = ", ".join(
        f"{'no status' if code == 'N/A' else code} {times} times"
        for code, times in sorted(found.items())
    )
    return [
        (
            f"COSBench's log of the whole stage has failures with {said}; it groups them loosely, so "
            "they are not counted by class"
        )
    ]


def _ways(around: Circumstances, step: Step) -> list[str]:
    """What COSBench does in its own way, for readers who compare."""
    operations = step.workload.operations
    notes = ["COSBench cuts each response time to whole milliseconds: means are about 0.5 ms low"]
    if around.api == "swift":
        notes.append(
            "each request over Swift waits about 1 ms for COSBench's own check of its connection, "
            "inside its response time"
        )
    else:
        notes.append(
            "COSBench's S3 client signs by version 2, and tries a failed request again, inside "
            "its response time"
        )
    if "write" in operations:
        notes.append("COSBench writes one block of 4096 letters again and again, which compresses")
        if around.drivers > 1:
            notes.append(
                f"{around.drivers} COSBench drivers number what they write alike: some of it "
                "overwrites"
            )
    if "delete" in operations:
        notes.append(
            "COSBench counts every delete as a success; that the objects are gone was seen in "
            "listings"
        )
    if "list" in operations:
        notes.append(
            "COSBench lists as many names as the gateway gives at once, container after container"
        )
    if not around.started_by_us:
        notes.append(_CLOCK)
    return notes
