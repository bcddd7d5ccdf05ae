"""The layers of a made-up run: ceilings of its hosts, and steps below and beside its gateways."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from made_up import measured_step
from weighbridge.common.structure import Structure
from weighbridge.results.run.resolved import PlannedHardware, PlannedHost, PlannedNic
from weighbridge.results.run.step import Pass, StepKey, StepResult
from weighbridge.results.run.store import RunStore
from weighbridge.results.run.telemetry import Attested
from weighbridge.suites import Api, DriverName, Layer, Suite, Workload

STORES: Final = ("store-1", "store-2", "store-3")
DISK_BYTES_S: Final = {
    ("write", "sequential"): 2.6e9,
    ("read", "sequential"): 2.9e9,
    ("read", "random"): 0.5e9,
}
"""Bandwidth of one disk; every host has one."""
LINK_BIT_S: Final = 40e9

_RELATIVE_LATENCY: Final[dict[tuple[Api, DriverName], float]] = {
    ("rados", "rados"): 0.75,
    ("object-server", "locust"): 0.75,
    ("swift", "locust"): 0.95,
    ("rbd", "rados"): 0.7,
    ("rbd", "fio"): 0.72,
    ("cephfs", "fio"): 1.4,
}
"""Latency of a request there, relative to the gateway."""


def hardware() -> PlannedHardware:
    nic = PlannedNic(rate=LINK_BIT_S)
    hosts = {name: PlannedHost(nic=nic) for name in ("client-1", "gateway-1", *STORES)}
    return PlannedHardware(
        name="lab-made-up", about="No hosts at all", kind="fake", clients=("client-1",), hosts=hosts
    )


def structure(layout: str) -> Structure:
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
        layer="object-server" if swift else "rados",
        copied_by="gateway" if swift else "store",
    )


def passes(layout: str, suite: Suite) -> tuple[Pass, ...]:
    """The suite itself, then each layer of the layout at the largest worker counts."""
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
    return suite.drivers


def attest(store: RunStore, layout: str, repeat: int, suite: Suite) -> None:
    """Record the ceilings of a deployment's hosts that the suite asks for. Raises StoreError."""
    found = []
    sizes = sorted({min(round(one.objects.mean_bytes), 4 * 2**20) for one in suite.workloads})
    for host in STORES if "disk" in suite.layers else ():
        for size in sizes:
            for (operation, pick), value in DISK_BYTES_S.items():
                disk = {
                    "layout": layout,
                    "repeat": repeat,
                    "host": host,
                    "kind": "disk",
                    "what": f"disk wb0 {pick} {operation} of {size} B",
                    "unit": "B/s",
                    "value": value,
                    "promised": value,
                    "operation": operation,
                    "pick": pick,
                    "request_bytes": size,
                }
                found.append(Attested.model_validate(disk))
    if "network" in suite.layers:
        ends = [("client-1", name) for name in ("gateway-1", *STORES)] + [
            ("gateway-1", name) for name in STORES
        ]
        for sender, receiver in (pair for end in ends for pair in (end, end[::-1])):
            link = {
                "layout": layout,
                "repeat": repeat,
                "host": receiver,
                "kind": "network",
                "what": f"network from {sender}",
                "unit": "bit/s",
                "value": LINK_BIT_S,
                "promised": LINK_BIT_S,
                "sender": sender,
                "receiver": receiver,
            }
            found.append(Attested.model_validate(link))
    store.attest(found)


def layer_steps(
    layout: str, suite: Suite, repeat: int, order: int, mean_ms: Callable[[float, int], float]
) -> Iterator[tuple[StepResult, Workload]]:
    """The steps of a layout's layers.

    `mean_ms` is the latency of a request at the gateway, by its size in bytes and the worker count.
    """
    for one in (one for one in passes(layout, suite) if one.layer is not None):
        for workload in one.workloads:
            (workers,), size = workload.workers, workload.objects.mean_bytes
            # A write to an object server goes to one disk: clients need three of them.
            times = 3 if one.api == "object-server" and "write" in workload.operations else 1
            latency_ms = mean_ms(size, workers) * _RELATIVE_LATENCY[one.api, one.driver] / times
            key = StepKey(
                layout=layout,
                api=one.api,
                workload=workload.name,
                workers=workers,
                repeat=repeat,
                driver=one.driver,
                layer=one.layer,
            )
            yield measured_step(key, workload, latency_ms, order, suite.seed + repeat), workload
            order += 1
