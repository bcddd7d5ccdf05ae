"""Guard facts: what two runs must have in common for a difference between them to mean anything.

The facts are those that reviewers of storage figures ask for (Traeger, Zadok and others 2008) and
that pyperf checks before it compares two files. A fact known of only one run counts as different;
one known of neither is reported as unknown. What runs are compared for, releases and settings, is
not guarded: it is listed with the result.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from weighbridge.common.csv_text import csv_lines
from weighbridge.common.document import did_you_mean
from weighbridge.common.errors import UsageError
from weighbridge.common.quantities import show_bytes
from weighbridge.common.record import Record
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.figures import UNKNOWN, show_figure
from weighbridge.results.record import Attested, Manifest, PlannedLayout, ResolvedPlan
from weighbridge.results.record.resolved import PlannedDisk

ALL: Final = "all"
NOT_KNOWN: Final = "not known"

Facts = dict[str, str]
"""A run's values of a guard fact, by host or setting; by "" for a fact of the run."""


class Difference(Record):
    """One thing in which two runs differ."""

    fact: str
    """The guard fact, or the kind of setting."""
    of: str = ""
    """Its host, layout or setting; empty if it is of the run."""
    a: str
    b: str

    @property
    def text(self) -> str:
        """`kernel: 6.1 in A, 6.12 in B`, with `of` in brackets."""
        return f"{self.fact}{f' ({self.of})' if self.of else ''}: {self.a} in A, {self.b} in B"


class Guarded(Record):
    """What two runs have in common and what not."""

    same: tuple[str, ...]
    """Guard facts that are known and equal."""
    unknown: tuple[str, ...]
    """Guard facts known of neither run."""
    unlike: tuple[Difference, ...]
    """Guard facts that differ and were allowed to."""
    differs: tuple[Difference, ...]
    """What may differ, and is the point of comparing."""


def guard(
    a: ComparedRun, b: ComparedRun, pairs: Sequence[tuple[str, str]], despite: Sequence[str] = ()
) -> Guarded:
    """Check the guard facts of two runs, for pairs of layouts of A and B.

    `despite` names guard facts that may differ, or `all`. Raises UsageError if others differ, or
    for unknown names.
    """
    names = (*_OF_RUNS, *_OF_LAYOUTS)
    unknown = [name for name in despite if name not in (*names, ALL)]
    if unknown:
        hints = ", ".join(
            f"no guard fact {name!r}{did_you_mean(name, [*names, ALL])}" for name in unknown
        )
        raise UsageError(
            hints, advice=f"Guard facts are {', '.join(names)}; `all` means every one of them."
        )
    theirs = {one.name for one in b.plan.suite.workloads}
    shared = [one.name for one in a.plan.suite.workloads if one.name in theirs]
    facts: dict[str, tuple[Facts, Facts]] = {
        name: (read(a, shared), read(b, shared)) for name, read in _OF_RUNS.items()
    }
    for name, of_layout in _OF_LAYOUTS.items():
        facts[name] = ({}, {})
        for one, other in pairs:
            label = one if one == other else f"{one} and {other}"
            for side, fact in zip(
                facts[name], (of_layout(a, one), of_layout(b, other)), strict=True
            ):
                side.update({} if fact is None else {label: fact})
    unlike = tuple(chain.from_iterable(_differences(name, *sides) for name, sides in facts.items()))
    refused = [one for one in unlike if ALL not in despite and one.fact not in despite]
    if refused:
        lines = "\n".join(f"  {one.text}" for one in refused)
        named = ",".join(dict.fromkeys(one.fact for one in refused))
        raise UsageError(
            f"the two runs differ in what decides their figures:\n{lines}",
            advice="A difference between them would say nothing about the gateways. To compare "
            f"them anyway: --despite {named}",
        )
    differing = {one.fact for one in unlike}
    return Guarded(
        same=tuple(name for name, sides in facts.items() if any(sides) and name not in differing),
        unknown=tuple(name for name, sides in facts.items() if not any(sides)),
        unlike=unlike,
        differs=tuple(_settings(a, b, pairs)),
    )


def planned_differences(
    a: ComparedRun, b: ComparedRun, pairs: Sequence[tuple[str, str]]
) -> tuple[Difference, ...]:
    """How the plans of layouts of A and B differ: release, places and settings."""
    return tuple(
        chain.from_iterable(
            _differences(
                one if one == other else f"{one} → {other}",
                _planned(a, one),
                _planned(b, other),
                missing=UNKNOWN,
            )
            for one, other in pairs
        )
    )


def differences_csv(guarded: Guarded) -> str:
    """All differences as CSV, those of guard facts first."""
    return csv_lines(
        ("guard", "fact", "of", "a", "b"),
        (
            (guards, one.fact, one.of, one.a, one.b)
            for guards, found in ((True, guarded.unlike), (False, guarded.differs))
            for one in found
        ),
    )


