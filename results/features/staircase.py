"""The efficiency staircase: each layer's throughput for the same requests, from disks to front.

Every figure is what clients get or could get, after replication, so that each step can be divided
by the one below. For the gateway and its front it is the best over the worker counts; for RADOS,
object servers and a gateway behind its front it is their figure at the workload's largest worker
count, the only one they are measured at. A write to an object server goes to one disk: divided by
the replicas it is what clients get. Disks and network are independent: the store above them is a
share of the smaller of the two, of the network that its own load crosses: Ceph's benchmarks run on
the gateway's host, the engine that loads object servers on the client's. What is unknown is a gap
with its reason and is skipped, never guessed.

A figure above one below it is examined. Reads above their disks came from memory. A layer whose
load generator ran out of CPU could do more than its figure says. Otherwise it is the lower figure
that is in doubt: what clients got was served, so a ceiling below it was not one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from statistics import median
from typing import Final, Literal, cast

from weighbridge.common.quantities import show_bytes
from weighbridge.common.structure import Level, StoreLayer, Structure
from weighbridge.results.figures.steadiness import NOT_STEADY
from weighbridge.results.figures.summary import NOT_VALID, Row
from weighbridge.results.figures.use import UTILIZED, What, limit_brief
from weighbridge.results.judge.comparison import Kind, kind_of, subjects
from weighbridge.results.judge.host_equality import BOUNDS, FREE_BOUND
from weighbridge.results.judge.run_data import RunData, of_run
from weighbridge.results.numbers import show_figure
from weighbridge.results.run import Attested, ResolvedPlan
from weighbridge.results.run.resolved import BenchedPool
from weighbridge.suites import Operation

# Steps: layers from the hardware up to what clients get.


HardwareKind = Literal["disk", "osd", "network"]
HARDWARE: Final[tuple[HardwareKind, ...]] = ("disk", "osd", "network")
BENCHED: Final[tuple[Level, ...]] = ("rados", "rbd", "cephfs")
"""What Ceph's benchmarks and fio load, from the gateway's host."""
NAMES: Final[dict[Level, str]] = {
    "disk": "Disks",
    "osd": "OSDs alone",
    "network": "Network",
    "rados": "RADOS",
    "object-server": "Object servers",
    "gateway": "Gateway",
    "front": "Front",
    "rbd": "RBD",
    "cephfs": "CephFS",
}
_COMMON_NOUNS: Final[tuple[Level, ...]] = ("disk", "network", "object-server", "gateway")
PLAIN: Final[dict[Level, str]] = NAMES | {level: NAMES[level].lower() for level in _COMMON_NOUNS}
"""Names of the layers in the middle of a sentence."""
INSIDE: Final[dict[Level, str]] = PLAIN | {
    **{level: f"its {PLAIN[level]}" for level in ("disk", "osd", "network", "object-server")},
    "gateway": "one gateway",
}
"""Names of a layout's layers within a sentence."""

LAYER_BOUND: Final = 0.10
"""How far one measured layer may be above another: as far as the same limited disks and links
differ between deployments (`results.judge.host_equality.BOUNDS`), which is less than two steps of
few repeats on one machine differ.
"""

Verdict = Literal["too low", "not below", "from memory", "held below", "at least"]
"""`too low`: a layer above it did more; `at least`: its own load generator ran out of CPU; `held
below`: that of the layer below did, or may have; `not below`: no layer is above it, since gateways
keep objects elsewhere.
"""
VERDICTS: Final[tuple[Verdict, ...]] = (
    "too low",
    "not below",
    "from memory",
    "held below",
    "at least",
)
"""The gravest first."""


@dataclass(frozen=True)
class LayerDoubt:
    """A remark on a figure above or below another, or limited by its own load generator."""

    verdict: Verdict
    text: str

    def __str__(self) -> str:
        return f"{self.verdict}: {self.text}"


