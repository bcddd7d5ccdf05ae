"""The set-up slides: hosts and load, which are common to all, then each layout's settings.

Settings that differ are shaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from weighbridge.common.quantities import cpu_numbers, show_bytes
from weighbridge.common.structure import Structure
from weighbridge.results.analysis.host_shares import host_shares, unequal_shares
from weighbridge.results.analysis.sameness import beyond_bound, host_doubts, verdict
from weighbridge.results.figures import UNKNOWN, all_of, counted, listed, show_figure
from weighbridge.results.record import PlannedHost
from weighbridge.results.record.driver_traits import driver_label
from weighbridge.results.show.theme import Look
from weighbridge.results.slides.evidence import Evidence, spanned
from weighbridge.results.slides.fitting import ROOM_PT, SMALLEST_PT, body_pt, lines_pt
from weighbridge.results.slides.slide import Slide, SlideTable, TableCell, head_cells
from weighbridge.suites import DEFAULT_DRIVER

ABREAST: Final = 6
"""The most layouts side by side; more are on another slide."""

FIRST: Final = (
    "gateway",
    "share of the hosts",
    "in front",
    "rgw: rgw_frontends",
    "replicas",
    "acknowledgement",
    "object store",
    "rgw: rgw_thread_pool_size",
    "workers",
    "tcp_nodelay",
    "daemons",
    "placement groups",
)
"""The facts that affect results most, in order, by their names in the manifest's fact sheets."""
_SHADED: Final = "Shaded: differs between layouts."
LARGE_PT: Final = 16
"""Font size of the first slide; what does not fit is on a second one."""
_LEFT_OUT: Final = ": see the notes."
_BACKGROUND: Final = "background: "
_NOT_SETTINGS: Final = (
    "image ",
    "limits ",
    "verified",
    "kernel",
    "machine",
    "runc",
    "cgroup",
    "mtu",
    "hosts",
    "packages",
    "radosgw",
)
"""How facts begin that are about the hosts, or follow from the release."""
_NAMES: Final = {
    "acknowledgement": "acknowledged when",
    "rgw: rgw_frontends": "front end",
    "rgw: rgw_thread_pool_size": "threads of radosgw",
}
_LONGEST: Final = 160
"""The most characters of a line's cells together; the notes have the complete texts."""


def setup(evidence: Evidence, look: Look) -> tuple[Slide, ...]:
    """The slides of the set-up: for every six layouts one, and another where that is full."""
    names = evidence.layouts
    parts = [names[at : at + ABREAST] for at in range(0, len(names), ABREAST)]
    slides: list[Slide] = []
    for number, part in enumerate(parts, start=1):
        slides += _slides(
            evidence,
            look,
            part,
            f" ({number} of {len(parts)})" if len(parts) > 1 else "",
            f"set-up-{number}",
        )
    return tuple(slides)


def _slides(
    evidence: Evidence, look: Look, layouts: Sequence[str], part: str, key: str
) -> Iterator[Slide]:
    common = list(_common(evidence))
    facts = _facts(evidence, layouts)
    differing = [name for name, values in facts.items() if _differ(values)]
    wanted = [name for name in facts if name in FIRST or name in differing]
    titles = (f"{_title(evidence)}{part}", f"What differs between the layouts{part}")
    table = _Table(look, layouts, facts)
    shown = table.held(common, wanted, titles[0], LARGE_PT)
    rest = [name for name in wanted if name not in shown and name in differing]
    more = table.held((), rest, titles[1], SMALLEST_PT) if rest else []
    left = len(rest) - len(more)
    notes = (
        *(f"{name}: {value}" for name, value in common),
        *(f"{_label(name)}: {_values_text(layouts, facts[name])}" for name in wanted),
        (
            "All other settings, configuration files and package versions are in the report and "
            "the manifest."
        ),
    )
    shaded = _SHADED if any(name in differing for name in shown) else ""
    yield Slide(key=key, title=titles[0], grid=table.grid(common, shown), foot=shaded, notes=notes)
    if more:
        foot = (
            f"{counted(left, 'more setting')} {'differs' if left == 1 else 'differ'}{_LEFT_OUT}"
            if left
            else ""
        )
        yield Slide(
            key=f"{key}-more", title=titles[1], grid=table.grid((), more), foot=foot, notes=notes
        )


def _differ(values: Sequence[str]) -> bool:
    """Whether layouts that have a setting differ; others are of another kind."""
    return len(set(values) - {UNKNOWN}) > 1


