"""A whole run made up for tests and for trying charts and reports: seeded, with a step that failed
and one not valid.

The curves follow the Universal Scalability Law (N. J. Gunther), so that they bend as those of real
gateways do; the figures say nothing about any real one.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Literal

from fake_layers import attest, drivers, hardware, layer_steps, passes, structure
from made_up import fake_measurement
from weighbridge.results.analysis.steps.validity import judge
from weighbridge.results.record.manifest import ConfigFile, Sheet
from weighbridge.results.record.resolved import PlannedLayout, ResolvedPlan
from weighbridge.results.record.step import StepKey, StepResult
from weighbridge.results.record.store import RunStore
from weighbridge.results.record.telemetry import (
    DiskLimit,
    DiskSecond,
    Head,
    HostLimits,
    HostSecond,
    Tail,
    Tier,
)
from weighbridge.suites import Bounds, DriverName, Layer, Objects, Suite, Workload

LAYOUTS = ("rgw-beast", "swift")
WORKLOADS = (
    Workload(
        name="small-read",
        objects=Objects(size=1_000_000),
        operations={"read": 100},
        workers=(1, 4, 16, 32),
        runtime=20.0,
    ),
    Workload(
        name="small-write",
        objects=Objects(size=1_000_000),
        operations={"write": 100},
        workers=(1, 4, 16, 32),
        runtime=20.0,
    ),
    Workload(
        name="large-read",
        objects=Objects(size=64_000_000),
        operations={"read": 100},
        workers=(1, 4, 8),
        runtime=20.0,
    ),
)


@dataclass(frozen=True)
class Spoilt:
    """What goes wrong in a made-up run, by (layout, workload, workers): the first repeat of
    each.
    """

    failed: tuple[tuple[str, str, int], ...] = ()
    erring: tuple[tuple[str, str, int], ...] = ()
    absent: tuple[tuple[str, str, int], ...] = ()
    """Not measured in any repeat."""


def fake_run(
    runs: Path,
    *,
    layouts: Sequence[str] = LAYOUTS,
    workloads: Sequence[Workload] = WORKLOADS,
    repeats: int = 5,
    seed: int = 2014,
    spoilt: Spoilt | None = None,
    about: str = "Made-up figures",
    telemetry: bool = True,
    layers: Sequence[Layer] = (),
    driver: Literal["locust", "cosbench", "both"] = "locust",
) -> RunStore:
    """A finished run below `runs`; without `telemetry` it is as runs were before there was any.
    Raises StoreError.

    `layers` are measured where a layout of its name has them.
    """
    wrong = spoilt or Spoilt()
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
        sheets=[
            Sheet(
                title="machine",
                facts={
                    "kernel": "Linux 6.1",
                    "processor": "made up",
                    "cores": "2",
                    "memory": "24 GiB",
                },
            )
        ],
    )
    for layout in layouts:
        store.add_facts(
            [
                Sheet(
                    title="gateway",
                    layout=layout,
                    facts={"replicas": "3", "acknowledgement": "majority", "tcp_nodelay": "1"},
                )
            ],
            [
                ConfigFile(
                    layout=layout,
                    host="gateway-1",
                    path="/etc/made-up.conf",
                    text=f"# {about}\n[made-up]\nkey = ***\n",
                )
            ],
        )
    order = 0
    for repeat in range(repeats):
        for layout in layouts:
            attest(store, layout, repeat, suite)
            for workload in workloads:
                for workers, by in product(workload.workers, drivers(suite)):
                    if (layout, workload.name, workers) not in wrong.absent:
                        key = StepKey(
                            layout=layout,
                            api="swift",
                            workload=workload.name,
                            workers=workers,
                            repeat=repeat,
                            driver=by,
                        )
                        if telemetry:
                            _record(store, key, workload, list(layouts).index(layout), seed)
                        store.append(
                            _step(key, workload, list(layouts).index(layout), order, seed, wrong)
                        )
                        order += 1
            for step, workload in layer_steps(
                layout, suite, repeat, order, partial(_mean_ms, list(layouts).index(layout))
            ):
                if telemetry:
                    _record(store, step.key, workload, list(layouts).index(layout), seed)
                store.append(step)
                order += 1
    store.set_state("done")
    return store


def _step(
    key: StepKey, workload: Workload, number: int, order: int, seed: int, wrong: Spoilt
) -> StepResult:
    where = (key.layout, key.workload, key.workers)
    if key.repeat == 0 and where in wrong.failed:
        return StepResult(
            key=key,
            measurement=None,
            valid=False,
            notes=("the gateway did not answer for 60 s",),
            order=order,
        )
    draw = random.Random(f"{seed} {key}")
    size = workload.objects.mean_bytes
    measurement = fake_measurement(
        workload=key.workload,
        operations=workload.operations,
        workers=key.workers,
        window_s=workload.runtime,
        mean_ms=_mean_ms(number, size, key.workers) * math.exp(draw.gauss(0, 0.05))
        + _asking_ms(key.driver),
        spread=0.35 + 0.1 * number,
        object_size_bytes=round(size),
        errors={"http-503": 40, "timeout": 3}
        if key.repeat == 0 and where in wrong.erring
        else None,
        seed=draw.randrange(2**31),
        bins=key.driver == "cosbench",
    )
    verdict = judge(measurement, Bounds())
    return StepResult(
        key=key, measurement=measurement, valid=verdict.valid, notes=verdict.notes, order=order
    )


def _asking_ms(driver: DriverName) -> float:
    """What a driver adds to each request: COSBench waits before it sends one."""
    return 1.3 if driver == "cosbench" else 0.0


def _mean_ms(number: int, size_bytes: float, workers: int) -> float:
    """What a request takes on the layout of this number, on average."""
    alone_ms = (2.0 + size_bytes / 1e6 * 3.2) * (1 + 0.22 * number)
    slowdown = (
        1
        + (0.06 + 0.03 * number) * (workers - 1)
        + (0.0008 + 0.0006 * number) * workers * (workers - 1)
    )
    return alone_ms * slowdown


def _record(store: RunStore, key: StepKey, workload: Workload, number: int, seed: int) -> None:
    """Telemetry that bends as the curves do: of the first layout the gateway's CPU is used up
    first, of others the stores'.
    """
    draw = random.Random(f"{seed} {key} telemetry")
    busy = (1 - math.exp(-key.workers / 5)) * (1 - 0.04 * number)
    shares = {
        "client-1": 0.45 * busy,
        "gateway-1": (0.98 if number % 2 == 0 else 0.7) * busy,
        **{f"store-{one}": (0.6 if number % 2 == 0 else 1.0) * busy for one in (1, 2, 3)},
    }
    written = 1.0 if "write" in workload.operations else 0.02
    with store.record_telemetry(Head(key=key, hosts=_HOSTS)) as file:
        for second in range(-2, math.ceil(workload.runtime)):
            lines = []
            for limits in _HOSTS:
                share = min(1.0, shares[limits.host] * math.exp(draw.gauss(0, 0.02)))
                moved = round(busy * 40e6)
                written_bytes = round(moved * written)
                disk = DiskSecond(
                    read_bytes=0,
                    written_bytes=written_bytes,
                    reads=0,
                    writes=moved // 65536,
                    busy_s=0.3 * busy * written,
                    waited_s=0.9 * busy * written,
                )
                lines.append(
                    HostSecond(
                        second=second,
                        at_s=second + 1.0,
                        span_s=1.0,
                        phase="warm-up" if second < 0 else "measure",
                        host=limits.host,
                        tier=limits.tier,
                        cpu_s=share * (limits.cpus or 1),
                        cpu_periods=10,
                        throttled_periods=round(10 * max(0.0, share - 0.6) / 0.4),
                        memory_bytes=700 * 2**20,
                        memory_held_bytes=500 * 2**20,
                        disks=(disk,) if limits.disks else None,
                        received_bytes=moved,
                        sent_bytes=moved,
                        network_faults=0,
                    )
                )
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