@dataclass(frozen=True)
class LayerStep:
    """One layer. Rates are None for a gap; `note` says why, or how they were obtained."""

    level: Level
    front: str = ""
    """What the front is."""
    throughput_ops_s: float | None = None
    bandwidth_mb_s: float | None = None
    workers: int | None = None
    """For replayed layers."""
    bound: float = LAYER_BOUND
    """How far a figure above this one may exceed it, as a fraction."""
    below: Level | None = None
    """The layer that it is a share of."""
    of_below: float | None = None
    of_disks: float | None = None
    saturated: str | None = None
    held: str = ""
    """What ran out on the load generator's host: the layer can do at least this."""
    lone_host: str = ""
    """The one host that it was measured from, where gateways may be on several."""
    doubt: LayerDoubt | None = None
    note: str = ""

    @property
    def name(self) -> str:
        return self.front or NAMES[self.level]

    @property
    def share(self) -> str:
        """What it is a share of: `34 % of its disks`; empty if unknown."""
        if self.of_below is None or self.below is None:
            return ""
        return f"{percent(self.of_below)} of {INSIDE[self.below]}"

    @property
    def carries(self) -> bool:
        """Whether the layers above can be shares of it."""
        return self.believable and (self.doubt is None or self.doubt.verdict != "not below")

    @property
    def believable(self) -> bool:
        return self.doubt is None or self.doubt.verdict != "too low"

    def noted(self, *notes: str) -> LayerStep:
        """The same with more notes."""
        return replace(self, note="; ".join(note for note in (self.note, *notes) if note))


def percent(share: float | None) -> str:
    """`34 %`, `0.52 %`: two significant digits below 10 %."""
    if share is None:
        return ""
    return f"{show_figure(share * 100, 2) if share < 0.1 else f'{share * 100:,.0f}'} %"


# Ceilings: the most that disks, OSDs and network allow a layout's clients, from attestation.
#
# The bottom-up method (F. Wang and others, "Performance and Scalability Evaluation of the Ceph
# Parallel File System", PDSW 2013): establish what each layer can do before judging the one above
# it. In bytes of objects per second:
#
# - Disks: the sum over those that hold objects. A write goes to as many as there are replicas, and
#   twice to each that also has a journal; a read comes from one. For writes the better of
#   sequential and random requests counts, since the store places the data; for reads random ones,
#   also where objects are read in turn: those of many workers lie apart.
# - OSDs (`ceph tell osd.N bench`): their sum, divided by the replicas. It only writes; journals are
#   included.
# - Network: at each end of each leg between clients, front, gateway and stores, the sum of what its
#   hosts sent, or received, at best, divided by how often an object crosses there; the smallest of
#   these. If a host's NIC allows more than that of any host it was measured with, its own limit
#   counts. Headers and all other traffic are left out.
#
# Figures are for requests of the size of an object, or of the nearest measured size, which is then
# stated; nothing is interpolated. Over deployments it is the median.


Transfer = Literal["read", "write"]


@dataclass(frozen=True)
class CeilingQuery:
    """What a ceiling is for: requests of one kind on one layout, from these client hosts."""

    operation: Transfer
    size_bytes: float
    """Of an object, or the expected mean."""
    clients: tuple[str, ...]
    nics_bit_s: Mapping[str, float] = field(default_factory=dict)
    """NIC limits of the hosts that have one."""


@dataclass(frozen=True)
class _Ceiling:
    """The most that one kind of hardware allows, in bytes of objects/s, after replication.

    `bound` is how far a result may be above it, as a fraction: how far attestations of equal hosts
    differ. None: unknown, and `how` says why, and what to do.
    """

    how: str
    bytes_s: float | None = None
    bound: float = LAYER_BOUND


