"""Findings in plain words: how many times one layout is another, cell by cell and over all worker counts of a workload.

A ratio is of the geometric means of the repeats' throughputs; over worker counts it is the geometric mean of the ratios,
and its interval comes from each repeat's own geometric mean. With fewer than 5 repeats a sentence says that it makes no
claim; where something is not valid or missing, it says so instead of a number. Layouts are compared within a driver, never
one driver's figures with another's. Latencies that a driver told in bins are compared as the intervals that they lie in: where
two touch, neither is called the higher.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from ground.quantities import show_bytes
from ground.record import Record
from results.figures import show_ms, show_ratio
from results.interval import Interval
from results.statistics import REPEATS_FOR_A_CLAIM, Ratio, geometric_mean, ratio
from results.summary import WITH_BODIES, Row
from suites import Api, DriverName, Operation

NEAR: Final = 0.05
"""Ratios nearer to 1 than this are of no practical weight, whatever their interval."""

_NOUNS: Final[dict[Operation, str]] = {
    "read": "reads",
    "write": "writes",
    "delete": "deletes",
    "list": "listings",
    "head": "HEAD requests",
}
_APIS: Final[dict[Api, str]] = {
    "swift": "the Swift API",
    "s3": "the S3 API",
    "rados": "RADOS",
    "object-server": "Swift’s object servers",
    "rbd": "RBD",
    "cephfs": "CephFS",
}
DRIVERS: Final[dict[DriverName, str]] = {"locust": "Locust", "cosbench": "COSBench", "rados": "Ceph’s benches", "fio": "fio"}

Sides = Sequence[tuple[Row, Row]]
Kind = tuple[str, Operation, Api, DriverName]
"""A kind of requests: workload, operation, API, and the driver that makes them."""


class Finding(Record):
    """One sentence about two layouts. `ratio` is how many times `faster` does what `slower` does; None: not comparable.

    `workers` is None for the finding over all worker counts. `brief` is the relation alone, in a few words.
    """

    workload: str
    operation: Operation
    api: Api
    driver: DriverName = "locust"
    workers: int | None
    baseline: str
    """The layout that all others are compared with: the first of the run."""
    faster: str
    slower: str
    ratio: Ratio | None
    brief: str
    text: str


def find(rows: Sequence[Row]) -> tuple[Finding, ...]:
    """The findings of a table: for each workload and operation one over all worker counts, then one a worker count.

    Every layout is compared with the first; rows must be in the order that `summarize` gives.
    """
    found: list[Finding] = []
    names = subjects(rows)
    for kind, group in groupby(rows, key=kind_of):
        cells = list(group)
        about = names[kind]
        by_layout = {name: [row for row in cells if row.layout == name] for name in dict.fromkeys(row.layout for row in cells)}
        first, *others = by_layout.values()
        for other in others:
            sides = list(zip(first, other, strict=True))
            found.append(_overall(about, sides))
            found += [_cell(about, a, b) for a, b in sides]
    return tuple(found)


def kind_of(row: Row | Finding) -> Kind:
    """The kind of requests that a row or a finding is about."""
    return row.workload, row.operation, row.api, row.driver


def subjects(rows: Sequence[Row]) -> dict[Kind, str]:
    """What each kind of requests is called: `1 MB reads`, `listings`.

    API and driver are named where there are two, and the workload where two would be called the same.
    """
    apis, drivers = (
        len({row.api for row in rows}) > 1,
        len({(row.api, row.driver) for row in rows}) > len({row.api for row in rows}),
    )
    names = {kind_of(row): _subject(row, api=apis, driver=drivers) for row in rows}
    called = list(names.values())
    return {kind: f"{name} of {kind[0]}" if called.count(name) > 1 else name for kind, name in names.items()}


def _subject(row: Row, *, api: bool, driver: bool) -> str:
    noun = _NOUNS[row.operation]
    if row.operation in WITH_BODIES and row.object_size_bytes is not None:
        noun = f"{show_bytes(row.object_size_bytes)} {noun}"
    noun = f"{noun} over {_APIS[row.api]}" if api else noun
    return f"{noun} by {DRIVERS[row.driver]}" if driver else noun


class Lead(Record):
    """Who leads in a kind of requests by one driver, and by how much; None: too close to call."""

    layout: str | None
    margin: float = 1.0


def lead(pairs: Sequence[Finding]) -> Lead | None:
    """Which layout leads by the findings over all worker counts of one kind of requests; None where nothing could be compared.

    Too close to call are leads of less than NEAR, and those that enough repeats for a claim do not show.
    """
    scores = _scores(pairs)
    if len(scores) < 2:
        return None
    (leader, best), (_, second) = sorted(scores.items(), key=lambda item: -item[1])[:2]
    nearest = min((pair.ratio for pair in pairs if pair.ratio and leader in (pair.faster, pair.slower)), key=lambda one: one.value)
    if best >= second * (1 + NEAR) and (nearest.shown or nearest.repeats < REPEATS_FOR_A_CLAIM):
        return Lead(layout=leader, margin=best / second)
    return Lead(layout=None)


def leads_by_driver(findings: Sequence[Finding]) -> dict[tuple[str, Operation, Api], tuple[Lead | None, ...]]:
    """Who leads in each kind of requests, by each of the drivers that made them."""
    found: dict[tuple[str, Operation, Api], tuple[Lead | None, ...]] = {}
    for (workload, operation, api, _), pairs in overall(findings).items():
        found[workload, operation, api] = (*found.get((workload, operation, api), ()), lead(pairs))
    return found


def headline(findings: Sequence[Finding]) -> str:
    """One sentence over all of a run: which layout leads in how many kinds of requests.

    A kind that two drivers made counts once, and only for what both of them say: where their leaders differ it says so, and
    where one of them could compare nothing it could not be compared.
    """
    kinds = leads_by_driver(findings)
    if not kinds:
        return "One layout was weighed: there is nothing to compare it with"
    leads: dict[str, list[tuple[float, ...]]] = {}
    close = apart = lacking = 0
    for told in kinds.values():
        known = [one for one in told if one is not None]
        leaders = {one.layout for one in known}
        if len(known) < len(told):
            lacking += 1
        elif len(leaders) > 1:
            apart += 1
        elif (leader := known[0].layout) is not None:
            leads.setdefault(leader, []).append(tuple(one.margin for one in known))
        else:
            close += 1
    if lacking == len(kinds):
        return "Nothing could be compared"
    ordered = sorted(leads.items(), key=lambda item: -len(item[1]))
    if len(ordered) == 1 and len(ordered[0][1]) == len(kinds):
        name, margins = ordered[0]
        by_all = [margin for by_each in margins for margin in by_each]
        low, high = show_ratio(min(by_all)), show_ratio(max(by_all))
        where = f"all {len(kinds)} kinds of requests" if len(kinds) > 1 else "the requests replayed"
        return f"{name} leads in {where}, by {low}{f' to {high}' if low != high else ''}"
    parts = [f"{name} leads in {len(margins)} of {len(kinds)} kinds of requests" for name, margins in ordered[:1]]
    parts += [f"{name} in {len(margins)}" for name, margins in ordered[1:]]
    parts += [f"{close} too close to call"] * bool(close)
    parts += [f"in {apart} the drivers do not agree"] * bool(apart)
    parts += [f"{lacking} could not be compared"] * bool(lacking)
    return ", ".join(parts) if leads else f"No layout leads: {', '.join(parts)}"


def _scores(pairs: Sequence[Finding]) -> dict[str, float]:
    """How many times the baseline each layout is, of those that could be compared with it."""
    scores = {pair.baseline: 1.0 for pair in pairs}
    for pair in pairs:
        if pair.ratio is not None and pair.faster == pair.baseline:
            scores[pair.slower] = 1 / pair.ratio.value
        elif pair.ratio is not None:
            scores[pair.faster] = pair.ratio.value
    return scores


def comparable(*rows: Row) -> bool:
    """Whether each of these rows has throughputs that may be set against another's."""
    return all(row.valid and min((point.throughput_ops_s for point in row.used), default=0) > 0 for row in rows)


