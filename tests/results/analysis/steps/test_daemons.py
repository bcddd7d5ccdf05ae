"""Figures of daemons from probe lines with known increases."""

from __future__ import annotations

import pytest

from recorded_use import recorded
from weighbridge.results.analysis.steps.use import figure_words, figures
from weighbridge.results.record.telemetry import ProbeSecond, Telemetry


def telemetry(*lines: tuple[str, float, dict[str, float]]) -> Telemetry:
    made = [
        ProbeSecond(
            second=int(at_s), at_s=at_s, phase="measure", host="store-1", probe=probe, values=values
        )
        for probe, at_s, values in lines
    ]
    return recorded(hosts=(), probes=made)


def by_label(found: Telemetry, window_s: float = 10.0) -> dict[str, float]:
    return {figure.label: figure.value for figure in figures(found, window_s)}


def test_counters_are_shown_by_their_increase_over_all_daemons_of_a_kind() -> None:
    found = telemetry(
        ("osd.0", 0.5, {"op": 1000, "op_latency_sum_s": 5.0, "op_latency_count": 1000}),
        ("osd.1", 0.6, {"op": 0, "op_latency_sum_s": 0.0, "op_latency_count": 0}),
        ("osd.0", 4.5, {"op": 1400, "op_latency_sum_s": 6.0, "op_latency_count": 1400}),
        ("osd.1", 4.6, {"op": 400, "op_latency_sum_s": 3.0, "op_latency_count": 400}),
    )
    assert by_label(found) == {
        "{} op/s": pytest.approx(200),
        "an operation takes {} ms": pytest.approx(5.0),
    }


def test_gauges_are_means_and_shares_cover_only_the_window() -> None:
    found = telemetry(
        ("radosgw.gateway-1", 1.0, {"qactive": 4, "cache_hit": 100, "cache_miss": 100}),
        ("radosgw.gateway-1", 2.0, {"qactive": 8, "cache_hit": 190, "cache_miss": 110}),
    )
    assert by_label(found) == {"{} requests in work": 6.0, "{} % of metadata from its cache": 90.0}


def test_lines_outside_the_window_single_lines_and_resets_give_no_figure() -> None:
    assert by_label(telemetry(("osd.0", 1.0, {"op": 5}))) == {}
    assert by_label(telemetry(("osd.0", 1.0, {"op": 5}), ("osd.0", 12.0, {"op": 50}))) == {}
    assert by_label(telemetry(("osd.0", 1.0, {"op": 500}), ("osd.0", 2.0, {"op": 3}))) == {}
    idle = {"get_hits": 5.0, "get_misses": 1.0}
    assert by_label(telemetry(("memcached.g", 1.0, idle), ("memcached.g", 2.0, idle))) == {}


def test_a_daemon_without_a_counter_makes_the_sum_unknown() -> None:
    lines = [("osd.0", at_s, {"op": at_s * 10}) for at_s in (1.0, 2.0)] + [
        ("osd.1", at_s, {"other": 1.0}) for at_s in (1.0, 2.0)
    ]
    assert by_label(telemetry(*lines)) == {}


def test_words_over_repeats_have_the_medians() -> None:
    repeats = [
        figures(telemetry(*[("osd.0", at_s, {"op": at_s * rate}) for at_s in (1.0, 2.0)]), 5.0)
        for rate in (10, 30, 20)
    ]
    assert figure_words(repeats) == "osd: 20.0 op/s"
    assert figure_words([]) == ""
