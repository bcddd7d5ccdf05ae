"""The passes of a suite on a deployment: its APIs by each of its drivers, then the layers below."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import groupby
from typing import Final, get_args

from weighbridge.common.errors import UsageError
from weighbridge.drivers.kind import KINDS, loading, unfit
from weighbridge.results.run.step import Pass
from weighbridge.suites import HOST_LAYERS, Api, DriverName, Layer, Suite, Workload
from weighbridge.topologies.attestation import AttestOptions

GATEWAY_APIS: Final[tuple[Api, ...]] = ("swift", "s3")


def passes_of(suite: Suite, layers: Collection[str], replicas: int = 1) -> tuple[Pass, ...]:
    """The passes over a suite on a layout that has these `layers`, in order.

    Layers are measured at each workload's largest worker count, for the most that they can do. A
    gateway sends `replicas` writes at once to object servers, so these are written to by as many
    times more workers. A workload that a layer cannot do (a mix, a listing) is left out there.
    Raises UsageError with every workload that a driver of the suite cannot do as it is written.
    """
    found = [
        Pass(api=api, driver=driver, workloads=suite.workloads)
        for api in suite.api
        for driver in drivers_of(suite, api)
    ]
    faults = []
    for one in found:
        kind = KINDS.get_or_refuse(one.driver)
        if one.api not in (*kind.apis, *kind.layers):
            faults.append(f"{one.driver} cannot load {one.api}")
    if len({KINDS.get_or_refuse(name).mark for name in suite.drivers}) < len(suite.drivers):
        faults.append(
            f"{' and '.join(suite.drivers)} would find each other's objects: their buckets have "
            "the same mark"
        )
    faults += [
        f"{workload.name}: {why}"
        for one in found
        for workload in one.workloads
        for why in unfit(one.driver, workload, one.api)
    ]
    refuse(faults, "Change the workload, or choose another driver.")
    below = [
        _below(suite, layer, replicas)
        for layer in suite.layers
        if layer in layers and layer not in HOST_LAYERS
    ]
    return (*found, *(one for some in below for one in some if one.workloads))


def together(passes: Sequence[Pass]) -> tuple[tuple[Pass, ...], ...]:
    """The passes in groups that take turns: two drivers with the same workloads on one gateway."""
    alike = groupby(
        passes, key=lambda one: (one.api, one.layer, "" if one.api in GATEWAY_APIS else one.driver)
    )
    return tuple(tuple(some) for _, some in alike)


def left_out(
    suite: Suite, layers: Collection[str], why_none: Callable[[str], str]
) -> tuple[str, ...]:
    """Which layers are not measured on a layout, and why; `why_none` of those that it lacks."""
    found = []
    for layer in suite.layers:
        if layer in ("disk", "network"):
            continue
        if layer not in layers:
            found.append(f"layer {layer}: {why_none(layer)}")
        for api, driver in _ways(suite, layer) if layer in layers and layer != "gateway" else ():
            found += [
                f"layer {layer}: {one.name}: {why}"
                for one in suite.workloads
                for why in unfit(driver, one, api)
            ]
    return tuple(dict.fromkeys(found))


def drivers_of(suite: Suite, api: Api) -> tuple[DriverName, ...]:
    """The drivers that replay a suite over an API."""
    if api in GATEWAY_APIS:
        return suite.drivers
    return loading(api)


def _below(suite: Suite, layer: Layer, replicas: int) -> list[Pass]:
    return [
        Pass(api=api, driver=driver, layer=layer, workloads=_largest(suite, api, driver, replicas))
        for api, driver in _ways(suite, layer)
    ]


def _ways(suite: Suite, layer: Layer) -> list[tuple[Api, DriverName]]:
    known = (
        [api for api in suite.api if api in GATEWAY_APIS] if layer == "gateway" else get_args(Api)
    )
    return [
        (api, driver) for api in known if layer in ("gateway", api) for driver in loading(layer)
    ]


def _largest(suite: Suite, api: Api, driver: DriverName, replicas: int) -> tuple[Workload, ...]:
    fit = []
    for workload in suite.workloads:
        if workload.fault is None and not unfit(driver, workload, api):
            copied = api == "object-server" and [*workload.operations] == ["write"]
            workers = max(workload.workers) * (replicas if copied else 1)
            fit.append(workload.model_copy(update={"workers": (workers,)}))
    return tuple(fit)


def asked_of_hosts(suite: Suite, *, sameness: bool) -> AttestOptions:
    """What to measure of hosts before a gateway starts: that they are alike, and layers."""
    return AttestOptions(
        sameness=sameness,
        sizes=suite.sizes_bytes if "disk" in suite.layers else (),
        all_pairs="network" in suite.layers,
    )


def wants_tools(suite: Suite, passes: Collection[Pass] = ()) -> bool:
    """Whether a driver of layers, or of these passes, runs a tool on hosts, such as fio."""
    named = {one.driver for one in passes}
    return any(
        kind.runs_tools
        for name, kind in KINDS.items()
        if name in named or {*suite.api, *suite.layers} & {*kind.layers}
    )


_FOUND: Final = frozenset({"read", "write"})


def finding(suite: Suite, *, repeats: int | None = None) -> Suite:
    """The suite of which rates are searched: its reads and writes at their largest worker counts.

    One repeat if no number is given, and without an A/A control and further blocks: `compare`
    answers another question with those. Raises UsageError if nothing is left, or a driver cannot
    send requests at a rate.
    """
    found = [
        one.model_copy(update={"workers": (max(one.workers),)})
        for one in suite.workloads
        if _FOUND.issuperset(one.operations) and one.rate_per_s is None
    ]
    if not found or not set(suite.api) & set(GATEWAY_APIS):
        raise UsageError(
            f"suite {suite.name!r} has no reads or writes of a gateway without a rate of their own",
            advice="--find searches the rate of such workloads: choose another suite.",
        )
    paced = [one.model_copy(update={"rate_per_s": 1.0}) for one in found]
    faults = [
        f"{one.name}: {why}"
        for api in suite.api
        for driver in drivers_of(suite, api)
        for one in paced
        for why in KINDS.get_or_refuse(driver).unfit(one, api)
    ]
    refuse(faults, "--find sends requests at a rate, which the driver locust can.")
    update = {
        "workloads": tuple(found),
        "repeats": 1 if repeats is None else repeats,
        "control": False,
        "further": None,
    }
    return suite.model_copy(update=update)


def left_out_of_search(suite: Suite, searched: Suite) -> str:
    """Which workloads of a suite have no search, in words; empty if all have one."""
    kept = {one.name for one in searched.workloads}
    others = [one.name for one in suite.workloads if one.name not in kept]
    return f"no rate is searched for {', '.join(others)}: not reads or writes" if others else ""


def refuse(faults: Collection[str], advice: str, between: str = "\n") -> None:
    """Raise UsageError with these faults, each once, if there are any."""
    if faults:
        raise UsageError(between.join(dict.fromkeys(faults)), advice=advice)