def _ratio(a: Row, b: Row) -> Ratio:
    return ratio([point.throughput_ops_s for point in a.used], [point.throughput_ops_s for point in b.used])


def _cell(about: str, a: Row, b: Row) -> Finding:
    at = f"at {_workers(a.workers)}"
    if not comparable(a, b):
        reasons = "; ".join(f"{row.layout}: {reason(row)}" for row in (a, b) if not comparable(row))
        return _finding(a, (a, b), None, a.workers, f"{_upper(about)} {at} cannot be compared ({reasons}).")
    fast, slow = (a, b) if _ratio(a, b).value >= 1 else (b, a)
    measure = _ratio(fast, slow)
    text = f"{_relation(measure, fast, slow, about)} {at}{_latencies(fast, slow, '')}; {_strength(measure)}."
    return _finding(a, (fast, slow), measure, a.workers, text)


def _overall(about: str, sides: Sides) -> Finding:
    a, b = sides[0]
    usable = [pair for pair in sides if comparable(*pair)]
    if not usable:
        reasons = "; ".join(f"{row.layout} at {_workers(row.workers)}: {reason(row)}" for row in sides[-1] if not comparable(row))
        why = f" ({reasons})" if reasons else ""
        text = f"{_upper(about)}: {a.layout} and {b.layout} cannot be compared at any worker count{why}."
        return _finding(a, (a, b), None, None, text)
    if _over_counts(usable).value < 1:
        usable = [(two, one) for one, two in usable]
    measure = _over_counts(usable)
    fast, slow = usable[-1]
    counts = [one.workers for one, _ in usable]
    ratios = [_ratio(one, two).value for one, two in usable]
    text = f"{_relation(measure, fast, slow, about)} {_span(counts)}"
    if len(counts) > 1:
        text += f" ({show_ratio(min(ratios))} to {show_ratio(max(ratios))} by worker count)"
        behind = [str(count) for count, one in zip(counts, ratios, strict=True) if one * (1 + NEAR) < 1]
        if behind:
            text += f", but {slow.layout} leads at {_listed(behind)}"
    text += _latencies(fast, slow, f" at {_workers(fast.workers)}" if len(counts) > 1 else "")
    text += f"; {_strength(measure)}."
    left = [str(one.workers) for one, two in sides if not comparable(one, two)]
    if left:
        text += f" Not comparable at {_listed(left)} {'worker' if left == ['1'] else 'workers'}."
    return _finding(a, (fast, slow), measure, None, text)


