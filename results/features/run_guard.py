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
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, get_args

from weighbridge.common.csv_text import csv_lines
from weighbridge.common.document import did_you_mean
from weighbridge.common.errors import UsageError
from weighbridge.common.quantities import parse_bytes, show_bytes
from weighbridge.common.record import Record
from weighbridge.results.features.open_run import open_run
from weighbridge.results.figures.summary import Row
from weighbridge.results.numbers import show_figure
from weighbridge.results.run import Attested, Manifest, PlannedLayout, ResolvedPlan
from weighbridge.results.run.resolved import PlannedDisk

Facts = dict[str, str]
"""A run's values of a guard fact, by host or setting; by "" for a fact of the run."""


class ComparedRun(Record):
    """A run to compare. `rows` are those of the report, including A/A controls."""

    folder: Path
    manifest: Manifest
    plan: ResolvedPlan
    rows: tuple[Row, ...]
    attested: tuple[Attested, ...] = ()
    """Empty if the hosts were not attested."""
    is_tuning: bool = False
    """Whether it is a tuning: its rows are of variants that were tried."""

    @property
    def layouts(self) -> dict[str, PlannedLayout]:
        """The layouts by name, without A/A controls."""
        twins = self.plan.twins
        return {layout.name: layout for layout in self.plan.layouts if layout.name not in twins}

    def facts(self, layout: str | None = None, title: str | None = None) -> Facts:
        """The facts about a layout, or about none in particular; `title` limits the sheets."""
        sheets = [
            sheet
            for sheet in self.manifest.sheets
            if sheet.layout == layout and title in (None, sheet.title)
        ]
        return {name: text for sheet in sheets for name, text in sheet.facts.items()}

    @property
    def machine(self) -> Facts:
        return self.facts(title="machine")


def read_compared_run(folder: Path) -> ComparedRun:
    """Read a run, finished or not. Raises UsageError or InvalidMeasurement if it cannot be read."""
    data = open_run(folder)
    return ComparedRun(
        folder=folder,
        manifest=data.manifest,
        plan=data.plan,
        rows=data.rows,
        attested=data.attested,
        is_tuning=data.tuning is not None,
    )


# Guard facts of a run.


def _one(fact: str | None) -> Facts:
    return {"": fact} if fact else {}


def _memory(run: ComparedRun) -> Facts:
    """In GiB with one decimal: what the kernel reserves differs from boot to boot."""
    text = run.machine.get("memory", "")
    kib = re.fullmatch(r"(\d+) kB", text)
    return _one(f"{int(kib[1]) / 2**20:.1f} GiB" if kib else text)


def _hosts(run: ComparedRun) -> Facts:
    hardware = run.plan.hardware
    period = hardware.cpu_period
    periods = "" if period is None else f" in periods of {period * 1e3:g} ms"
    limits = {}
    for name, host in hardware.hosts.items():
        memory = "any memory" if host.memory is None else show_bytes(host.memory)
        limits[name] = f"{host.cpu_words(periods)}, {memory}"
    return {"": hardware.kind or hardware.name, **limits}


def _network(run: ComparedRun) -> Facts:
    nics = {name: f"{bits / 1e9:g} Gbit/s" for name, bits in run.plan.hardware.nics_bit_s.items()}
    mtus = {mtu for layout in run.layouts if (mtu := run.facts(layout).get("mtu"))}
    return {**nics, **({"the MTU": ", ".join(sorted(mtus))} if mtus else {})}


def _disks(run: ComparedRun) -> Facts:
    hosts = run.plan.hardware.hosts.items()
    return {name: ", ".join(map(_disk, host.disks)) for name, host in hosts if host.disks}


def _disk(disk: PlannedDisk) -> str:
    if disk.model is not None:
        figures = (f"{key} {value}" for key, value in disk.model.items() if key != "base")
        return f"{disk.model['base']} ({', '.join(figures)})"
    rate = "any rate" if disk.bandwidth is None else f"{show_figure(disk.bandwidth / 1e6)} MB/s"
    return rate if disk.iops is None else f"{rate} and {disk.iops:g} IOPS"


def _workloads(run: ComparedRun) -> Facts:
    """The settings of workloads, except worker counts: only shared counts are compared."""
    settings = {
        one.name: one.model_dump(mode="json", exclude={"name", "workers"}, exclude_none=True)
        for one in run.plan.suite.workloads
    }
    return {f"{workload}, {key}": text for workload, key, text in flat(settings)}


def _driver(run: ComparedRun) -> Facts:
    suite = run.plan.suite
    return {"": suite.driver, "users": suite.users, "processes": str(suite.processes)}


def _of_suite(run: ComparedRun, key: str) -> Facts:
    value = run.plan.suite.model_dump(mode="json", include={key})[key]
    if value is None:
        return {"": "none"}
    return {"": value if isinstance(value, str) else json.dumps(value).replace('"', "")}