def ceiling(
    kind: HardwareKind,
    attested: Iterable[Attested],
    structure: Structure | None,
    query: CeilingQuery,
) -> LayerStep:
    """The ceiling of a layout from the attestation of its deployments; a gap if it is unknown."""
    if structure is None:
        return LayerStep(kind, note="unknown: this installation does not know its structure")
    if kind == "disk" and not structure.disks:
        return LayerStep(kind, note="objects are kept in memory, not on disk")
    own = sorted((each for each in attested if each.kind == kind), key=lambda each: each.repeat)
    deployments = groupby(own, key=lambda each: each.repeat)
    measured = [_MEASURES[kind](list(mine), structure, query) for _, mine in deployments]
    rates = [each.bytes_s for each in measured if each.bytes_s is not None]
    if not rates:
        return LayerStep(
            kind, note=measured[0].how if measured else f"not measured: --layers {kind}"
        )
    known = [each for each in measured if each.bytes_s is not None]
    over = f", median of {len(known)} deployments" if len(known) > 1 else ""
    bytes_s = median(rates)
    return LayerStep(
        kind,
        throughput_ops_s=bytes_s / query.size_bytes,
        bandwidth_mb_s=bytes_s / 1e6,
        bound=max(each.bound for each in known),
        note=f"{known[0].how}{over}",
    )


def _bound(kind: HardwareKind, attested: Sequence[Attested]) -> float:
    limited = all(each.promised is not None for each in attested)
    return BOUNDS[kind] if limited else FREE_BOUND


def _disks(attested: Sequence[Attested], structure: Structure, query: CeilingQuery) -> _Ceiling:
    writes = query.operation == "write"
    picks = ("sequential", "random") if writes else ("random",)
    fit = [
        each
        for each in attested
        if each.operation == query.operation and each.pick in picks and each.unit == "B/s"
    ]
    nearest = _nearest(fit, query.size_bytes)
    if nearest is None:
        return _Ceiling("not measured: --layers disk")
    names: dict[str, list[str]] = {}
    for each in attested:
        disks = names.setdefault(each.host, [])
        disks += [_disk_of(each)] if _disk_of(each) not in disks else []
    # The better one last: it stays in the mapping.
    ranked = sorted(
        (each for each in fit if each.request_bytes == nearest), key=lambda it: it.value
    )
    figures = {(each.host, _disk_of(each)): each for each in ranked}

    def of_disks(places: Mapping[str, Sequence[int]]) -> list[Attested | None]:
        """The figures of the disks with these numbers; None for one that is missing."""
        return [
            figures.get((host, names[host][number])) if number < len(names.get(host, ())) else None
            for host, numbers in places.items()
            for number in numbers
        ]

    kept, journals = of_disks(structure.disks), of_disks(structure.journals)
    counted = [each for each in kept if each is not None]
    of_journals = [each for each in journals if each is not None]
    if not kept or len(counted) < len(kept) or len(of_journals) < len(journals):
        return _Ceiling("not measured on every disk that holds objects")
    rate, noun = sum(each.value for each in counted), "disk"
    if writes and of_journals and (journal := sum(each.value for each in of_journals)) < rate:
        rate, noun, counted = journal, "disk of journals", of_journals
    words = (
        f"{len(counted)} {noun.replace('disk', 'disks', len(counted) > 1)}, "
        f"{' or '.join(picks)} {_requests(nearest, query)}"
    )
    if writes and structure.times_kept > 1:
        words += f", divided by {structure.redundancy_words}"
    if writes and structure.writes > 1:
        words += ", each written twice (journal and data)"
    times = structure.times_kept * structure.writes if writes else 1
    return _Ceiling(words, rate / times, _bound("disk", counted))


def _disk_of(attested: Attested) -> str:
    return attested.what.split()[1]


