from __future__ import annotations

import re
from typing import Final

from weighbridge.common.document import did_you_mean
from weighbridge.common.errors import UsageError
from weighbridge.common.quantities import parse_seconds
from weighbridge.results.figures import listed
from weighbridge.results.metrics import METRICS, Metric
from weighbridge.results.record.resolved import LatencyBound

_BOUND: Final = re.compile(r"\s*([^<>=\s]+)\s*([<>=]*)\s*(.*?)\s*", re.DOTALL)
_EXAMPLE: Final = 'Give a metric and its largest value, in quotes: --find "p90<=50ms".'


def may_bound(metric: Metric) -> bool:
    """Whether a rate can be searched within this metric: in ms, of which less is better."""
    return metric.unit == "ms" and (metric.better == "less" or metric.percent is not None)


def parse_bound(text: str) -> LatencyBound:
    """The bound of `p90<=50ms`. Raises UsageError."""
    found = _BOUND.fullmatch(text)
    if found is None or not found[3]:
        raise UsageError(f"{text[:100]!r} is not a bound", advice=_EXAMPLE)
    key, relation, value = found.groups()
    known = [name for name, metric in METRICS.items() if may_bound(metric)]
    if key not in known:
        why = "is not a latency" if key in METRICS else "is not known"
        hint = did_you_mean(key, known, known=False)
        advice = f"Bounds are on {listed(known, 'or')}."
        raise UsageError(f"{text[:100]!r}: the metric {key[:80]!r} {why}{hint}", advice=advice)
    if relation != "<=":
        advice = f'Only "at most" can be a bound: --find "{key}<={value[:40]}".'
        raise UsageError(f"{text[:100]!r}: {relation or 'nothing'!r} is not <=", advice=advice)
    try:
        seconds = parse_seconds(value)
    except ValueError as error:
        raise UsageError(f"{text[:100]!r}: {error}", advice=_EXAMPLE) from None
    if not isinstance(seconds, float) or not 0 < seconds <= 3600:
        raise UsageError(f"{text[:100]!r}: a bound is above 0 and at most 1h", advice=_EXAMPLE)
    return LatencyBound(metric=key, most_ms=round(seconds * 1000, 6))