_OF_RUNS: Final[Mapping[str, Callable[[ComparedRun], Facts]]] = MappingProxyType(
    {
        "cpu": lambda run: _one(run.machine.get("cpu")),
        "cpus": lambda run: _one(run.machine.get("cpus")),
        "memory": _memory,
        "kernel": lambda run: _one(
            run.machine.get("sysctl kernel.osrelease") or run.machine.get("kernel")
        ),
        "sysctl": lambda run: {
            name.removeprefix("sysctl "): text
            for name, text in run.machine.items()
            if re.match(r"sysctl (net|vm)\.", name)
        },
        "hosts": _hosts,
        "network": _network,
        "disks": _disks,
        "api": lambda run: _of_suite(run, "api"),
        "workloads": _workloads,
        "cache": lambda run: _of_suite(run, "cache"),
        "age": lambda run: _of_suite(run, "age"),
        "driver": _driver,
        "driver-version": lambda run: run.facts(title="driver"),
        "seed": lambda run: _of_suite(run, "seed"),
    }
)
_OF_LAYOUTS: Final = ("replicas", "acknowledgement")
GUARD_FACTS: Final = (*_OF_RUNS, *_OF_LAYOUTS)


def all_facts(
    run: ComparedRun, workloads: Sequence[str], layouts: Mapping[str, str]
) -> dict[str, Facts]:
    """All guard facts of a run for these workloads and layouts, which are given by their labels."""
    facts = {name: read(run) for name, read in _OF_RUNS.items()}
    facts["workloads"] = {
        of: text for of, text in facts["workloads"].items() if of.rpartition(", ")[0] in workloads
    }
    for name in _OF_LAYOUTS:
        texts = {label: _of_layout(run, layout, name) for label, layout in layouts.items()}
        facts[name] = {label: text for label, text in texts.items() if text is not None}
    return facts


def _of_layout(run: ComparedRun, layout: str, name: str) -> str | None:
    structure = run.plan.structures.get(layout)
    if name == "replicas" and structure is not None:
        return structure.redundancy
    return run.facts(layout).get(name)


# How a layout was planned.

_SIZE: Final = re.compile(r"[0-9.]+ ?[kKMGT]i?B")


def planned(run: ComparedRun, name: str) -> Facts:
    """How a layout was planned: release, places and settings, by file or by size of its hosts."""
    layout = run.layouts[name]
    plan = {"release": layout.release} if layout.release else {}
    settings = flat({"place": layout.place, **layout.settings})
    given = {f"{part}.{key}": _alike(text) for part, key, text in settings}
    computed = {
        _place(key): show_bytes(value) if key in layout.sizes else str(value)
        for key, value in layout.by_size.items()
    }
    return plan | computed | given


def _place(key: str) -> str:
    return key if "." in key else f"{key}.is"


def _alike(text: str) -> str:
    """A size as `show_bytes` has it, and anything else as it is."""
    try:
        size = parse_bytes(text) if _SIZE.fullmatch(text) else text
    except ValueError:
        return text
    return show_bytes(size) if isinstance(size, int) else text