def _osds(attested: Sequence[Attested], structure: Structure, query: CeilingQuery) -> _Ceiling:
    if query.operation != "write":
        return _Ceiling("the OSDs' own bench only writes")
    fit = [each for each in attested if each.operation == "write" and each.unit == "B/s"]
    nearest = _nearest(fit, query.size_bytes)
    if nearest is None:
        return _Ceiling("not measured: --layers osd")
    counted = [each for each in fit if each.request_bytes == nearest]
    if {each.host for each in counted} != set(structure.stores):
        return _Ceiling("not measured on every host of OSDs")
    words = f"{len(counted)} OSDs, each alone, {_requests(nearest, query)}"
    if structure.times_kept > 1:
        words += f", divided by {structure.redundancy_words}"
    bytes_s = sum(each.value for each in counted) / structure.times_kept
    return _Ceiling(words, bytes_s, FREE_BOUND)


def _nearest(attested: Sequence[Attested], size_bytes: float) -> int | None:
    """The measured request size nearest to this one by ratio, the smaller of a tie; None: none."""
    sizes = sorted({each.request_bytes for each in attested if each.request_bytes is not None})
    if size_bytes <= 0:
        return None
    return min(sizes, key=lambda size: abs(math.log(size / size_bytes)), default=None)


def _requests(measured_bytes: int, query: CeilingQuery) -> str:
    """`requests of 64 kB`, and that it is only the nearest size measured, if so."""
    words = f"requests of {show_bytes(measured_bytes)}"
    if measured_bytes == query.size_bytes:
        return words
    return f"{words}, the nearest measured to {show_bytes(query.size_bytes)}"


def _network(attested: Sequence[Attested], structure: Structure, query: CeilingQuery) -> _Ceiling:
    """The narrowest end of all legs that bodies cross between clients and stores."""
    reads = query.operation == "read"
    sent = structure.times_kept if structure.copied_by == "gateway" and not reads else 1
    legs = (
        (query.clients, structure.entrances, 1.0, 1.0),
        (structure.entrances, structure.gateways, 1.0, 1.0),
        (structure.gateways, structure.stores, sent, 1.0 if reads else structure.times_received),
    )
    narrowest = _Ceiling("unknown: no host's own link was seen at its limit")
    for near, far, left, arrived in legs:
        if set(near) & set(far):
            continue  # none within a host
        for hosts, sends, times in ((near, not reads, left), (far, reads, arrived)):
            end = _end(attested, hosts, query, sends=sends, times=times)
            if end.bytes_s is None:
                return end
            if end.bytes_s < (narrowest.bytes_s or math.inf):
                narrowest = end
    return narrowest


def _end(
    attested: Sequence[Attested],
    hosts: Sequence[str],
    query: CeilingQuery,
    *,
    sends: bool,
    times: float,
) -> _Ceiling:
    """What hosts at one end of a leg send, or receive, if each byte crosses there so often."""
    verb = "send" if sends else "receive"
    every = {
        host: _carried(attested, host, query.nics_bit_s.get(host), sends=sends) for host in hosts
    }
    rates = [carried for carried in every.values() if carried is not None]
    if len(rates) < len(every):
        missing = ", ".join(host for host, carried in every.items() if carried is None)
        return _Ceiling(f"not measured: what {missing} {verb}s (--layers network)")
    limited = all(limit for _, limit in rates)
    words = f"what {', '.join(hosts)} {verb}{'s' * (len(hosts) == 1)}"
    return _Ceiling(
        f"{words}, {times:.3g} times" if times > 1 else words,
        sum(bit_s for bit_s, _ in rates) / 8 / times,
        BOUNDS["network"] if limited else FREE_BOUND,
    )


def _carried(
    attested: Sequence[Attested], host: str, nic_bit_s: float | None, *, sends: bool
) -> tuple[float, bool] | None:
    """The most that a host sends or receives, alone or with all, and whether a limit applies."""
    own = [
        each
        for each in attested
        if (each.sender if sends else each.receiver) == host and each.sender and each.receiver
    ]
    best = max(own, key=lambda each: each.value, default=None)
    if best is None:
        return None
    if best.promised is not None and (nic_bit_s is None or nic_bit_s > best.promised):
        # The other host's NIC was the bottleneck.
        return (math.inf, True) if nic_bit_s is None else (nic_bit_s, True)
    return best.value, best.promised is not None


