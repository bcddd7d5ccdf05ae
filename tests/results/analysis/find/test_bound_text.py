from __future__ import annotations

import re

import pytest

from weighbridge.common.errors import UsageError
from weighbridge.results.analysis.find.bound_text import parse_bound


@pytest.mark.parametrize(
    ("text", "metric", "most_ms"),
    [
        ("p90<=50ms", "p90", 50.0),
        (" p99 <= 0.2s ", "p99", 200.0),
        ("p50<=500us", "p50", 0.5),
        ("max<=2s", "max", 2000.0),
        ("first-byte<=20ms", "first-byte", 20.0),
        ("p99.9<=1m", "p99.9", 60_000.0),
    ],
)
def test_a_bound_is_a_latency_and_its_largest_value(text: str, metric: str, most_ms: float) -> None:
    found = parse_bound(text)
    assert (found.metric, found.most_ms) == (metric, most_ms)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is not a bound"),
        ("p90", "is not a bound"),
        ("p90<=", "is not a bound"),
        ("p900<=50ms", "did you mean 'p90'?"),
        ("firstbyte<=50ms", "did you mean 'first-byte'?"),
        ("throughput<=50ms", "is not a latency"),
        ("p90<50ms", "'<' is not <="),
        ("p90>=50ms", "'>=' is not <="),
        ("p90 50ms", "'nothing' is not <="),
        ("p90<=50", "is not a quantity"),
        ("p90<=50MB", "is not a quantity"),
        ("p90<=0ms", "above 0"),
        ("p90<=2h", "at most 1h"),
        ("p90<=-1ms", "is not a quantity"),
        ("p90<=50ms; rm", "is not a quantity"),
    ],
)
def test_other_texts_are_refused_with_what_is_wrong(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=re.escape(why)):
        parse_bound(text)


def test_a_bound_is_printed_as_it_is_read() -> None:
    bound = parse_bound("p90<=50ms")
    assert parse_bound(str(bound)) == bound
