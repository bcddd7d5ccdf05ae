"""A complete made-up run for tests, charts and reports: seeded, with steps that can go wrong.

The curves follow the Universal Scalability Law (N. J. Gunther), so that they bend like those of
real gateways; the figures say nothing about any real one.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Literal

from fake_layers import attest, drivers, hardware, layer_steps, passes, structure
from made_up import host_second, measured_step
from weighbridge.results.run.durability import DaemonMemory, KeptObjects, record_kept
from weighbridge.results.run.resolved import ConfigFile, PlannedLayout, ResolvedPlan, Sheet
from weighbridge.results.run.step import StepKey, StepResult
from weighbridge.results.run.store import RunStore
from weighbridge.results.run.telemetry import DiskLimit, DiskSecond, Head, HostLimits, Tail, Tier
from weighbridge.suites import DriverName, Layer, Objects, Operation, Suite, Workload

LAYOUTS = ("rgw-beast", "swift")
_MACHINE = {"kernel": "Linux 6.1", "processor": "made up", "cores": "2", "memory": "24 GiB"}
_SETTINGS = {"replicas": "3", "acknowledgement": "majority", "tcp_nodelay": "1"}


def _workload(name: str, operation: Operation, size: int, workers: tuple[int, ...]) -> Workload:
    return Workload(
        name=name,
        objects=Objects(size=size),
        operations={operation: 100},
        workers=workers,
        runtime=20.0,
    )


WORKLOADS = (
    _workload("small-read", "read", 1_000_000, (1, 4, 16, 32)),
    _workload("small-write", "write", 1_000_000, (1, 4, 16, 32)),
    _workload("large-read", "read", 64_000_000, (1, 4, 8)),
)


@dataclass(frozen=True)
class StepFaults:
    """What goes wrong in the first repeat of a made-up run, by (layout, workload, workers)."""

    failed: tuple[tuple[str, str, int], ...] = ()
    erring: tuple[tuple[str, str, int], ...] = ()
    absent: tuple[tuple[str, str, int], ...] = ()
    """Not measured in any repeat."""


def keep(store: RunStore, layout: str, repeat: int, suite: Suite) -> None:
    """Record made-up bytes on disks and memory of daemons: three bytes a byte; 1 GiB."""
    place: dict[str, Any] = {
        "layout": layout,
        "repeat": repeat,
        "workload": suite.workloads[0].name,
    }
    objects = KeptObjects(
        **place,
        api="swift",
        driver="locust",
        objects=1000,
        stored_bytes=10**6,
        before_bytes=0,
        after_bytes=3 * 10**6,
        how="made up",
    )
    daemon = {"host": "store-1", "daemon": "made-up.0", "role": "made-up", "processes": 1}
    memory = DaemonMemory.model_validate({**place, **daemon, "resident_bytes": 2**30})
    record_kept(store.folder, objects, memory)


def fake_run(
    runs: Path,
    *,
    layouts: Sequence[str] = LAYOUTS,
    workloads: Sequence[Workload] = WORKLOADS,
    repeats: int = 5,
    seed: int = 2014,
    spoilt: StepFaults | None = None,
    about: str = "Made-up figures",
    telemetry: bool = True,
    layers: Sequence[Layer] = (),
    driver: Literal["locust", "cosbench", "locust,cosbench"] = "locust",
    slower: float = 1.0,
) -> RunStore:
    """A finished run below `runs`. Raises StoreError.

    `layers` are measured on the layouts that have them; `slower`: every request takes so many times
    as long.
    """
    wrong = spoilt or StepFaults()
    suite = Suite(
        name="made-up",
        about=about,
        workloads=tuple(workloads),
        repeats=repeats,
        layouts=tuple(layouts),
        seed=seed,
        layers=tuple(layers),
        driver=driver,
    )
    plan = ResolvedPlan(
        suite=suite,
        hardware=hardware(),
        layouts=tuple(
            PlannedLayout(
                name=name,
                about=about,
                gateway="swift" if name.startswith("swift") else "rgw",
                release="none-0",
            )
            for name in layouts
        ),
        passes={name: passes(name, suite) for name in layouts},
        structures={name: structure(name) for name in layouts},
    )
    store = RunStore.create(
        runs,
        plan_yaml=f"name: {suite.name}\n",
        plan=plan,
        suite=suite.name,
        command=("weighbridge", "compare", "--suite", "made-up.yaml"),
        weighbridge_version="0.1.0",
        sheets=[Sheet(title="machine", facts=_MACHINE)],
    )
    for layout in layouts:
        text = f"# {about}\n[made-up]\nkey = ***\n"
        store.add_facts(
            [Sheet(title="gateway", layout=layout, facts=_SETTINGS)],
            [ConfigFile(layout=layout, host="gateway-1", path="/etc/made-up.conf", text=text)],
        )
    order = 0
    for repeat, (number, layout) in product(range(repeats), enumerate(layouts)):
        attest(store, layout, repeat, suite)
        keep(store, layout, repeat, suite)
        steps = [
            (_step(key, workload, number, seed, wrong, slower), workload)
            for workload in workloads
            for workers, by in product(workload.workers, drivers(suite))
            if (layout, workload.name, workers) not in wrong.absent
            for key in [
                StepKey(
                    layout=layout,
                    api="swift",
                    workload=workload.name,
                    workers=workers,
                    repeat=repeat,
                    driver=by,
                )
            ]
        ]
        first = order + len(steps)
        steps += layer_steps(layout, suite, repeat, first, partial(_mean_ms, number))
        for step, workload in steps:
            if telemetry:
                _record(store, step.key, workload, number, seed)
            store.append(step.model_copy(update={"order": order}))
            order += 1
    store.set_state("done")
    return store


def short_run(
    runs: Path, *, kind: int = 0, workers: tuple[int, ...] = (1,), runtime: float = 1.0, **more: Any
) -> RunStore:
    """A run of one of `WORKLOADS` for a second by one worker; `more` as of `fake_run`."""
    workload = WORKLOADS[kind].model_copy(update={"workers": workers, "runtime": runtime})
    return fake_run(runs, workloads=[workload], **more)


def _step(
    key: StepKey, workload: Workload, number: int, seed: int, wrong: StepFaults, slower: float
) -> StepResult:
    where = (key.layout, key.workload, key.workers)
    if key.repeat == 0 and where in wrong.failed:
        why = "the gateway did not answer for 60 s"
        return StepResult(key=key, measurement=None, valid=False, notes=(why,), order=0)
    erring = key.repeat == 0 and where in wrong.erring
    draw = random.Random(f"{seed} {key}")
    mean_ms = _mean_ms(number, workload.objects.mean_bytes, key.workers)
    return measured_step(
        key,
        workload,
        slower * mean_ms * math.exp(draw.gauss(0, 0.05)) + _overhead_ms(key.driver),
        order=0,
        seed=draw.randrange(2**31),
        spread=0.35 + 0.1 * number,
        errors={"http-503": 40, "timeout": 3} if erring else None,
        bins=key.driver == "cosbench",
    )


def _overhead_ms(driver: DriverName) -> float:
    """What a driver adds to the latency of a request: COSBench waits before it sends one."""
    return 1.3 if driver == "cosbench" else 0.0


def _mean_ms(number: int, size_bytes: float, workers: int) -> float:
    """The mean latency of a request to the layout of this number."""
    alone_ms = (2.0 + size_bytes / 1e6 * 3.2) * (1 + 0.22 * number)
    slowdown = (
        1
        + (0.06 + 0.03 * number) * (workers - 1)
        + (0.0008 + 0.0006 * number) * workers * (workers - 1)
    )
    return alone_ms * slowdown


def _record(store: RunStore, key: StepKey, workload: Workload, number: int, seed: int) -> None:
    """Telemetry that follows the curves.

    The gateway's CPU is the first layout's bottleneck, the storage hosts' CPU the next one's.
    """
    draw = random.Random(f"{seed} {key} telemetry")
    busy = (1 - math.exp(-key.workers / 5)) * (1 - 0.04 * number)
    gateway, store_share = (0.98, 0.6) if number % 2 == 0 else (0.7, 1.0)
    shares = {"client": 0.45 * busy, "gateway": gateway * busy, "storage": store_share * busy}
    written = 1.0 if "write" in workload.operations else 0.02
    moved = round(busy * 40e6)
    disk = DiskSecond(
        read_bytes=0,
        written_bytes=round(moved * written),
        reads=0,
        writes=moved // 65536,
        busy_s=0.3 * busy * written,
        waited_s=0.9 * busy * written,
    )
    with store.record_telemetry(Head(key=key, hosts=_HOSTS)) as file:
        for second in range(-2, math.ceil(workload.runtime)):
            lines = []
            for limits in _HOSTS:
                share = min(1.0, shares[limits.tier] * math.exp(draw.gauss(0, 0.02)))
                one = host_second(
                    limits,
                    second,
                    share * (limits.cpus or 1),
                    phase="warm-up" if second < 0 else "measure",
                    throttled_periods=round(10 * max(0.0, share - 0.6) / 0.4),
                    disks=(disk,) if limits.disks else None,
                    received_bytes=moved,
                    sent_bytes=moved,
                )
                lines.append(one)
            file.write(lines)
        file.write([Tail(opened_within_s=0.01)])


def _host(name: str, tier: Tier, cpus: float) -> HostLimits:
    disks = (DiskLimit(bandwidth_bytes_s=200_000_000),) if tier == "storage" else ()
    return HostLimits(
        host=name, tier=tier, cpus=cpus, memory_bytes=2**30, nic_bits_s=1e9, disks=disks
    )


_HOSTS = (
    _host("client-1", "client", 0.5),
    _host("gateway-1", "gateway", 0.6),
    *(_host(f"store-{number}", "storage", 0.3) for number in (1, 2, 3)),
)