_MEASURES: Final[
    Mapping[HardwareKind, Callable[[Sequence[Attested], Structure, CeilingQuery], _Ceiling]]
] = {"disk": _disks, "osd": _osds, "network": _network}


@dataclass(frozen=True)
class Staircase:
    """The steps of one layout for one kind of requests, from the bottom up."""

    head: Row
    """One of its rows, which says what it is of."""
    about: str
    steps: tuple[LayerStep, ...]
    daemons: int = 1

    @property
    def layout(self) -> str:
        return self.head.layout

    @property
    def kind(self) -> Kind:
        return kind_of(self.head)

    @property
    def top(self) -> LayerStep:
        """What clients get."""
        return self.steps[-1]

    @property
    def known(self) -> tuple[LayerStep, ...]:
        """The steps without gaps."""
        return tuple(step for step in self.steps if step.throughput_ops_s is not None)

    def step(self, level: Level) -> LayerStep | None:
        return next((step for step in self.known if step.level == level), None)

    @property
    def words(self) -> str:
        """`disks 9,370 op/s → RADOS 3,210 (34 % of its disks) → gateway 594 (19 % of RADOS)`."""
        parts = []
        for number, step in enumerate(self.known):
            name = step.name if step.level == "front" else PLAIN[step.level]
            least = "at least " if step.held and step is not self.top else ""
            unit = "" if number else " op/s"
            text = f"{name} {least}{show_figure(step.throughput_ops_s)}{unit}"
            parts.append(f"{text} ({step.share})" if step.share else text)
        return f"{self.layout}, {self.about}: {' → '.join(parts) or 'unknown'}"


def gaps(stairs: Iterable[Staircase]) -> tuple[str, ...]:
    """What is unknown, each gap once: `RADOS of rgw-beast: not measured: --layers rados`."""
    layouts: dict[tuple[str, str], dict[str, None]] = {}
    for stair in stairs:
        for step in stair.steps:
            if step.throughput_ops_s is None:
                layouts.setdefault((step.name, step.note), {})[stair.layout] = None
    return tuple(f"{name} of {', '.join(each)}: {note}" for (name, note), each in layouts.items())


def doubts(stairs: Iterable[Staircase]) -> tuple[str, ...]:
    """Remarks on figures, in sentences, unbelievable ones first."""
    remarks = [
        (step.doubt, f"{step.name} of {stair.layout}, {stair.about}")
        for stair in stairs
        for step in stair.steps
        if step.doubt is not None
    ]
    ordered = sorted(remarks, key=lambda remark: VERDICTS.index(remark[0].verdict))
    texts = (f"{about}: {doubt.verdict} ({doubt.text})" for doubt, about in ordered)
    return tuple(dict.fromkeys(texts))


def _remark(
    rate: float, above: str, step: LayerStep, operation: Operation, daemons: int
) -> LayerDoubt | None:
    """A remark on the rate of a layer `above` and a step below it, of which `too low` is of the
    step; None if the rate is not above it.
    """
    ops_s = step.throughput_ops_s
    if ops_s is None or not step.carries or rate <= ops_s * (1 + step.bound):
        return None
    times = show_figure(rate / ops_s, 2)
    more = f"{times} times what {INSIDE[step.level]} can do"
    if step.level == "gateway" and daemons > 1:
        return None
    if step.level in ("disk", "osd") and operation == "read":
        return LayerDoubt("from memory", f"{more} in random order")
    if step.held or step.lone_host:
        why = f"which was measured from one host, {step.lone_host}: it may do more"
        if step.held:
            why = "whose figure is a lower bound, since its load generator ran out of CPU"
        return LayerDoubt("held below", f"{more}, {why}")
    why = "it can do more, or not all of that reached it: a cache, a quorum, another link"
    return LayerDoubt("too low", f"{above} did {times} times this: {why}")


