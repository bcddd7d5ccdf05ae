"""Findings in plain words: how many times one layout is another, cell by cell and over all worker counts of a workload.

A ratio is of the geometric means of the repeats' throughputs; over worker counts it is the geometric mean of the ratios,
and its interval comes from each repeat's own geometric mean. With fewer than 5 repeats a sentence says that it makes no
claim; where something is not valid or missing, it says so instead of a number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from ground.quantities import show_bytes
from ground.record import Record
from results.figures import show_ms, show_ratio
from results.statistics import REPEATS_FOR_A_CLAIM, Ratio, geometric_mean, ratio
from results.summary import Row
from suites import Api, Operation

NEAR = 0.05
"""Ratios nearer to 1 than this are of no practical weight, whatever their interval."""

_NOUNS: dict[Operation, str] = {
    "read": "reads",
    "write": "writes",
    "delete": "deletes",
    "list": "listings",
    "head": "HEAD requests",
}
_APIS: dict[Api, str] = {"swift": "Swift API", "s3": "S3 API"}


class Finding(Record):
    """One sentence about two layouts. `ratio` is how many times `faster` does what `slower` does; None: not comparable.

    `workers` is None for the finding over all worker counts.
    """

    workload: str
    operation: Operation
    api: Api
    workers: int | None
    faster: str
    slower: str
    ratio: Ratio | None
    text: str

    @property
    def claim(self) -> bool:
        """Whether the difference may be claimed."""
        return self.ratio is not None and self.ratio.claim


def find(rows: Sequence[Row]) -> tuple[Finding, ...]:
    """The findings of a table: for each workload and operation one over all worker counts, then one a worker count.

    Every layout is compared with the first; rows must be in the order that `summarize` gives.
    """
    found: list[Finding] = []
    for _, group in groupby(rows, key=lambda row: (row.workload, row.operation, row.api)):
        cells = list(group)
        layouts = list(dict.fromkeys(row.layout for row in cells))
        for other in layouts[1:]:
            found += _pair([row for row in cells if row.layout == layouts[0]], [row for row in cells if row.layout == other])
    return tuple(found)


def what(row: Row) -> str:
    """What a row is about: `1 MB reads`, `listings`."""
    sized = row.operation in ("read", "write") and row.object_size_bytes is not None
    return (
        f"{show_bytes(row.object_size_bytes)} {_NOUNS[row.operation]}" if sized and row.object_size_bytes else _NOUNS[row.operation]
    )


def api_words(api: Api) -> str:
    """`Swift API` or `S3 API`."""
    return _APIS[api]


def _pair(first: Sequence[Row], other: Sequence[Row]) -> Iterator[Finding]:
    sides = list(zip(first, other, strict=True))
    usable = [(a, b) for a, b in sides if _comparable(a, b)]
    yield _overall(sides, usable)
    for a, b in sides:
        yield _cell(a, b)


def _comparable(a: Row, b: Row) -> bool:
    return all(row.valid and row.points and min(point.throughput_ops_s for point in row.used) > 0 for row in (a, b))


def _rates(row: Row) -> list[float]:
    return [point.throughput_ops_s for point in row.used]


def _cell(a: Row, b: Row) -> Finding:
    at = f"at {_workers(a.workers)}"
    if not _comparable(a, b):
        reasons = "; ".join(f"{row.layout}: {_reason(row)}" for row in (a, b) if not _comparable(row, row))
        return _finding(a, a, b, None, a.workers, f"{what(a).capitalize()} {at} cannot be compared: {reasons}.")
    fast, slow = (a, b) if ratio(_rates(a), _rates(b)).value >= 1 else (b, a)
    measure = ratio(_rates(fast), _rates(slow))
    tail = ""
    if fast.p90_ms is not None and slow.p90_ms is not None:
        tail = f", p90 {show_ms(fast.p90_ms)} against {show_ms(slow.p90_ms)} ms"
    text = f"{_relation(measure, fast, slow)} {at}{tail}; {_strength(measure)}."
    return _finding(a, fast, slow, measure, a.workers, text)


def _overall(sides: Sequence[tuple[Row, Row]], usable: Sequence[tuple[Row, Row]]) -> Finding:
    a, b = sides[0]
    counts = [one.workers for one, _ in usable]
    if not usable:
        why = "; ".join(
            f"{row.layout} at {_workers(row.workers)}: {_reason(row)}" for row in sides[-1] if not _comparable(row, row)
        )
        text = f"{what(a).capitalize()}: {a.layout} and {b.layout} cannot be compared at any worker count ({why})."
        return _finding(a, a, b, None, None, text)
    measure = _over_counts(usable)
    fast, slow = (a, b) if measure.value >= 1 else (b, a)
    if fast is b:
        usable = [(two, one) for one, two in usable]
        measure = _over_counts(usable)
    ratios = [ratio(_rates(one), _rates(two)).value for one, two in usable]
    text = f"{_relation(measure, fast, slow)} {_span(counts)}"
    if len(counts) > 1:
        low, high = min(ratios), max(ratios)
        text += f" ({show_ratio(low)} to {show_ratio(high)} by worker count)"
        behind = [str(count) for count, one in zip(counts, ratios, strict=True) if one < 1 - NEAR]
        if behind:
            text += f", but {slow.layout} leads at {_listed(behind)}"
    last_fast, last_slow = usable[-1]
    if last_fast.p90_ms is not None and last_slow.p90_ms is not None:
        at = f" at {_workers(last_fast.workers)}" if len(counts) > 1 else ""
        text += f"; p90{at} is {show_ms(last_fast.p90_ms)} against {show_ms(last_slow.p90_ms)} ms"
    text += f"; {_strength(measure)}."
    if len(usable) < len(sides):
        left = [str(one.workers) for one, two in sides if not _comparable(one, two)]
        text += f" Not comparable at {_listed(left)} workers."
    return _finding(a, fast, slow, measure, None, text)


def _over_counts(usable: Sequence[tuple[Row, Row]]) -> Ratio:
    """The geometric mean of the ratios over worker counts; its interval from the repeats that are whole at every count."""
    value = geometric_mean([ratio(_rates(a), _rates(b)).value for a, b in usable])
    means = []
    for side in (0, 1):
        rows = [pair[side] for pair in usable]
        by_repeat = [{point.repeat: point.throughput_ops_s for point in row.used} for row in rows]
        whole = [repeat for repeat in by_repeat[0] if all(repeat in rates for rates in by_repeat)]
        means.append([geometric_mean([rates[repeat] for rates in by_repeat]) for repeat in whole])
    if not all(means):
        return Ratio(value=value, repeats=min(row.repeats for pair in usable for row in pair))
    measure = ratio(*means)
    # Where repeats are not whole at every count, the interval is of fewer repeats than the value: keep both about the same middle.
    shift = value / measure.value
    return Ratio(
        value=value,
        low=None if measure.low is None else measure.low * shift,
        high=None if measure.high is None else measure.high * shift,
        repeats=measure.repeats,
    )


def _relation(measure: Ratio, fast: Row, slow: Row) -> str:
    api = f"over the {_APIS[fast.api]}"
    if measure.value < 1 + NEAR:
        percent = max(1, round((measure.value - 1) * 100))
        return f"{fast.layout} and {slow.layout} serve {what(fast)} {api} within {percent} % of each other"
    return f"{fast.layout} serves {show_ratio(measure.value)} {slow.layout}’s {what(fast)} {api}"


def _strength(measure: Ratio) -> str:
    interval = ""
    if measure.low is not None and measure.high is not None:
        interval = f"95 % interval {show_ratio(measure.low)} to {show_ratio(measure.high)}, "
    if measure.repeats < REPEATS_FOR_A_CLAIM:
        return f"{interval}n = {measure.repeats}: no claim with fewer than {REPEATS_FOR_A_CLAIM} repeats"
    return f"{interval}n = {measure.repeats}" + ("" if measure.shown else ": no difference shown")


def _reason(row: Row) -> str:
    """Why a row cannot be compared, as short as it can be said."""
    if row.points and row.valid:
        return "nothing succeeded"
    return next((note for note in row.notes if note != "not valid"), "not valid")


def _finding(a: Row, fast: Row, slow: Row, measure: Ratio | None, workers: int | None, text: str) -> Finding:
    return Finding(
        workload=a.workload,
        operation=a.operation,
        api=a.api,
        workers=workers,
        faster=fast.layout,
        slower=slow.layout,
        ratio=measure,
        text=text,
    )


def _span(counts: Sequence[int]) -> str:
    if len(counts) == 1:
        return f"at {_workers(counts[0])}"
    return f"over {counts[0]} to {counts[-1]} workers"


def _workers(count: int) -> str:
    return "1 worker" if count == 1 else f"{count} workers"


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
