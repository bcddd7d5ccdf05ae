"""What it costs to keep objects: bytes on disks, and the memory of daemons."""

from __future__ import annotations

from typing import Final

from weighbridge.results.show.table import Table, columns, line
from weighbridge.results.show.tables import RUN, Feature

KEPT: Final = Table(
    "kept",
    "A line for each layout and workload: what its objects take on disks.",
    columns(f"""
{RUN}
layout text | The layout.
workload text | The workload.
api text | How the objects were written.
driver text | What wrote them.
objects integer | How many.
stored_bytes integer B | Their bytes.
compressible number | Share of their bytes that compress; unknown where the suite does not say it.
disk_bytes number B | What they take, all copies counted.
times number | Bytes on disks per byte stored.
least_times number | The least of all repeats.
most_times number | The most of all repeats.
beside_bytes number B | Growth of databases and metadata.
repeats integer | How often it was read.
how text | Where it was read.
"""),
    lambda data: map(line, data.costs.kept),
)
MEMORY: Final = Table(
    "memory",
    "A line for each layout and kind of daemon: the memory that was resident after steps.",
    columns(f"""
{RUN}
layout text | The layout.
role text | The kind of daemon, or all of them.
hosts texts | Where they run.
daemons integer | How many.
least_bytes integer B | The least of one.
most_bytes integer B | The most of one.
sum_bytes integer B | The most of all together.
peak_bytes integer B | The most of one at any time.
"""),
    lambda data: map(line, data.costs.memory),
)
FEATURE: Final = Feature(tables=(KEPT, MEMORY))
