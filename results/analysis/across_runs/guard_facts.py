"""How guard facts are read from a run; what they are for: `results.analysis.across_runs.guard`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from weighbridge.common.quantities import parse_bytes, show_bytes
from weighbridge.results.analysis.across_runs.compared_run import ComparedRun
from weighbridge.results.figures import show_figure
from weighbridge.results.record.resolved import PlannedDisk

_SIZE: Final = re.compile(r"[0-9.]+ ?[kKMGT]i?B")
Facts = dict[str, str]
"""A run's values of a guard fact, by host or setting; by "" for a fact of the run."""


# ---- guard facts of a run


def _machine(name: str) -> Callable[[ComparedRun, Sequence[str]], Facts]:
    def read(run: ComparedRun, _shared: Sequence[str]) -> Facts:
        fact = run.facts(title="machine").get(name)
        return {} if fact is None else {"": fact}

    return read


def _memory(run: ComparedRun, _shared: Sequence[str]) -> Facts:
    """In GiB with one decimal: what the kernel reserves differs from boot to boot."""
    text = run.facts(title="machine").get("memory", "")
    found = re.fullmatch(r"(\d+) kB", text)
    return {"": f"{int(found[1]) / 2**20:.1f} GiB"} if found else {"": text} if text else {}


def _kernel(run: ComparedRun, _shared: Sequence[str]) -> Facts:
    facts = run.facts(title="machine")
    fact = facts.get("sysctl kernel.osrelease") or facts.get("kernel")
    return {"": fact} if fact else {}


def _sysctl(run: ComparedRun, _shared: Sequence[str]) -> Facts:
    facts = run.facts(title="machine").items()
    return {
        name.removeprefix("sysctl "): text
        for name, text in facts
        if re.match(r"sysctl (net|vm)\.", name)
    }


def _hosts(run: ComparedRun, _shared: Sequence[str]) -> Facts:
    hardware = run.plan.hardware
    period = hardware.cpu_period
    periods = "" if period is None else f" in periods of {period * 1e3:g} ms"
    limits = {}
    for name, host in hardware.hosts.items():
        memory = "any memory" if host.memory is None else show_bytes(host.memory)
        limits[name] = f"{host.cpu_words(periods)}, {memory}"
    return {"": hardware.kind or hardware.name, **limits}


def _network(run: ComparedRun, _shared: Sequence[str]) -> Facts:
    found = {name: f"{bits / 1e9:g} Gbit/s" for name, bits in run.plan.hardware.nics_bit_s.items()}
    mtus = {fact for layout in run.layouts if (fact := run.facts(layout).get("mtu"))}
    return {**found, **({"the MTU": ", ".join(sorted(mtus))} if mtus else {})}


def _disks(run: ComparedRun, _shared: Sequence[str]) -> Facts:
    return {
        name: ", ".join(_disk(disk) for disk in host.disks)
        for name, host in run.plan.hardware.hosts.items()
        if host.disks
    }


def _disk(disk: PlannedDisk) -> str:
    if disk.model is not None:
        figures = (f"{key} {value}" for key, value in disk.model.items() if key != "base")
        return f"{disk.model['base']} ({', '.join(figures)})"
    rate = "any rate" if disk.bandwidth is None else f"{show_figure(disk.bandwidth / 1e6)} MB/s"
    return rate if disk.iops is None else f"{rate} and {disk.iops:g} IOPS"


def _workloads(run: ComparedRun, shared: Sequence[str]) -> Facts:
    """The settings of shared workloads, except worker counts: only shared counts are compared."""
    settings = {
        one.name: one.model_dump(mode="json", exclude={"name", "workers"}, exclude_none=True)
        for one in run.plan.suite.workloads
        if one.name in shared
    }
    return {f"{workload}, {key}": text for workload, key, text in flat(settings)}


def _driver(run: ComparedRun, _shared: Sequence[str]) -> Facts:
    suite = run.plan.suite
    return {"": suite.driver, "users": suite.users, "processes": str(suite.processes)}


def _suite(name: str) -> Callable[[ComparedRun, Sequence[str]], Facts]:
    def read(run: ComparedRun, _shared: Sequence[str]) -> Facts:
        value = run.plan.suite.model_dump(mode="json")[name]
        if value is None:
            return {"": "none"}
        return {"": value if isinstance(value, str) else json.dumps(value).replace('"', "")}

    return read


OF_RUNS: Final[Mapping[str, Callable[[ComparedRun, Sequence[str]], Facts]]] = MappingProxyType(
    {
        "cpu": _machine("cpu"),
        "cpus": _machine("cpus"),
        "memory": _memory,
        "kernel": _kernel,
        "sysctl": _sysctl,
        "hosts": _hosts,
        "network": _network,
        "disks": _disks,
        "api": _suite("api"),
        "workloads": _workloads,
        "cache": _suite("cache"),
        "age": _suite("age"),
        "driver": _driver,
        "driver-version": lambda run, _shared: run.facts(title="driver"),
        "seed": _suite("seed"),
    }
)
"""Guard facts of a run, and how to read each."""


# ---- guard facts of a layout


def _replicas(run: ComparedRun, layout: str) -> str | None:
    structure = run.plan.structures.get(layout)
    return structure.redundancy if structure is not None else run.facts(layout).get("replicas")


OF_LAYOUTS: Final[Mapping[str, Callable[[ComparedRun, str], str | None]]] = MappingProxyType(
    {
        "replicas": _replicas,
        "acknowledgement": lambda run, layout: run.facts(layout).get("acknowledgement"),
    }
)

GUARD_FACTS: Final = (*OF_RUNS, *OF_LAYOUTS)
"""Names of all guard facts."""


def all_facts(
    run: ComparedRun, workloads: Sequence[str], layouts: Mapping[str, str]
) -> dict[str, Facts]:
    """All guard facts of a run for these workloads and layouts, which are given by their labels."""
    found = {name: read(run, workloads) for name, read in OF_RUNS.items()}
    for name, read in OF_LAYOUTS.items():
        known = {label: read(run, layout) for label, layout in layouts.items()}
        found[name] = {label: fact for label, fact in known.items() if fact is not None}
    return found


# ---- how a layout was planned


def planned(run: ComparedRun, name: str) -> Facts:
    """How a layout of a run was planned: release, places and settings, as its file gives them or as
    they follow the size of its hosts. Sizes in bytes are written alike.
    """
    layout = run.layouts[name]
    plan = {"release": layout.release} if layout.release else {}
    settings = flat({"place": layout.place, **layout.settings})
    given = {f"{part}.{key}": _alike(text) for part, key, text in settings}
    computed = {
        _place(key): show_bytes(value) if key in layout.sizes else str(value)
        for key, value in layout.by_size.items()
    }
    return plan | computed | given


def computed_names(run: ComparedRun, name: str) -> frozenset[str]:
    """Settings of a layout that follow the size of its hosts, by their names in `planned`."""
    return frozenset(map(_place, run.layouts[name].by_size))


def _place(key: str) -> str:
    return key if "." in key else f"{key}.is"


def _alike(text: str) -> str:
    """A size as `show_bytes` has it, and anything else as it is."""
    if not _SIZE.fullmatch(text):
        return text
    try:
        count = parse_bytes(text)
    except ValueError:
        return text
    return show_bytes(count) if isinstance(count, int) else text


def flat(settings: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Nested settings as part, key and text."""
    return [
        (part, str(key), json.dumps(value, ensure_ascii=False).replace('"', ""))
        for part, values in settings.items()
        for key, value in (values.items() if isinstance(values, dict) else [("is", values)])
    ]
