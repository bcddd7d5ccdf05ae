"""Rows to compare, with repeats that can be computed on paper."""

from collections.abc import Sequence
from typing import Any

from made_rows import made_point, made_row
from weighbridge.results.figures.doubt import Doubt
from weighbridge.results.figures.statistics import Ratio
from weighbridge.results.figures.summary import Row
from weighbridge.results.judge.comparison import Comparison, Effect, Verdict

FIVE = (0.99, 1.0, 1.01, 1.0, 1.0)
WIDE = (0.7, 1.4, 0.9, 1.2, 0.8)

MILD = Doubt(
    what="machine busy", grade="mild", words="other programs used 14 % of this machine’s CPUs"
)
GRAVE = MILD.model_copy(update={"grade": "grave"})


def row(
    layout: str,
    workers: int = 8,
    rates: Sequence[float] = FIVE,
    p90s: Sequence[float | None] | None = None,
    **more: Any,
) -> Row:
    """A row with these repeats; latencies follow from the rates unless given."""
    latencies = [1000 / rate for rate in rates] if p90s is None else list(p90s)
    points = tuple(
        made_point(repeat=repeat, valid=True, throughput_ops_s=rate, p90_ms=p90)
        for repeat, (rate, p90) in enumerate(zip(rates, latencies, strict=True))
    )
    given = {
        "layout": layout,
        "workers": workers,
        "repeats": len(points),
        "throughput_ops_s": sorted(rates)[len(rates) // 2] if points else None,
        "p90_ms": None
        if not points or None in latencies
        else sorted(value for value in latencies if value)[len(latencies) // 2],
        "valid": bool(points),
        "points": points,
    }
    return made_row(**{**given, **more})


def made_effect(
    subject: str,
    ratio: float | None,
    verdict: Verdict,
    *,
    workers: int | None = None,
    metric: str = "throughput",
    about: str = "64 kB reads",
    repeats: int = 5,
) -> Effect:
    """An effect beside rgw-beast, with an interval of 10 % on each side."""
    known = None
    if ratio is not None:
        known = Ratio(value=ratio, low=ratio * 0.9, high=ratio * 1.1, repeats=repeats)
    return Effect(
        workload="small-read",
        operation="read",
        api="swift",
        about=about,
        workers=workers,
        metric=metric,
        baseline="rgw-beast",
        subject=subject,
        ratio=known,
        verdict=verdict,
        text=f"{subject}: {verdict}.",
    )


def times(factor: float, values: Sequence[float] = FIVE) -> list[float]:
    return [factor * value for value in values]


def cell(comparison: Comparison, metric: str = "throughput", workers: int | None = 8) -> Effect:
    (found,) = [
        one for one in comparison.effects if one.metric == metric and one.workers == workers
    ]
    return found
