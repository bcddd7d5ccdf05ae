"""A metric of another package: the 95th percentile of latencies."""

from weighbridge.results.figures.metrics import Metric

P95 = Metric(
    key="p95",
    name="p95",
    title="p95",
    unit="ms",
    suffix="ms",
    group="latency",
    about="95 % of the successful operations took at most this long.",
    read=lambda one: one.latency(95),
    better="less",
    percent=95,
    binned=True,
    bound=1.1,
)
