from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weighbridge.common.quantities import show_bytes
from weighbridge.common.record import Record
from weighbridge.results.figures import UNKNOWN, show_figure
from weighbridge.results.record.profile import DiskRequests, DiskTrace, Profile, Times

DISK_TITLES: Final = (
    *("Direction", "Requests/s", "MB/s", "Size: median", "min to max"),
    *("Q2C mean", "p50", "p99", "max ms", "D2C mean", "p50", "p99", "max ms"),
    *("Seeks", "Median seek"),
)


class ProfileSection(Record):
    """One layout's profile."""

    layout: str
    workload: str
    workers: int
    caption: str
    remarks: tuple[str, ...]
    disk_caption: str
    disk_titles: tuple[str, ...] = DISK_TITLES
    disk_lines: tuple[tuple[str, ...], ...]


def profile_sections(profiles: Sequence[Profile]) -> tuple[ProfileSection, ...]:
    """The sections of these profiles, in order."""
    return tuple(_shown(one) for one in profiles)


def _shown(profile: Profile) -> ProfileSection:
    disk = profile.disk
    return ProfileSection(
        layout=profile.layout,
        workload=profile.workload,
        workers=profile.workers,
        caption=_caption(profile),
        remarks=profile.remarks,
        disk_caption="" if disk is None else _disk_caption(disk),
        disk_lines=()
        if disk is None
        else tuple(_line(requests, disk.seconds) for requests in disk.ways),
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
