"""The measurement of a step from COSBench's archive, with notes on what other drivers do not do."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from dataclasses import dataclass
from typing import Final

from weighbridge.common.errors import DriverError
from weighbridge.drivers.cosbench.archive import Archived
from weighbridge.drivers.protocol import Step
from weighbridge.results.run.step import Bins, Load, Measurement, Tally
from weighbridge.suites import Api

# The figures in COSBench's archive: its summary, its histogram of response times, and why
# operations failed.
#
# Its CSV files quote nothing; some rows are followed by as many columns as there were states.


_HEAD: Final = (
    "Stage,Op-Name,Op-Type,Op-Count,Byte-Count,Avg-ResTime,Avg-ProcTime,60%-ResTime,80%-ResTime,90%-ResTime,95%-ResTime,"
    "99%-ResTime,100%-ResTime,Throughput,Bandwidth,Succ-Ratio,Status,Detailed Status"
)
_NOTHING: Final = "N/A"
_STATUSES: Final = re.compile(
    r"waiting|booting|submitting|authing|launching|running|closing|sleeping|completed|failed|terminated|cancelled|aborted"
)
_CODES: Final = re.compile(r"error code: (\S+) occurred ([0-9]{1,18}) times")
_STAGE: Final = re.compile(r"^=+ stage: (\S+) =+$", re.MULTILINE)
_THROWN: Final = re.compile(r"^(?:Caused by: )?[\w.$]+(?:Exception|Error)(?:: (.*))?$")


MOST: Final = 2**63
"""COSBench counts in 64 bits."""


@dataclass(frozen=True)
class StageFigures:
    """One operation of one stage. None: N/A, which is not 0."""

    stage: str
    """Such as s1-main; without its number when the stage has no figures."""
    operation: str | None
    count: int | None
    bytes: int | None
    mean_ms: float | None
    """Mean of whole milliseconds, each rounded down."""
    throughput_per_s: float | None
    success: float | None
    """Share that succeeded, to 0.01 %."""
    status: str


def rows(summary: str) -> tuple[StageFigures, ...]:
    """The rows of a summary. Raises DriverError when it is not one."""
    head, *lines = summary.splitlines() or [""]
    if head != _HEAD:
        raise DriverError(f"COSBench's summary does not have the header of 0.4.2: {head[:200]!r}")
    return tuple(_row(line) for line in lines if line)


def _row(line: str) -> StageFigures:
    fields = line.split(",")
    # A comma in a number would shift all later fields: the status must be where it belongs.
    if len(fields) > 16 and _STATUSES.fullmatch(fields[16]):
        known = [None if field == _NOTHING else field for field in fields]
        with contextlib.suppress(ValueError):
            count, size = (None if text is None else int(text) for text in known[3:5])
            mean, throughput = (
                None if text is None else float(text) for text in (known[5], known[13])
            )
            share = (
                None if known[15] is None else round(float(known[15].removesuffix("%")) / 100, 6)
            )
            figures = (count, size, mean, throughput, share)
            if all(figure is None or 0 <= figure < MOST for figure in figures):
                return StageFigures(
                    fields[0], known[1], count, size, mean, throughput, share, fields[16]
                )
    raise DriverError(
        f"COSBench's summary has a row that cannot be read: {line[:200]!r}",
        advice="Its JVM must write numbers in English: start it with -Duser.language=en or "
        "LC_ALL=C.",
    )


def bins(histogram: str, stage: str, operation: str) -> Bins | None:
    """Counts of response times of an operation in the first work of a stage, or None.

    Raises DriverError when the histogram cannot be read.
    """
    head, *lines = histogram.splitlines() or [""]
    wanted = re.compile(rf"{re.escape(stage)}-w1-.+-{re.escape(operation)}")
    columns = [number for number, name in enumerate(head.split(",")) if wanted.fullmatch(name)]
    if not columns:
        return None
    if len(columns) > 1:
        raise DriverError(f"COSBench's histogram has {operation} of {stage} {len(columns)} times")
    counts: list[tuple[int, int]] = []
    width_ms = beyond_ms = beyond = 0
    try:
        for line in lines:
            fields = line.split(",")
            low, _, high = fields[0].partition("~")
            count = int(fields[columns[0]])
            if high == "+INF":
                beyond_ms, beyond = int(low), count
                continue
            width_ms = width_ms or int(high) - int(low)
            number, rest = divmod(int(low), width_ms)
            if rest or int(high) - int(low) != width_ms:
                raise DriverError(f"COSBench's histogram has bins of different widths: {fields[0]}")
            if count:
                counts.append((number, count))
    except (ValueError, IndexError, ZeroDivisionError):
        raise DriverError(
            f"COSBench's histogram has a row that cannot be read: {line[:200]!r}"
        ) from None
    if not beyond_ms or not width_ms:
        raise DriverError("COSBench's histogram is not complete: its last row is missing")
    try:
        return Bins(
            width_us=width_ms * 1000,
            counts=tuple(counts),
            beyond_us=beyond_ms * 1000,
            beyond=beyond,
        )
    except ValueError as error:
        raise DriverError(
            f"COSBench's histogram cannot be that of {operation} of {stage}: {error}"
        ) from None


def log_of_stage(log: str, stage: str) -> str:
    """A stage's part of a workload's log."""
    parts = _STAGE.split(log)
    return "".join(
        text for name, text in zip(parts[1::2], parts[2::2], strict=True) if name == stage
    )


def codes(log: str) -> dict[str, int]:
    """How often each error code occurred in a stage, its ramp included; N/A: without a code.

    Neither code nor count is exact: COSBench groups failures by where its code threw them, gives
    each group the status of its first, and counts that one twice.
    """
    found: Counter[str] = Counter()
    for code, times in _CODES.findall(log):
        found[code] += int(times)
    return dict(found)


def reasons(system_log: str, log: str) -> tuple[str, ...]:
    """Why a workload ended as it did: up to three of COSBench's own messages, the best first."""
    lines = system_log.splitlines()
    # "unrecognized request" is only what it could not abort after an error.
    reported = [
        line.partition("driver report error: ")[2]
        for line in lines
        if "driver report error: " in line and "unrecognized request" not in line
    ]
    thrown = [
        match[1]
        for line in (*lines, *log.splitlines())
        if (match := _THROWN.fullmatch(line.strip())) and match[1]
    ]
    errors = [
        line.partition(" - ")[2]
        for line in (*lines, *log.splitlines())
        if "[ERROR]" in line and " - " in line
    ]
    best = list(dict.fromkeys((*reported, *thrown))) or list(dict.fromkeys(errors))
    return tuple(one.strip()[:300] for one in best[:3])


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
