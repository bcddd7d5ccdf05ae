from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from weighbridge.common.quantities import show_bytes
from weighbridge.results.judge.run_data import RunData
from weighbridge.results.numbers import UNKNOWN, show_figure, upper
from weighbridge.results.run.profile import DiskRequests, DiskTrace, Profile, Times, read_profiles
from weighbridge.results.show.feature import Feature
from weighbridge.results.show.section import Grid, Part, Section

DISK_TITLES: Final = (
    *("Direction", "Requests/s", "MB/s", "Size: median", "min to max"),
    *("Q2C mean", "p50", "p99", "max ms", "D2C mean", "p50", "p99", "max ms"),
    *("Seeks", "Median seek"),
)


def profile_sections(data: RunData) -> Iterator[Section]:
    """What the daemons and a disk did in the profiled step; none without one."""
    profiles = read_profiles(data.store.folder)
    if profiles:
        text = (
            "One step of each layout was profiled while its window was open. Profiling uses CPU of "
            "the same machine: the figures of this step in its first repeat are somewhat lower "
            "because of it."
        )
        yield Section(
            "profile",
            f"Profile of {profiles[0].workload} at {profiles[0].workers} workers",
            (Part(text=text), *map(profile_part, profiles)),
            folded=True,
        )


def profile_part(profile: Profile) -> Part:
    """One layout's profile."""
    disk = profile.disk
    grids = []
    if disk is not None:
        lines = [_line(requests, disk.seconds) for requests in disk.ways]
        numbers = range(1, len(DISK_TITLES))
        grids.append(Grid(_disk_caption(disk), DISK_TITLES, lines, numbers))
    return Part(
        title=profile.layout,
        text=_caption(profile),
        sentences=[upper(remark) for remark in profile.remarks],
        grids=grids,
    )


def _caption(profile: Profile) -> str:
    if not profile.samples:
        return "No stacks were taken."
    share = 100 * profile.unresolved / profile.samples
    cost = (
        ""
        if profile.perf_cpu_s is None
        else f" perf itself used {show_figure(profile.perf_cpu_s)} s of CPU."
    )
    return (
        f"{profile.samples:,} samples of the daemons on the gateway and storage hosts, "
        f"{profile.hertz} per second of CPU time ({profile.event}), in "
        f"{show_figure(profile.seconds)} s of the window.{cost} Each sample also costs CPU in the "
        "daemon that it interrupts. They are in stacks.folded below the run folder’s profile/, "
        "which any flame-graph viewer opens. Waiting is not in them. Stacks "
        "are unwound from the 8 KiB copied with each sample; deeper ones lack their roots. The "
        "programs have no debug symbols: only exported functions have names, and inlined or local "
        f"ones have none ({share:.0f} % of the samples end in one)."
    )


def _disk_caption(disk: DiskTrace) -> str:
    return (
        f"Disk {disk.disk} of {disk.host} in {show_figure(disk.seconds)} s, from the kernel’s "
        "block events that blktrace records. Q2C: from queued to completed, each request as it "
        "was made; D2C: from issued to the device to completed, after adjacent requests were "
        "merged. Both start after the disk limit of the hardware file has let the request pass. "
        "Seeks: requests that do not begin where the previous one ended. "
        f"There were also {disk.flushes:,} flushes."
    )


def _line(requests: DiskRequests, seconds: float) -> tuple[str, ...]:
    share = 100 * requests.seeks / requests.requests if requests.requests else 0.0
    seek_bytes = requests.median_seek_bytes
    return (
        requests.way,
        show_figure(requests.requests / seconds if seconds else None),
        show_figure(requests.bytes / seconds / 1e6 if seconds else None),
        show_bytes(requests.median_bytes),
        f"{show_bytes(requests.smallest_bytes)} to {show_bytes(requests.largest_bytes)}",
        *_times(requests.q2c),
        *_times(requests.d2c),
        f"{share:.0f} %",
        UNKNOWN if seek_bytes is None else show_bytes(float(f"{seek_bytes:.2g}")),
    )


def _times(times: Times | None) -> tuple[str, ...]:
    if times is None:
        return (UNKNOWN,) * 4
    return tuple(
        show_figure(value) for value in (times.mean_ms, times.p50_ms, times.p99_ms, times.max_ms)
    )


FEATURE: Final = Feature(sections=profile_sections)