# Making staircases, and what they say of rows.


def staircases(
    plan: ResolvedPlan, rows: Sequence[Row], layers: Sequence[Row], attested: Sequence[Attested]
) -> tuple[Staircase, ...]:
    """A staircase for each layout and kind of requests with bodies, of `rows` and `layers` by
    `rows_of`.
    """
    if not plan.suite.layers:
        return ()
    names = subjects(rows)
    groups: dict[tuple[Kind, str], list[Row]] = {}
    for row in rows:
        if row.operation in ("read", "write"):
            groups.setdefault((kind_of(row), row.layout), []).append(row)
    return tuple(
        _Layout(plan, tuple(own), layers, attested).staircase(names[kind])
        for (kind, _), own in groups.items()
        if own[0].object_size_bytes
    )


@of_run
def stairs_of(data: RunData) -> tuple[Staircase, ...] | None:
    """The layers' staircases; None if the suite asks for none."""
    if not data.plan.suite.layers:
        return None
    return staircases(data.plan, data.every_row, data.layers, data.attested)


class _Layout:
    """One layout under one kind of requests."""

    def __init__(
        self,
        plan: ResolvedPlan,
        rows: Sequence[Row],
        layers: Sequence[Row],
        attested: Sequence[Attested],
    ) -> None:
        """`rows` are of this layout and kind; the others of all."""
        self.head, self.plan, self.rows = rows[0], plan, rows
        head, name = self.head, self.head.layout
        place = (name, head.workload, head.operation)
        self.layers = [row for row in layers if (row.layout, row.workload, row.operation) == place]
        self.attested = [each for each in attested if each.layout == name]
        self.structure, self.pool = plan.structures.get(name), plan.pools.get(name)
        self.workload = next(one for one in plan.suite.workloads if one.name == head.workload)
        self.query = CeilingQuery(
            operation=cast("Transfer", head.operation),
            size_bytes=head.object_size_bytes or 0.0,
            clients=plan.hardware.clients,
            nics_bit_s=plan.hardware.nics_bit_s,
        )

    @property
    def daemons(self) -> int:
        return 1 if self.structure is None else self.structure.daemons

    @property
    def top(self) -> Level:
        if self.head.api not in ("swift", "s3"):
            return cast("Level", self.head.api)
        return "front" if self.structure is not None and self.structure.front else "gateway"

    def staircase(self, about: str) -> Staircase:
        store: StoreLayer | None = None if self.structure is None else self.structure.layer
        store = "rados" if self.pool is not None else store
        osds = store == "rados" and "osd" in self.plan.suite.layers
        levels: list[Level] = [] if store is None or store == self.top else [store]
        levels += ["gateway", "front"] if self.top == "front" else [self.top]
        steps = [
            self._hardware(kind)
            for kind in HARDWARE
            if kind != "osd" or (osds and self.head.operation == "write")
        ]
        for level in levels:
            step = self._best() if level == self.top else self._layer(level)
            mix = len(self.workload.operations) > 1
            steps.append(step.noted("a mix: other operations shared it" * mix))
        return Staircase(self.head, about, self._shared(steps), self.daemons)

    def _hardware(self, kind: HardwareKind) -> LayerStep:
        step = ceiling(kind, self.attested, self.structure, self.query)
        # The network is always attested, with one figure per pair of hosts that communicate.
        if step.throughput_ops_s is None and kind != "network" and kind in self.plan.suite.layers:
            return replace(step, note=step.note.replace(f": --layers {kind}", ""))
        return step

    def _best(self) -> LayerStep:
        """The suite's own steps: the best over the worker counts."""
        front = "" if self.structure is None or self.top != "front" else self.structure.front
        ranked = _ranked(self.rows)
        if not ranked:
            return LayerStep(self.top, front or "", note=_why_not(self.rows))
        best = max(ranked, key=lambda row: row.value("throughput") or 0.0)
        return replace(self._measured(best, self.top), front=front or "")

    def _layer(self, level: Level) -> LayerStep:
        """A layer below the top, at the workload's largest worker count."""
        rows = [
            row
            for row in self.layers
            if row.layer == level and (level != "gateway" or row.api == self.head.api)
        ]
        ranked = _ranked(rows)
        if not ranked:
            why = "not possible for these requests"
            if level not in self.plan.suite.layers:
                why = f"not measured: --layers {level}"
            return LayerStep(level, note=_why_not(rows) if rows else why)
        row, times = ranked[0], 1
        if level == "object-server" and row.operation == "write":
            if self.structure is None:
                return LayerStep(level, note="the number of replicas is unknown")
            times = self.structure.replicas
        step = self._measured(row, level, times)
        if level == "gateway" and self.daemons > 1:
            step = step.noted(f"one of {self.daemons} daemons")
        return _in_pool(step, row, self.pool) if self.pool and level == "rados" else step

    def _measured(self, row: Row, level: Level, times: int = 1) -> LayerStep:
        ops_s, mb_s = row.value("throughput") or 0.0, row.value("bandwidth")
        hosts = self.structure.gateways if level in BENCHED and self.structure is not None else ()
        # The CPU that ran out on the load generator: the gateway's host, else a client.
        full = [
            each.words
            for each in row.resources
            if each.what == "CPU" and each.saturated
            if each.tier == "client" or each.host in hosts
        ]
        divided = f"{show_figure(ops_s)} writes/s to single disks, divided by {times} replicas"
        return LayerStep(
            level=level,
            throughput_ops_s=ops_s / times,
            bandwidth_mb_s=None if mb_s is None else mb_s / times,
            workers=row.workers,
            saturated=limit_brief(row.resources),
            held=", ".join(full),
            note=divided if times > 1 else "",
        )

    def _shared(self, steps: Sequence[LayerStep]) -> tuple[LayerStep, ...]:
        """The steps with their shares of what is below them, and remarks."""
        networks = self._networks()
        stair = list(steps)

        def lower(at: int) -> list[LayerStep]:
            """What is below a step, with the network that its own load crosses."""
            level, below = stair[at].level, stair[:at]
            if level not in networks:
                return below
            doubt = next((each.doubt for each in below if each.level == "network"), None)
            others = [each for each in below if each.level != "network"]
            return [*others, replace(networks[level], doubt=doubt)]

        remarks: list[LayerDoubt | None] = [step.doubt for step in steps]
        for at, step in enumerate(steps):
            rate = step.throughput_ops_s
            if rate is None or step.doubt is not None or step.level == "network":
                continue
            found = {
                each.level: _remark(rate, step.name, each, self.head.operation, self.daemons)
                for each in lower(at)
            }
            remarks[at] = _gravest(found.values())
            for place, each in enumerate(stair[:at]):
                if (remark := found.get(each.level)) is not None and remark.verdict == "too low":
                    stair[place] = replace(each, doubt=remark)
        for at, step in enumerate(stair):
            rate = step.throughput_ops_s
            if rate is None:
                continue
            under = _under(step, lower(at))
            of_under = None if under is None else under.throughput_ops_s
            disks = next(
                (one.throughput_ops_s for one in stair if one.level == "disk" and one.carries), None
            )
            doubt = step.doubt or remarks[at]
            if step.held and doubt is None:
                where = f"{step.held} ran out on its load generator: the layer can do more"
                doubt = LayerDoubt("at least", where)
            stair[at] = replace(
                step,
                below=None if under is None else under.level,
                of_below=rate / of_under if of_under else None,
                of_disks=rate / disks if disks and step.level != "disk" else None,
                doubt=doubt,
            )
        return tuple(stair)

    def _networks(self) -> dict[Level, LayerStep]:
        """The network by layer, for those that are not loaded as the gateway is; the known ones."""
        structure, query = self.structure, self.query
        if structure is None:
            return {}
        gateways = structure.gateways
        nearby = structure.model_copy(update={"entrances": gateways})
        benches = ceiling("network", self.attested, nearby, replace(query, clients=gateways))
        ends = {"entrances": query.clients, "gateways": query.clients}
        direct = structure.model_copy(update={**ends, "copied_by": "gateway"})
        engine = ceiling("network", self.attested, direct, query)
        every: dict[Level, LayerStep] = dict.fromkeys(BENCHED, benches)
        every["object-server"] = engine
        return {level: step for level, step in every.items() if step.throughput_ops_s is not None}


