"""The figures in COSBench's archive: its summary, its histogram of response times, and why
operations failed.

Its CSV files quote nothing; some rows are followed by as many columns as there were states.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from dataclasses import dataclass
from typing import Final

from weighbridge.common.errors import DriverError
from weighbridge.results.record.measurement import Bins

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
