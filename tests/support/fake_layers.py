"""The layers of a made-up run: what its hosts were attested to do, and what was measured below and
beside its gateways.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from made_up import fake_measurement
from weighbridge.common.structure import Structure
from weighbridge.results.analysis.steps.validity import judge
from weighbridge.results.record.attestation import Attested
from weighbridge.results.record.resolved import PlannedHardware, PlannedHost
from weighbridge.results.record.step import Pass, StepKey, StepResult
from weighbridge.results.record.store import RunStore
from weighbridge.suites import Api, Bounds, DriverName, Layer, Suite, Workload

STORES: Final = ("store-1", "store-2", "store-3")
DISK_BYTES_S: Final = {
    ("write", "sequential"): 2.6e9,
    ("read", "sequential"): 2.9e9,
    ("read", "random"): 0.5e9,
}
"""What one disk does; every host has one."""
LINK_BIT_S: Final = 40e9

_FASTER: Final[dict[tuple[Api, DriverName], float]] = {
    ("rados", "rados"): 0.75,
    ("object-server", "locust"): 0.75,
    ("swift", "locust"): 0.95,
    ("rbd", "rados"): 0.7,
    ("rbd", "fio"): 0.72,
    ("cephfs", "fio"): 1.4,
}
"""What a request takes there, by what it takes at the gateway."""


def hardware() -> PlannedHardware:
    """The hosts, with the limits of their NICs."""
    hosts = {name: PlannedHost(nic=LINK_BIT_S) for name in ("client-1", "gateway-1", *STORES)}
    return PlannedHardware(
        name="lab-made-up", about="No hosts at all", kind="fake", clients=("client-1",), hosts=hosts
    )


def structure(layout: str) -> Structure:
    """What a layout of this name is made of."""
    swift = layout.startswith("swift")
    fronts = {"haproxy": "HAProxy", "apache": "Apache"}
    return Structure(
        entrances=("gateway-1",),
        gateways=("gateway-1",),
        daemons=2 if "haproxy" in layout else 1,
        front=next((front for name, front in fronts.items() if name in layout), None),
        stores=STORES,
        disks=dict.fromkeys(STORES, (0,)),
        replicas=3,
        copied_by="gateway" if swift else "store",
    )


def passes(layout: str, suite: Suite) -> tuple[Pass, ...]:
    """What is replayed on it: the suite itself, then each layer that it has, at the largest worker
    counts.
    """
    ways: list[tuple[Layer, Api, DriverName]] = (
        [("gateway", "swift", "locust")] if structure(layout).front else []
    )
    if layout.startswith("swift"):
        ways.append(("object-server", "object-server", "locust"))
    else:
        ways += [
            ("rados", "rados", "rados"),
            ("rbd", "rbd", "rados"),
            ("rbd", "rbd", "fio"),
            ("cephfs", "cephfs", "fio"),
        ]
    largest = tuple(
        one.model_copy(update={"workers": (max(one.workers),)}) for one in suite.workloads
    )
    below = (
        Pass(api=api, driver=by, layer=layer, workloads=largest)
        for layer, api, by in ways
        if layer in suite.layers
    )
    return (
        *(Pass(api="swift", driver=driver, workloads=suite.workloads) for driver in drivers(suite)),
        *below,
    )


def drivers(suite: Suite) -> tuple[DriverName, ...]:
    """What makes the load on the gateways."""
    return ("locust", "cosbench") if suite.driver == "both" else (suite.driver,)


def attest(store: RunStore, layout: str, repeat: int, suite: Suite) -> None:
    """Keep what a deployment's hosts could do, of what the suite asks for. Raises StoreError."""
    about = {"layout": layout, "repeat": repeat}
    found = []
    sizes = sorted({min(round(one.objects.mean_bytes), 4 * 2**20) for one in suite.workloads})
    for host in STORES if "disk" in suite.layers else ():
        for size in sizes:
            for (operation, pick), value in DISK_BYTES_S.items():
                what = f"disk wb0 {pick} {operation} of {size} B"
                disk = {
                    "host": host,
                    "kind": "disk",
                    "what": what,
                    "value": value,
                    "unit": "B/s",
                    "promised": value,
                }
                found.append(
                    Attested.model_validate(
                        {
                            **about,
                            **disk,
                            "operation": operation,
                            "pick": pick,
                            "request_bytes": size,
                        }
                    )
                )
    if "network" in suite.layers:
        ends = [("client-1", name) for name in ("gateway-1", *STORES)] + [
            ("gateway-1", name) for name in STORES
        ]
        for one, other in (pair for end in ends for pair in (end, end[::-1])):
            link = {
                "host": other,
                "kind": "network",
                "what": f"network from {one}",
                "value": LINK_BIT_S,
                "unit": "bit/s",
            }
            found.append(
                Attested.model_validate(
                    {**about, **link, "promised": LINK_BIT_S, "sender": one, "receiver": other}
                )
            )
    store.attest(found)


def layer_steps(
    layout: str, suite: Suite, repeat: int, order: int, mean_ms: Callable[[float, int], float]
) -> Iterator[tuple[StepResult, Workload]]:
    """The steps of a layout's layers; `mean_ms` is what a request of so many bytes takes at its
    gateway with so many workers.
    """
    for one in (one for one in passes(layout, suite) if one.layer is not None):
        for workload in one.workloads:
            (workers,), size = workload.workers, workload.objects.mean_bytes
            # A write at an object server is to one disk: clients want three of them.
            times = 3 if one.api == "object-server" and "write" in workload.operations else 1
            measurement = fake_measurement(
                api=one.api,
                workload=workload.name,
                operations=workload.operations,
                workers=workers,
                window_s=workload.runtime,
                mean_ms=mean_ms(size, workers) * _FASTER[one.api, one.driver] / times,
                object_size_bytes=round(size),
                seed=suite.seed + repeat,
            )
            key = StepKey(
                layout=layout,
                api=one.api,
                workload=workload.name,
                workers=workers,
                repeat=repeat,
                driver=one.driver,
                layer=one.layer,
            )
            verdict = judge(measurement, Bounds())
            yield (
                StepResult(
                    key=key,
                    measurement=measurement,
                    valid=verdict.valid,
                    notes=verdict.notes,
                    order=order,
                ),
                workload,
            )
            order += 1
