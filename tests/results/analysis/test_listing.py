"""Complete listings: what a step shows, and what deletes change by name."""

from __future__ import annotations

from typing import Any

import pytest

from made_rows import altered, made_point, made_row
from weighbridge.results.analysis.listing import CompleteListing, complete_listings
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.doubt import Doubt
from weighbridge.results.report.listing_table import listing_lines, listing_sentences
from weighbridge.suites import Suite


def suite(**changed: Any) -> Suite:
    given = {
        "name": "list-all",
        "objects": {"size": 0, "per_container": 1000},
        "operations": {"list-all": 1},
        "workers": [4],
        "runtime": "20s",
        "listed": {"deleted": ["0%", "50%"]},
    }
    return Suite.model_validate({"name": "s", "about": "a", "workloads": [{**given, **changed}]})


def rows(
    workload: str, times_ms: list[float], pages_s: float = 20.0, **more: Any
) -> tuple[Row, Row]:
    about = {"layout": "rgw", "api": "swift", "workload": workload, "workers": 4}
    about |= {"object_size_bytes": 0, "repeats": len(times_ms), "valid": True}
    points = tuple(
        made_point(repeat=number, valid=True, steady=True, p50_ms=time)
        for number, time in enumerate(times_ms)
    )
    listing = {"operation": "list-all", "p50_ms": times_ms[0]}
    listing |= {"p90_ms": 2 * times_ms[0]} if len(times_ms) > 1 else {}
    return (
        made_row(**about, **listing, points=points, **more),
        made_row(**about, operation="list-page", throughput_ops_s=pages_s),
    )


def found(*some: tuple[Row, Row], **changed: Any) -> tuple[CompleteListing, ...]:
    return complete_listings(suite(**changed), [row for pair in some for row in pair])


def test_times_are_compared_by_name_with_those_before_the_deletes() -> None:
    before = rows("list-all", [1000 * (1 + number / 100) for number in range(5)])
    after = rows("list-all-50-deleted", [750 * (1 + number / 100) for number in range(5)], 18.0)
    first, then = found(before, after)
    assert (first.names, first.deleted, first.pages_per_s, first.beside) == (1000, 0, 20, None)
    assert (then.names, then.deleted, then.pages_per_s) == (500, 0.5, 18)
    assert then.beside is not None
    assert then.beside.value == pytest.approx(1.5)
    assert then.beside.claim
    cells = listing_lines([then])[0][3:11]
    assert cells[:6] == ("500", "50 %", "18.0", "0.750", "1.50", "1,500")
    assert cells[6:] == (f"1.50× ({then.beside.low:.2f} to {then.beside.high:.2f})", "ranked")
    (text,) = listing_sentences([then])
    assert "of 500 names after 50 % of the objects were deleted takes 0.750 s (p90 1.50" in text
    assert "18.0 pages/s; a name takes 1.50 times (1.4" in text
    # Those after some deletes are not what those after more are compared with.
    _, then = found(before, after, listed={"deleted": ["25%", "50%"]})
    assert (then.deleted, then.beside) == (0.5, None)


def test_what_is_not_known_or_not_ranked_is_not_compared() -> None:
    before = rows("list-all", [1000.0])
    bound = rows("list-all-50-deleted", [500.0])
    at_least = altered(bound[0].points[0].figure("p50"), at_least=True)
    point = altered(bound[0].points[0], figures={"p50": at_least})
    row = altered(bound[0], points=(point,))
    _, then = found(before, (row, bound[1]))
    assert then.beside is None
    grave = Doubt(what="machine busy", grade="grave", words="others used 30 %")
    _, then = found(before, rows("list-all-50-deleted", [500.0], doubts=(grave,)))
    assert then.beside is None
    assert listing_lines([then])[0][-1] == "not ranked"
    assert "Not ranked: machine busy, few repeats." in listing_sentences([then])[0]
    _, then = found(before, rows("list-all-50-deleted", [500.0]))
    assert then.beside is not None
    text = listing_sentences([then])[0]
    assert "a name takes 1.00 times (one repeat: no interval) what it took before" in text
    assert text.endswith("Provisional: few repeats.")


def test_listings_of_a_prefix_have_no_known_number_of_names() -> None:
    changed = {"listed": None, "listing": {"prefix": "object-00000001"}}
    (one,) = found(rows("list-all", [100.0]), **changed)
    assert one.names is None
    assert listing_lines([one])[0][3] == "–"
    assert "a complete listing takes 0.100 s, 20.0 pages/s" in listing_sentences([one])[0]
    assert found(operations={"list": 1}) == ()
