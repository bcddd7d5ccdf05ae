"""Which layout serves which workload fastest: the charts of a comparison."""

from __future__ import annotations

from typing import Final

from weighbridge.results.show.chart_source import ChartKind
from weighbridge.results.show.charts.bars import ratio_chart, throughput_bars
from weighbridge.results.show.charts.by_workers import (
    first_byte_by_workers,
    latency_by_workers,
    throughput_by_workers,
)
from weighbridge.results.show.charts.change_map import change_charts
from weighbridge.results.show.charts.distributions import percentile_chart, share_chart
from weighbridge.results.show.charts.over_time import latency_over_time
from weighbridge.results.show.charts.resources import resources_by_workers
from weighbridge.results.show.charts.within_bound import hockey_stick
from weighbridge.results.show.feature import Feature

FEATURE: Final = Feature(
    charts={
        "throughput-by-workers": ChartKind(throughput_by_workers),
        "latency-by-workers": ChartKind(latency_by_workers),
        "first-byte-by-workers": ChartKind(first_byte_by_workers),
        "recap-map": ChartKind(change_charts),
        "ratios": ChartKind(ratio_chart),
        "throughput-bars": ChartKind(throughput_bars),
        "hockey-stick": ChartKind(hockey_stick),
        "percentiles": ChartKind(percentile_chart),
        "latency-shares": ChartKind(share_chart),
        "latency-over-time": ChartKind(latency_over_time),
        "resources-by-workers": ChartKind(resources_by_workers, runs=("comparison", "tuning")),
    }
)
