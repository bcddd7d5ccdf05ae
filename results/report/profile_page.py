"""The profiles of a run as the report shows them: a caption in words, the flame graph, the table of
the disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weighbridge.common.inert import inert
from weighbridge.common.quantities import show_bytes
from weighbridge.common.record import Record
from weighbridge.results.charts.flame import flame
from weighbridge.results.figures import UNKNOWN, show_figure
from weighbridge.results.record.block_trace import DiskRequests, DiskTrace, Times
from weighbridge.results.record.profile import Profile, Profiled

DISK_TITLES: Final = (
    *(
        "Way",
        "Requests/s",
        "MB/s",
        "Size: median",
        "least to most",
        "Q2C mean",
        "p50",
        "p99",
        "max ms",
    ),
    *("D2C mean", "p50", "p99", "max ms", "Seeks", "Median seek"),
)


class ProfileShown(Record):
    """One layout's profile."""

    layout: str
    workload: str
    workers: int
    caption: str
    svg: str
    """Drawn by `flame`, which escapes what it was told: a page may have it as it is."""
    remarks: tuple[str, ...]
    disk_caption: str
    disk_titles: tuple[str, ...] = DISK_TITLES
    disk_lines: tuple[tuple[str, ...], ...]


def shown(profiled: Sequence[Profiled]) -> tuple[ProfileShown, ...]:
    """What the report shows of profiles; empty where there are none."""
    return tuple(_shown(one) for one in profiled)


def _shown(one: Profiled) -> ProfileShown:
    profile = one.profile
    title = f"{profile.layout}, {profile.workload}, {profile.workers} workers"
    return ProfileShown(
        layout=profile.layout,
        workload=profile.workload,
        workers=profile.workers,
        caption=_caption(profile),
        svg=inert(flame(one.stacks, title=title)) if one.stacks else "",
        remarks=profile.remarks,
        disk_caption=_disk_caption(profile.disk) if profile.disk is not None else "",
        disk_lines=tuple(_line(asked, profile.disk.seconds) for asked in profile.disk.ways)
        if profile.disk is not None
        else (),
    )


def _caption(profile: Profile) -> str:
    if not profile.samples:
        return "No stacks were taken."
    share = 100 * profile.unresolved / profile.samples
    cost = (
        ""
        if profile.perf_cpu_s is None
        else f" perf itself used {show_figure(profile.perf_cpu_s)} s of CPU,"
    )
    return (
        f"{profile.samples:,} samples of the daemons on the gateway’s and the storage hosts, "
        f"{profile.hertz} a second of CPU "
        f"time ({profile.event}), in {show_figure(profile.seconds)} s of the window.{cost} "
        "besides what each sample costs the "
        "daemon that it stops. Wide is much CPU time; what waits is not seen. Stacks are unwound "
        "from 8 KiB that are copied of "
        "each; deeper ones have lost their roots. The programs have no debug symbols: names are "
        "those that they export, and "
        f"what is inlined or local has none ({share:.0f} % of the samples end there). Rest the "
        "pointer on a frame for its name."
    )


def _disk_caption(disk: DiskTrace) -> str:
    return (
        f"Disk {disk.disk} of {disk.host} in {show_figure(disk.seconds)} s, by the block events "
        "of the kernel that blktrace takes. "
        "Q2C: from queued to done, each request as it was made; D2C: from given to the device, "
        "neighbours joined. Both begin "
        "after the limit of the hardware file has let a request pass. Seeks: requests that do not "
        "begin where the last one ended. "
        f"Besides: {disk.flushes:,} flushes."
    )


def _line(asked: DiskRequests, seconds: float) -> tuple[str, ...]:
    """A row of the table; of what was not seen, dashes."""
    rate = asked.requests / seconds if seconds else None
    speed = asked.bytes / seconds / 1e6 if seconds else None
    share = 100 * asked.seeks / asked.requests if asked.requests else 0.0
    return (
        asked.way,
        show_figure(rate),
        show_figure(speed),
        show_bytes(asked.median_bytes),
        f"{show_bytes(asked.smallest_bytes)} to {show_bytes(asked.largest_bytes)}",
        *_times(asked.q2c),
        *_times(asked.d2c),
        f"{share:.0f} %",
        UNKNOWN
        if asked.median_seek_bytes is None
        else show_bytes(float(f"{asked.median_seek_bytes:.2g}")),
    )


def _times(times: Times | None) -> tuple[str, str, str, str]:
    if times is None:
        return UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN
    mean, middle, late, most = (
        show_figure(value) for value in (times.mean_ms, times.p50_ms, times.p99_ms, times.max_ms)
    )
    return mean, middle, late, most
