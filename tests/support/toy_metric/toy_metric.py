"""A metric of another package, the 95th percentile of latencies, and an export format for it."""

from weighbridge.results.export.file import ExportFile, Format, Produced
from weighbridge.results.metrics import Metric

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

LINES = Format(
    "a line a row with its p95",
    lambda data, _tables: Produced(
        files=(
            ExportFile(
                name="p95.txt",
                content="".join(
                    f"{row.layout} {row.workers} {row.value('p95')}\n" for row in data.rows
                ).encode(),
            ),
        )
    ),
)
