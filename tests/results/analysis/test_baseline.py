"""The anomalies of a baseline, computed by hand, and its storage."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from chart_sources import texts_of
from weighbridge.results.analysis.baseline import (
    Baseline,
    HostFigure,
    baseline_csv,
    oddities,
)
from weighbridge.results.charts.baseline_chart import MOST_BARS, baseline_chart

MB = 1e6


def host_figure(**given: Any) -> HostFigure:
    return HostFigure.model_validate(given)


def disk(host: str, value: float, **changes: Any) -> HostFigure:
    job = "random read of 64 kB"
    kind = {"kind": "disk", "group": "disk", "what": f"disk wb0 {job}", "job": job, "unit": "B/s"}
    asked = {"operation": "read", "pick": "random", "request_bytes": 64_000, "like": "20 GiB"}
    return host_figure(host=host, value=value, **{**kind, **asked, **changes})


def link(sender: str, receiver: str, value: float, promised: float | None = 1e9) -> HostFigure:
    ends = {"sender": sender, "receiver": receiver, "host": receiver}
    kind = {"kind": "network", "group": "network", "job": "network", "unit": "bit/s"}
    what = f"network from {sender}"
    return host_figure(value=value, promised=promised, what=what, **kind, **ends)


def sent(host: str, value: float, promised: float | None = 1e9) -> HostFigure:
    kind = {"kind": "network", "group": "fabric", "job": "sent", "unit": "bit/s"}
    what = "sent while all hosts send to 2"
    return host_figure(host=host, value=value, promised=promised, what=what, **kind)


def made(*figures: HostFigure) -> Baseline:
    facts = {"hardware": "three", "about": "", "measured_at": "2026-01-01T00:00:00+00:00"}
    return Baseline.model_validate(
        {**facts, "took_s": 1.0, "tools": {}, "machine": {}, "figures": figures}
    )


@pytest.mark.parametrize(
    ("figures", "said"),
    [
        (
            [disk("store-1", 200 * MB), disk("store-2", 190 * MB), disk("store-3", 80 * MB)],
            "on store-3 gave 80.0 MB/s, 58 % less than the median of the 3 (190 MB/s)",
        ),
        (
            [disk("store-1", 200 * MB), disk("store-2", 80 * MB)],
            "on store-2 gave 80.0 MB/s, vs 200 MB/s on store-1",
        ),
        # Disks that differ in the hardware file are not compared.
        ([disk("store-1", 200 * MB), disk("store-2", 80 * MB, like="1 GiB")], ""),
        ([disk("store-1", 91 * MB, promised=100 * MB)], ""),
        (
            [disk("store-1", 85 * MB, promised=100 * MB)],
            "gave 85.0 MB/s, 15 % less than the 100 MB/s promised",
        ),
        (
            [
                *(link("a", "b", 500e6, None), link("b", "a", 950e6, None)),
                *(link("a", "c", 950e6, None), link("c", "a", 900e6, None)),
            ],
            "a sends 500 Mbit/s to b, 47 % less than the 950 Mbit/s in the other direction",
        ),
        ([sent("a", 400e6), sent("b", 500e6)], "reach 900 Mbit/s of the 2.00 Gbit/s of their NICs"),
        ([sent("a", 950e6), sent("b", 950e6)], ""),
        ([sent("a", 400e6), sent("b", 500e6, None)], ""),
    ],
)
def test_what_differs_from_its_equals_or_its_promise_is_reported_once_with_both_figures(
    figures: list[HostFigure], said: str
) -> None:
    found = oddities(figures)
    assert len(found) == bool(said)
    assert said in "".join(found)


def test_the_csv_has_a_line_per_figure_with_empty_unknowns() -> None:
    text = baseline_csv([disk("store-1", 50 * MB, promised=100 * MB), sent("a", 1e8, None)])
    columns = ("host", "value", "share_of_promised", "request_bytes")
    lines = [tuple(map(one.get, columns)) for one in csv.DictReader(io.StringIO(text))]
    assert lines == [("store-1", "5e+07", "0.5000", "64000"), ("a", "1e+08", "", "")]


def test_a_baseline_is_read_as_it_was_written() -> None:
    baseline = made(disk("store-1", 1.0), link("a", "b", 2.0))
    assert Baseline.model_validate_json(baseline.model_dump_json()) == baseline


def test_the_charts_title_names_anomalies_and_it_shows_every_promise() -> None:
    chart = baseline_chart(
        made(disk("store-1", 50 * MB, promised=100 * MB), link("a", "b", 1e9), sent("a", 1e9))
    )
    assert chart.finding.startswith("Disk wb0 random read of 64 kB on store-1 gave 50.0 MB/s")
    drawn = "\n".join(texts_of(chart))
    for words in ("store-1: disk wb0 random", "50.0 MB/s, 50 %", "a to b", "1.00 Gbit/s, 100 %"):
        assert words in drawn
    assert "equal and reach what is promised" in baseline_chart(made(sent("a", 1e9))).finding


def test_the_chart_of_many_figures_shows_the_lowest_and_says_so() -> None:
    chart = baseline_chart(made(*(sent(f"host-{n:03}", 1e9 + n) for n in range(MOST_BARS + 5))))
    drawn = "\n".join(texts_of(chart))
    assert f"the lowest {MOST_BARS} of {MOST_BARS + 5}" in drawn
    assert "host-000" in drawn
    assert f"host-{MOST_BARS + 4:03}" not in drawn