def _ranked(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row.ranked and row.value("throughput")]


def _why_not(rows: Sequence[Row]) -> str:
    general = (NOT_VALID, NOT_STEADY)
    notes = [next((note for note in row.notes if note not in general), NOT_VALID) for row in rows]
    return notes[0] if notes else "not measured"


def _in_pool(step: LayerStep, row: Row, pool: BenchedPool) -> LayerStep:
    """The step in a pool. No layer is a share of it unless gateways keep objects alike on the same
    devices. How many hosts those are is not known: one that does more is no error.
    """
    full = [
        each.words
        for each in row.resources
        if each.what == "CPU" and each.saturated and each.host == pool.host
    ]
    return replace(
        step.noted(f"{pool.words}; from {pool.host}", pool.remark),
        held=step.held or ", ".join(full),
        lone_host=pool.host,
        doubt=LayerDoubt("not below", pool.apart) if pool.apart else step.doubt,
    )


def _under(step: LayerStep, below: Sequence[LayerStep]) -> LayerStep | None:
    """What a step is a share of: the next known layer below; of the hardware the smallest."""
    if step.level in ("disk", "network"):
        return None
    known = [each for each in below if each.throughput_ops_s is not None and each.carries]
    layers = [each for each in known if each.level not in HARDWARE]
    if layers:
        return layers[-1]
    return min(known, key=lambda each: each.throughput_ops_s or 0.0, default=None)