def _differences(
    fact: str, one: Mapping[str, str], other: Mapping[str, str], missing: str = NOT_KNOWN
) -> list[Difference]:
    names = dict.fromkeys((*one, *other))
    return [
        Difference(fact=fact, of=name, a=one.get(name, missing), b=other.get(name, missing))
        for name in names
        if one.get(name) != other.get(name)
    ]


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
    return {f"{workload}, {key}": text for workload, key, text in _flat(settings)}


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


_OF_RUNS: Final[Mapping[str, Callable[[ComparedRun, Sequence[str]], Facts]]] = MappingProxyType(
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


_OF_LAYOUTS: Final[Mapping[str, Callable[[ComparedRun, str], str | None]]] = MappingProxyType(
    {
        "replicas": _replicas,
        "acknowledgement": lambda run, layout: run.facts(layout).get("acknowledgement"),
    }
)

GUARD_FACTS: Final = (*_OF_RUNS, *_OF_LAYOUTS)
"""Names of all guard facts."""


# ---- what may differ

_GUARDED_BELOW: Final = ("replicas", "acknowledgement", "mtu", "kernel", "machine", "verified")
"""Facts of layouts that are guarded, or that say what was done rather than set."""
_PASSING: Final = ("load before", "hardware", "cpu", "cpus", "memory", "kernel")
"""Facts of the machine that are guarded, or momentary."""


def _settings(a: ComparedRun, b: ComparedRun, pairs: Sequence[tuple[str, str]]) -> list[Difference]:
    """Everything else that is known and differs."""
    general = [
        ("weighbridge", a.manifest.weighbridge_version, b.manifest.weighbridge_version),
        ("begun at", a.manifest.created_at, b.manifest.created_at),
        ("suite", a.plan.suite.name, b.plan.suite.name),
        ("repeats", str(a.plan.suite.repeats), str(b.plan.suite.repeats)),
        ("layouts", ", ".join(a.layouts), ", ".join(b.layouts)),
        (
            "workloads",
            *(
                ", ".join(
                    f"{one.name} at {'/'.join(map(str, one.workers))}"
                    for one in run.plan.suite.workloads
                )
                for run in (a, b)
            ),
        ),
    ]
    found = [
        Difference(fact=name, a=one or NOT_KNOWN, b=other or NOT_KNOWN)
        for name, one, other in general
        if one != other
    ]
    found += _differences("machine", _passing(a), _passing(b))
    for one, other in pairs:
        label = one if one == other else f"{one} → {other}"
        of_a, of_b = (
            {**_planned(run, name), **_deployed(run, name)} for run, name in ((a, one), (b, other))
        )
        found += _differences(label, of_a, of_b, missing=UNKNOWN)
    return found


def _passing(run: ComparedRun) -> Facts:
    facts = run.facts(title="machine").items()
    return {
        name: text
        for name, text in facts
        if name not in _PASSING and not name.startswith("sysctl ")
    }


def _planned(run: ComparedRun, name: str) -> Facts:
    layout = run.layouts[name]
    plan = {"release": layout.release} if layout.release else {}
    flat = _flat({"place": layout.place, **layout.settings})
    return plan | {f"{part}.{key}": text for part, key, text in flat}


def _flat(settings: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    return [
        (part, str(key), json.dumps(value, ensure_ascii=False).replace('"', ""))
        for part, values in settings.items()
        for key, value in (values.items() if isinstance(values, dict) else [("is", values)])
    ]


def _deployed(run: ComparedRun, name: str) -> Facts:
    facts = run.facts(name).items()
    return {
        fact: text
        for fact, text in facts
        if fact not in _GUARDED_BELOW and not fact.startswith(("limits ", "image "))
    }


class ComparedRun(Record):
    """A run to compare. `rows` are those of the report, including A/A controls."""

    folder: Path
    manifest: Manifest
    plan: ResolvedPlan
    rows: tuple[Row, ...]
    attested: tuple[Attested, ...] = ()
    """Empty if the hosts were not attested."""

    @property
    def layouts(self) -> dict[str, PlannedLayout]:
        """The layouts by name, without A/A controls."""
        return {
            layout.name: layout
            for layout in self.plan.layouts
            if layout.name not in self.plan.twins
        }

    def facts(self, layout: str | None = None, title: str | None = None) -> dict[str, str]:
        """The facts about a layout, or about none in particular; `title` limits the sheets."""
        sheets = [
            sheet
            for sheet in self.manifest.sheets
            if sheet.layout == layout and title in (None, sheet.title)
        ]
        return {name: text for sheet in sheets for name, text in sheet.facts.items()}


def read_compared_run(folder: Path) -> ComparedRun:
    """Read a run, finished or not. Raises UsageError or InvalidMeasurement if it cannot be read."""
    data = RunData(folder)
    return ComparedRun(
        folder=folder,
        manifest=data.manifest,
        plan=data.plan,
        rows=data.rows,
        attested=data.attested,
    )
