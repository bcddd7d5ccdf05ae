"""What lies inside a step: what each of several endpoints served, profiles of daemons, a disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from weighbridge.common.quantities import show_bytes
from weighbridge.results.judge.run_data import RunData
from weighbridge.results.numbers import UNKNOWN, counted, show_figure, upper
from weighbridge.results.run.profile import DiskRequests, DiskTrace, Profile, Times, read_profiles
from weighbridge.results.run.step import EndpointTally, StepResult
from weighbridge.results.show.feature import Feature
from weighbridge.results.show.section import Grid, Part, Section
from weighbridge.results.show.tables import endpoint_p90

_ENDPOINT_HEAD: Final = (
    *("Workload", "API", "Workers", "Layout", "Endpoint"),
    *("Requests", "Share", "p90 ms", "Busiest / mean", "Failures"),
)


def endpoint_grid(steps: Iterable[StepResult]) -> Grid:
    """A line for each endpoint of each step, over its repeats; none where each layout has one."""
    groups: dict[tuple[str, ...], dict[str, list[EndpointTally]]] = {}
    for step in steps:
        key = step.key
        if step.measurement is None:
            continue
        for tally in step.measurement.endpoints:
            about = (key.workload, key.api, str(key.workers), key.layout)
            endpoints = groups.setdefault((*about, key.driver, str(key.layer)), {})
            endpoints.setdefault(tally.name, []).append(tally)
    lines = [
        (*step[:4], *cells) for step, endpoints in groups.items() for cells in _endpoints(endpoints)
    ]
    return Grid("What each endpoint served", _ENDPOINT_HEAD, lines, (2, *range(5, 9)))


def _endpoints(endpoints: dict[str, list[EndpointTally]]) -> Iterator[tuple[str, ...]]:
    """The cells of each endpoint of a step: sums of counts, p90 of all latencies."""
    counts = {name: sum(tally.count for tally in tallies) for name, tallies in endpoints.items()}
    total = sum(counts.values())
    imbalance = max(counts.values()) * len(counts) / total if total else None
    for name, tallies in endpoints.items():
        errors: Counter[str] = Counter()
        for tally in tallies:
            errors.update(tally.errors)
        p90_ms, fault = endpoint_p90(tallies)
        failures = [f"{count} {error}" for error, count in sorted(errors.items())]
        if left_out := sum(tally.left_out for tally in tallies):
            failures.append(f"left out in {counted(left_out, 'repeat')}")
        failures += [fault] if fault else []
        yield (
            *(name, str(counts[name]), f"{counts[name] / total if total else 0.0:.1%}"),
            UNKNOWN if p90_ms is None else show_figure(p90_ms),
            UNKNOWN if imbalance is None else f"{imbalance:.2f}",
            ", ".join(failures) or "none",
        )


_DISK_HEAD: Final = (
    *("Direction", "Requests/s", "MB/s", "Size: median", "min to max"),
    *("Q2C mean", "p50", "p99", "max ms", "D2C mean", "p50", "p99", "max ms"),
    *("Seeks", "Median seek"),
)


def profile_part(profile: Profile) -> Part:
    """One layout's profile."""
    disk = profile.disk
    grids = []
    if disk is not None:
        lines = [_disk_line(requests, disk.seconds) for requests in disk.ways]
        grids.append(Grid(_disk_caption(disk), _DISK_HEAD, lines, range(1, len(_DISK_HEAD))))
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
    cost = ""
    if profile.perf_cpu_s is not None:
        cost = f" perf itself used {show_figure(profile.perf_cpu_s)} s of CPU."
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


def _disk_line(requests: DiskRequests, seconds: float) -> tuple[str, ...]:
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


def _times(times: Times | None) -> Sequence[str]:
    if times is None:
        return (UNKNOWN,) * 4
    return [
        show_figure(value) for value in (times.mean_ms, times.p50_ms, times.p99_ms, times.max_ms)
    ]


def detail_sections(data: RunData) -> Iterator[Section]:
    """What each of several endpoints served, and what a profiled step shows; none without them."""
    grid = endpoint_grid(data.steps.values())
    if grid.lines:
        text = (
            "Requests went to several endpoints of a gateway without a front. Sums of all repeats; "
            "all operations of a workload together."
        )
        part = Part(text=text, grids=(grid,))
        yield Section("endpoints", "Several endpoints", (part,), folded=True)
    profiles = read_profiles(data.store.folder)
    if profiles:
        text = (
            "One step of each layout was profiled while its window was open. Profiling uses CPU of "
            "the same machine: the figures of this step in its first repeat are somewhat lower "
            "because of it."
        )
        title = f"Profile of {profiles[0].workload} at {profiles[0].workers} workers"
        parts = (Part(text=text), *map(profile_part, profiles))
        yield Section("profile", title, parts, folded=True)


FEATURE: Final = Feature(sections=detail_sections)