def _title(evidence: Evidence) -> str:
    hosts = len(evidence.plan.hardware.hosts)
    if len(evidence.layouts) == 1:
        return (
            f"{evidence.layouts[0]} ran on {counted(hosts, 'host')} with fixed limits"
            if hosts
            else "What was set up"
        )
    layouts = all_of(len(evidence.layouts), "layouts")
    if not hosts:
        return f"What was set up for {layouts}"
    return f"{counted(hosts, 'host')} with the same limits for {layouts}: {_sameness(evidence)}"


def _sameness(evidence: Evidence) -> str:
    """The result of attestation for the layouts' hosts, in a few words."""
    known = {one.layout for one in evidence.attested}
    if not known:
        return "not attested"
    attested = [one for one in evidence.attested if one.layout in evidence.layouts]
    found = host_doubts(attested)
    if differing := [one for one in found if one.doubt.what == "hosts differ"]:
        return f"attested capacity differs beyond its bound, as for {listed(differing[0].layouts)}"
    if found:
        return f"attested capacity is below its promise for {found[0].layouts[0]}"
    if lacking := [name for name in evidence.layouts if name not in known]:
        return f"not attested for {listed(lacking)}"
    beyond, figures = beyond_bound(attested)
    words = "attested capacity is within bounds"
    return f"{words}, except for {beyond} of {counted(figures, 'figure')}" if beyond else words


def _common(evidence: Evidence) -> Iterator[tuple[str, str]]:
    plan, suite = evidence.plan, evidence.plan.suite
    limits = "; ".join(_hosts(plan.hardware.hosts))
    yield "hosts", limits or plan.hardware.about or plan.hardware.name
    if evidence.attested:
        yield "attestation", verdict(evidence.attested, evidence.layouts)
    yield "load", _load(evidence)
    yield "caches", suite.cache_words


def _hosts(hosts: dict[str, PlannedHost]) -> Iterator[str]:
    """`store-1 to store-3: 0.3 CPUs, 2560 MiB, 1 disk of 200 MB/s`: equal hosts together."""
    alike: dict[str, list[str]] = {}
    for name, host in hosts.items():
        alike.setdefault(", ".join(_limits(host)), []).append(name)
    for limits, names in alike.items():
        who = (
            names[0]
            if len(names) == 1
            else f"{names[0]} to {names[-1]}"
            if len(names) > 2
            else listed(names)
        )
        yield f"{who}: {limits or 'no limits'}"


def _limits(host: PlannedHost) -> Iterator[str]:
    if host.cpus is not None:
        yield f"{host.cpus:g} CPU{'s' * (host.cpus != 1)}"
    elif host.cpuset is not None:
        yield f"{counted(len(cpu_numbers(host.cpuset)), 'CPU')} of its own"
    if host.memory is not None:
        yield show_bytes(host.memory)
    if host.disks:
        first = host.disks[0]
        speed = f" of {show_bytes(first.bandwidth)}/s" if first.bandwidth is not None else ""
        speed = speed if first.model is None else f" {first.model['base']}"
        yield f"{counted(len(host.disks), 'disk')}{speed}"
    if host.nic is not None and host.nic.rate is not None:
        yield f"{show_figure(host.nic.rate / 1e9)} Gbit/s"
    if host.nic is not None and host.nic.delay:
        yield f"{show_figure(host.nic.delay * 1e6)} µs to each peer"


def _load(evidence: Evidence) -> str:
    suite = evidence.plan.suite
    drivers = list(dict.fromkeys(driver_label(row.driver) for row in evidence.rows))
    counts = sorted({row.workers for row in evidence.rows})
    windows = sorted({workload.runtime for workload in suite.workloads})
    length = (
        f"{windows[0]:g} s" if windows[0] == windows[-1] else f"{windows[0]:g} to {windows[-1]:g} s"
    )
    by = listed(drivers) if drivers else driver_label(DEFAULT_DRIVER)
    who = spanned(counts) if counts else "no workers"
    return (
        f"{by}, {who}, each with one request outstanding; {counted(suite.repeats, 'repeat')} "
        f"of {length}"
    )