def _over_counts(usable: Sides) -> Ratio:
    """The geometric mean of the ratios over worker counts; its interval from the repeats that are whole at every count."""
    value = geometric_mean([_ratio(a, b).value for a, b in usable])
    means: list[list[float]] = []
    for rows in zip(*usable, strict=True):
        by_repeat = [{point.repeat: point.throughput_ops_s for point in row.used} for row in rows]
        whole = [repeat for repeat in by_repeat[0] if all(repeat in rates for rates in by_repeat)]
        means.append([geometric_mean([rates[repeat] for rates in by_repeat]) for repeat in whole])
    if not all(means):
        return Ratio(value=value, repeats=1)
    measure = ratio(*means)
    # The value is of all valid repeats, the interval of those that are whole: keep both about the same middle.
    shift = value / measure.value
    return Ratio(
        value=value,
        low=None if measure.low is None else measure.low * shift,
        high=None if measure.high is None else measure.high * shift,
        repeats=measure.repeats,
    )


def _relation(measure: Ratio, fast: Row, slow: Row, about: str) -> str:
    if measure.value < 1 + NEAR:
        return f"{fast.layout} and {slow.layout} serve {about} within {_percent(measure)} of each other"
    return f"{fast.layout} serves {show_ratio(measure.value)} {slow.layout}’s {about}"


def _percent(measure: Ratio) -> str:
    return f"{max(1, round((measure.value - 1) * 100))} %"


def _latencies(fast: Row, slow: Row, at: str) -> str:
    if fast.p90_in is not None and slow.p90_in is not None:
        return f", p90{at} {told_apart(fast.p90_in, slow.p90_in)}"
    if fast.p90_ms is None or slow.p90_ms is None:
        return ""
    return f", p90{at} {show_ms(fast.p90_ms)} against {show_ms(slow.p90_ms)} ms"


def told_apart(one: Interval, other: Interval) -> str:
    """Two latencies of which only intervals are known, ranked where those do not touch."""
    if one == other:
        return f"not told apart: both in {one} ms"
    if one.touches(other):
        return f"not told apart: in {one} and {other} ms"
    return f"in {one} against {other} ms"


def _strength(measure: Ratio) -> str:
    interval = ""
    if measure.low is not None and measure.high is not None:
        interval = f"95 % interval {show_ratio(measure.low)} to {show_ratio(measure.high)}, "
    if measure.repeats < REPEATS_FOR_A_CLAIM:
        return f"{interval}n = {measure.repeats}: no claim with fewer than {REPEATS_FOR_A_CLAIM} repeats"
    return f"{interval}n = {measure.repeats}" + ("" if measure.shown else ": no difference shown")


def reason(row: Row) -> str:
    """Why a row cannot be compared, as short as it can be said: of an error the first line, not what to do about it."""
    if row.valid:
        return "nothing succeeded"
    note = next((note for note in row.notes if note != "not valid"), "not valid")
    return note.splitlines()[0]


def _finding(a: Row, order: tuple[Row, Row], measure: Ratio | None, workers: int | None, text: str) -> Finding:
    fast, slow = (row.layout for row in order)
    if measure is None:
        brief = f"{fast}, {slow}: not comparable"
    elif measure.value < 1 + NEAR:
        brief = f"{fast} and {slow} within {_percent(measure)}"
    else:
        brief = f"{fast} {show_ratio(measure.value)} {slow}"
    return Finding(
        workload=a.workload,
        operation=a.operation,
        api=a.api,
        driver=a.driver,
        workers=workers,
        baseline=a.layout,
        faster=fast,
        slower=slow,
        ratio=measure,
        brief=brief,
        text=text,
    )


def overall(findings: Sequence[Finding]) -> dict[Kind, list[Finding]]:
    """The findings that go over all worker counts, by kind of requests."""
    kinds: dict[Kind, list[Finding]] = {}
    for finding in findings:
        if finding.workers is None:
            kinds.setdefault(kind_of(finding), []).append(finding)
    return kinds


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _span(counts: Sequence[int]) -> str:
    return f"at {_workers(counts[0])}" if len(counts) == 1 else f"at {counts[0]} to {counts[-1]} workers"


def _workers(count: int) -> str:
    return "1 worker" if count == 1 else f"{count} workers"


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