def flat(settings: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Nested settings as part, key and text."""
    return [
        (part, str(key), json.dumps(value, ensure_ascii=False).replace('"', ""))
        for part, values in settings.items()
        for key, value in (values.items() if isinstance(values, dict) else [("is", values)])
    ]


ALL: Final = "all"
NOT_KNOWN: Final = "not known"
NOT_RECORDED: Final = "not recorded"


DifferenceKind = Literal["differs", "computed", "not recorded"]
"""`computed`: one run has the setting from its layout's file, the other one from the size of the
hosts, as the sizing rule has it. `not recorded`: of one run.
"""


class Difference(Record):
    """One thing in which two runs differ, or that is recorded in only one of them."""

    fact: str
    """The guard fact, or the kind of setting."""
    of: str = ""
    """Its host, layout or setting; empty if it is of the run."""
    a: str
    b: str
    kind: DifferenceKind = "differs"

    @property
    def text(self) -> str:
        """`kernel: 6.1 in A, 6.12 in B`, with `of` in brackets."""
        return f"{self.fact}{f' ({self.of})' if self.of else ''}: {self.a} in A, {self.b} in B"


class Guarded(Record):
    """What two runs have in common and what not."""

    same: tuple[str, ...]
    unknown: tuple[str, ...]
    """Guard facts known of neither run."""
    unlike: tuple[Difference, ...]
    """Guard facts that differ and were allowed to."""
    differs: tuple[Difference, ...]
    """What may differ, and is the point of comparing."""


def guard(
    a: ComparedRun, b: ComparedRun, pairs: Sequence[tuple[str, str]], despite: Sequence[str] = ()
) -> Guarded:
    """Check guard facts for pairs of layouts. `despite` names facts that may differ, or `all`.
    Raises UsageError if others differ, or for unknown names.
    """
    refuse_unknown(despite)
    theirs = {one.name for one in b.plan.suite.workloads}
    shared = [one.name for one in a.plan.suite.workloads if one.name in theirs]
    labels = [one if one == other else f"{one} and {other}" for one, other in pairs]
    of_a, of_b = (
        all_facts(run, shared, dict(zip(labels, [pair[side] for pair in pairs], strict=True)))
        for side, run in enumerate((a, b))
    )
    facts = {name: (of_a[name], of_b[name]) for name in GUARD_FACTS}
    unlike = tuple(one for name, sides in facts.items() for one in differences(name, *sides))
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
        differs=tuple(settings_apart(a, b, pairs)),
    )


def refuse_unknown(despite: Sequence[str]) -> None:
    """Raise UsageError for names that are no guard facts; `all` is one."""
    unknown = [name for name in despite if name not in (*GUARD_FACTS, ALL)]
    if unknown:
        hints = ", ".join(
            f"no guard fact {name!r}{did_you_mean(name, [*GUARD_FACTS, ALL])}" for name in unknown
        )
        raise UsageError(
            hints,
            advice=f"Guard facts are {', '.join(GUARD_FACTS)}; `all` means every one of them.",
        )


def planned_differences(
    a: ComparedRun, b: ComparedRun, pairs: Sequence[tuple[str, str]]
) -> tuple[Difference, ...]:
    """How the plans of layouts of A and B differ: release, places and settings."""
    return tuple(
        difference
        for one, other in pairs
        for difference in _settings_apart(a, b, (one, other), planned(a, one), planned(b, other))
    )


def _settings_apart(
    a: ComparedRun, b: ComparedRun, pair: tuple[str, str], of_a: Facts, of_b: Facts
) -> list[Difference]:
    """How two layouts' settings differ; what matters most comes first."""
    by_size = (
        set(map(_place, run.layouts[name].by_size)) for run, name in zip((a, b), pair, strict=True)
    )
    computed = set.symmetric_difference(*by_size)
    apart = [
        difference.model_copy(update={"kind": "computed"})
        if difference.kind == "differs" and difference.of in computed
        else difference
        for difference in differences(" → ".join(dict.fromkeys(pair)), of_a, of_b, NOT_RECORDED)
    ]
    return [difference for of_kind in by_kind(apart).values() for difference in of_kind]


def by_kind(found: Sequence[Difference]) -> dict[DifferenceKind, tuple[Difference, ...]]:
    """Differences of each kind, of which there are some; those that matter most first."""
    kinds: tuple[DifferenceKind, ...] = get_args(DifferenceKind)
    each = {kind: tuple(one for one in found if one.kind == kind) for kind in kinds}
    return {kind: some for kind, some in each.items() if some}


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


def differences(
    fact: str, one: Mapping[str, str], other: Mapping[str, str], missing: str = NOT_KNOWN
) -> list[Difference]:
    """In what two sets of facts differ; `missing` stands for what one lacks."""
    return [
        Difference(
            fact=fact,
            of=name,
            a=(before := one.get(name, missing)),
            b=(after := other.get(name, missing)),
            kind="not recorded" if NOT_RECORDED in (before, after) else "differs",
        )
        for name in dict.fromkeys((*one, *other))
        if one.get(name) != other.get(name)
    ]


# What may differ.

_GUARDED_BELOW: Final = ("replicas", "acknowledgement", "mtu", "kernel", "machine", "verified")
"""Facts of layouts that are guarded, or that say what was done rather than set."""
_PASSING: Final = ("load before", "hardware", "cpu", "cpus", "memory", "kernel")
"""Facts of the machine that are guarded, or momentary."""


def settings_apart(
    a: ComparedRun, b: ComparedRun, pairs: Sequence[tuple[str, str]]
) -> list[Difference]:
    """Everything else that differs, or is recorded in only one run."""
    general = [
        ("weighbridge", a.manifest.weighbridge_version, b.manifest.weighbridge_version),
        ("begun at", a.manifest.created_at, b.manifest.created_at),
        ("suite", a.plan.suite.name, b.plan.suite.name),
        ("repeats", str(a.plan.suite.repeats), str(b.plan.suite.repeats)),
        ("layouts", ", ".join(a.layouts), ", ".join(b.layouts)),
        ("workloads", _counts(a), _counts(b)),
    ]
    apart = [
        Difference(fact=name, a=one or NOT_KNOWN, b=other or NOT_KNOWN)
        for name, one, other in general
        if one != other
    ]
    apart += differences("machine", _passing(a), _passing(b), NOT_RECORDED)
    for one, other in pairs:
        of_a, of_b = (
            {**planned(run, name), **_deployed(run, name)} for run, name in ((a, one), (b, other))
        )
        apart += _settings_apart(a, b, (one, other), of_a, of_b)
    return apart


def _counts(run: ComparedRun) -> str:
    workloads = run.plan.suite.workloads
    return ", ".join(f"{one.name} at {'/'.join(map(str, one.workers))}" for one in workloads)


def _passing(run: ComparedRun) -> Facts:
    return {
        name: text
        for name, text in run.machine.items()
        if name not in _PASSING and not name.startswith("sysctl ")
    }


def _deployed(run: ComparedRun, name: str) -> Facts:
    return {
        fact: text
        for fact, text in run.facts(name).items()
        if fact not in _GUARDED_BELOW and not fact.startswith(("limits ", "image "))
    }