def _facts(evidence: Evidence, layouts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Settings by name, a value per layout: the most important first, then those that differ."""
    known = evidence.facts
    release = {layout.name: layout.release for layout in evidence.plan.layouts}
    names = dict.fromkeys(
        name for layout in layouts for name in known[layout] if not name.startswith(_NOT_SETTINGS)
    )
    found = {name: tuple(known[layout].get(name, UNKNOWN) for layout in layouts) for name in names}
    structures = evidence.plan.structures
    if any(structures[layout].front for layout in layouts if layout in structures):
        found.pop("path", None)  # `in front` says the same
        found["in front"] = tuple(
            _front(structures[layout]) if layout in structures else UNKNOWN for layout in layouts
        )
    if unequal_shares(evidence.plan):
        shares = {one.layout: one.words for one in host_shares(evidence.plan)}
        found["share of the hosts"] = tuple(shares.get(layout, UNKNOWN) for layout in layouts)
    if "gateway" not in found:
        found["gateway"] = tuple(
            f"{one.gateway}{f', release {release[one.name]}' if release[one.name] else ''}"
            for one in evidence.plan.layouts
            if one.name in layouts
        )
    order = {name: place for place, name in enumerate(FIRST)}
    return dict(
        sorted(
            found.items(),
            key=lambda item: (
                order.get(item[0], len(order)),
                not _differ(item[1]),
                item[0].startswith(_BACKGROUND),
            ),
        )
    )


def _front(structure: Structure) -> str:
    """What is between clients and a gateway's daemons: `HAProxy before 2 daemons`."""
    return (
        f"{structure.front} before {counted(structure.daemons, 'daemon')}"
        if structure.front
        else "nothing"
    )


@dataclass(frozen=True)
class _Table:
    """Settings of several layouts side by side."""

    look: Look
    layouts: Sequence[str]
    facts: dict[str, tuple[str, ...]]

    def held(
        self, common: Sequence[tuple[str, str]], names: Sequence[str], title: str, smallest_pt: int
    ) -> list[str]:
        """The settings that fit on a slide in type of this size or larger, in order."""
        room_pt = body_pt(title, foot=_SHADED + _LEFT_OUT)
        held: list[str] = []
        for name in names:
            if sum(lines_pt(self.grid(common, [*held, name]), ROOM_PT, smallest_pt)) <= room_pt:
                held.append(name)
        return held

    def grid(self, common: Sequence[tuple[str, str]], names: Sequence[str]) -> SlideTable:
        """The table: what all have in common, then a line for each setting."""
        look, layouts = self.look, self.layouts
        lines = [tuple(head_cells(("", *layouts), look, "left"))]
        for name, value in common:
            lines.append((TableCell(text=name, bold=True), *_shared(value, len(layouts))))
        for name in names:
            fill = shade(look) if _differ(self.facts[name]) else None
            lines.append(
                (
                    TableCell(text=_label(name), bold=True, fill=fill),
                    *_merged(self.facts[name], fill),
                )
            )
        first = 0.17 if len(layouts) > 1 else 0.22
        return SlideTable(
            widths=(first, *((1 - first) / len(layouts),) * len(layouts)),
            lines=tuple(lines),
            largest_pt=18,
        )


def shade(look: Look) -> str:
    """The background of what differs."""
    return "#FFF3DC" if look.name == "light" else "#3A2F17"


def _shared(value: str, layouts: int) -> Iterator[TableCell]:
    yield TableCell(text=value, across=layouts)
    yield from (TableCell(text="", covered=True) for _ in range(1, layouts))


def _merged(values: Sequence[str], fill: str | None) -> Iterator[TableCell]:
    brief = {value: _brief(value) for value in values}
    if len(set(brief.values())) < len(brief):
        brief = {value: value for value in values}  # they differ only in what is left out
    at = 0
    while at < len(values):
        end = at + 1
        while end < len(values) and values[end] == values[at]:
            end += 1
        longest = (_LONGEST // len(values) + 30) * (end - at)
        text = brief[values[at]]
        shown = text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"
        yield TableCell(text=shown, fill=fill, across=end - at)
        yield from (TableCell(text="", fill=fill, covered=True) for _ in range(at + 1, end))
        at = end


def _label(name: str) -> str:
    return _NAMES.get(name, name.removeprefix(_BACKGROUND).removeprefix("rgw: "))


def _brief(value: str) -> str:
    """The first clause of a value, without text in brackets; the notes have the complete text."""
    text = value.removeprefix("a write is acknowledged when ").split("; ")[0]
    while " (" in text and ")" in text.split(" (", 1)[1]:
        before, rest = text.split(" (", 1)
        text = before + rest.split(")", 1)[1]
    return text


def _values_text(layouts: Sequence[str], values: Sequence[str]) -> str:
    if len(set(values)) == 1:
        return values[0]
    return "; ".join(f"{layout}: {value}" for layout, value in zip(layouts, values, strict=True))
