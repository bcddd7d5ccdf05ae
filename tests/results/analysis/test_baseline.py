"""The anomalies of a baseline, computed by hand, and its storage."""

from __future__ import annotations

import csv
import io
from typing import Any

from chart_sources import texts_of
from weighbridge.results.analysis.baseline import (
    Baseline,
    HostFigure,
    baseline_csv,
    oddities,
)
from weighbridge.results.charts.baseline_chart import MOST_BARS, baseline_chart

MB = 1e6


def disk(host: str, value: float, **changes: Any) -> HostFigure:
    job = "random read of 64 kB"
    fixed = {
        "kind": "disk",
        "group": "disk",
        "what": f"disk wb0 {job}",
        "job": job,
        "like": "20 GiB",
        "unit": "B/s",
    }
    size = {"operation": "read", "pick": "random", "request_bytes": 64_000}
    return HostFigure(host=host, value=value, **{**fixed, **size, **changes})


def link(sender: str, receiver: str, value: float, promised: float | None = 1e9) -> HostFigure:
    ends = {
        "sender": sender,
        "receiver": receiver,
        "host": receiver,
        "what": f"network from {sender}",
    }
    return HostFigure(
        kind="network",
        group="network",
        job="network",
        unit="bit/s",
        value=value,
        promised=promised,
        **ends,
    )


def sent(host: str, value: float, promised: float | None = 1e9) -> HostFigure:
    fixed = {
        "kind": "network",
        "group": "fabric",
        "job": "sent",
        "what": "sent while all hosts send to 2",
        "unit": "bit/s",
    }
    return HostFigure(host=host, value=value, promised=promised, **fixed)


def made(*figures: HostFigure) -> Baseline:
    facts = {
        "hardware": "three",
        "about": "",
        "measured_at": "2026-01-01T00:00:00+00:00",
        "took_s": 1.0,
        "tools": {},
    }
    return Baseline(**facts, machine={}, figures=figures)


def test_a_disk_that_differs_from_its_equals_is_reported_with_both_figures() -> None:
    (sentences,) = oddities(
        [disk("store-1", 200 * MB), disk("store-2", 190 * MB), disk("store-3", 80 * MB)]
    )
    assert (
        sentences
        == "disk wb0 random read of 64 kB on store-3 gave 80.0 MB/s, 58 % less than the median of "
        "the 3 (190 MB/s)"
    )


def test_disks_that_differ_in_the_hardware_file_are_not_compared() -> None:
    assert oddities([disk("store-1", 200 * MB), disk("store-2", 80 * MB, like="1 GiB")]) == ()
    (sentences,) = oddities([disk("store-1", 200 * MB), disk("store-2", 80 * MB)])
    assert sentences.endswith("on store-2 gave 80.0 MB/s, vs 200 MB/s on store-1")


def test_a_missed_promise_is_reported_only_beyond_the_bound() -> None:
    assert oddities([disk("store-1", 91 * MB, promised=100 * MB)]) == ()
    (sentences,) = oddities([disk("store-1", 85 * MB, promised=100 * MB)])
    assert (
        sentences
        == "disk wb0 random read of 64 kB on store-1 gave 85.0 MB/s, 15 % less than the 100 MB/s "
        "promised"
    )


def test_a_link_slower_in_one_direction_is_reported_once() -> None:
    sentences = oddities(
        [
            link("a", "b", 500e6, None),
            link("b", "a", 950e6, None),
            link("a", "c", 950e6, None),
            link("c", "a", 900e6, None),
        ]
    )
    assert sentences == (
        "a sends 500 Mbit/s to b, 47 % less than the 950 Mbit/s in the other direction",
    )


def test_a_network_too_slow_for_all_hosts_at_once_is_reported_in_one_sentence() -> None:
    (sentences,) = oddities([sent("a", 400e6), sent("b", 500e6)])
    assert (
        sentences
        == "when both hosts send at once, they reach 900 Mbit/s of the 2.00 Gbit/s of their NICs "
        "(45 %)"
    )
    assert oddities([sent("a", 950e6), sent("b", 950e6)]) == ()
    assert oddities([sent("a", 400e6), sent("b", 500e6, None)]) == ()


def test_the_csv_has_a_line_per_figure_with_empty_unknowns() -> None:
    lines = list(
        csv.DictReader(
            io.StringIO(
                baseline_csv([disk("store-1", 50 * MB, promised=100 * MB), sent("a", 1e8, None)])
            )
        )
    )
    assert [
        (one["host"], one["value"], one["share_of_promised"], one["request_bytes"]) for one in lines
    ] == [("store-1", "5e+07", "0.5000", "64000"), ("a", "1e+08", "", "")]


def test_a_baseline_is_read_as_it_was_written() -> None:
    baseline = made(disk("store-1", 1.0), link("a", "b", 2.0))
    assert Baseline.model_validate_json(baseline.model_dump_json()) == baseline


def test_the_charts_title_names_anomalies_and_it_shows_every_promise() -> None:
    chart = baseline_chart(
        made(disk("store-1", 50 * MB, promised=100 * MB), link("a", "b", 1e9), sent("a", 1e9))
    )
    assert chart.finding.startswith("Disk wb0 random read of 64 kB on store-1 gave 50.0 MB/s")
    drawn = "\n".join(texts_of(chart))
    for words in (
        "store-1: disk wb0 random read of 64 kB",
        "50.0 MB/s, 50 %",
        "a to b",
        "1.00 Gbit/s, 100 %",
    ):
        assert words in drawn
    assert (
        baseline_chart(made(sent("a", 1e9))).finding
        == "The hosts of three are equal and reach what is promised"
    )


def test_the_chart_of_many_figures_shows_the_lowest_and_says_so() -> None:
    chart = baseline_chart(made(*(sent(f"host-{n:03}", 1e9 + n) for n in range(MOST_BARS + 5))))
    drawn = "\n".join(texts_of(chart))
    assert f"the lowest {MOST_BARS} of {MOST_BARS + 5}" in drawn
    assert "host-000" in drawn
    assert f"host-{MOST_BARS + 4:03}" not in drawn