def _gravest(remarks: Iterable[LayerDoubt | None]) -> LayerDoubt | None:
    """The gravest remark on a layer that is above others."""
    own = [one for one in remarks if one is not None and one.verdict != "too low"]
    return min(own, key=lambda one: VERDICTS.index(one.verdict), default=None)


def with_ceilings(rows: Sequence[Row], stairs: Iterable[Staircase]) -> tuple[Row, ...]:
    """The rows, with the ceilings of disks and network that each came close to, and a note on each
    that is above a layer below it.
    """
    by_place = {(stair.kind, stair.layout): stair for stair in stairs}
    judged = []
    for row in rows:
        stair, ops_s = by_place.get((kind_of(row), row.layout)), row.value("throughput")
        update: dict[str, object] = {}
        if stair is not None and ops_s:
            update["reached"] = _reached(ops_s, stair)
            remark = _gravest(
                _remark(ops_s, stair.top.name, step, row.operation, stair.daemons)
                for step in stair.steps[:-1]
            )
            if row.ranked and remark is not None:
                update["notes"] = (*row.notes, str(remark))
        judged.append(row.model_copy(update=update) if update else row)
    return tuple(judged)


def _reached(ops_s: float, stair: Staircase) -> tuple[What, ...]:
    """Of disks and network those whose ceiling is used up to the share that counts as full."""
    kinds: tuple[Literal["disk", "network"], ...] = ("disk", "network")
    return tuple(
        kind
        for kind in kinds
        if (step := stair.step(kind)) is not None
        and step.believable
        and ops_s >= UTILIZED * (step.throughput_ops_s or math.inf)
    )
