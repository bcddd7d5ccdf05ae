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
load generator ran out of CPU could do more than its figure says. Anything else is not believable
until explained.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from statistics import median
from typing import Final, Literal

from pydantic import Field, PositiveFloat, PositiveInt

from weighbridge.common.csv_text import csv_lines
from weighbridge.common.quantities import show_bytes
from weighbridge.common.record import Record
from weighbridge.common.structure import Level, Structure
from weighbridge.results.judge.comparison import Kind
from weighbridge.results.judge.host_equality import BOUNDS, FREE_BOUND
from weighbridge.results.numbers import show_figure
from weighbridge.results.run import Attested
from weighbridge.suites import Api, DriverName, Operation

# Ceilings: the most that disks, OSDs and network allow a layout's clients, from attestation.
#
# The bottom-up method (F. Wang and others, "Performance and Scalability Evaluation of the Ceph
# Parallel File System", PDSW 2013): establish what each layer can do before judging the one above
# it. In bytes of objects per second:
#
# - Disks: the sum over those that hold objects. A write goes to as many as there are replicas, and
#   twice to each that also has a journal; a read comes from one. For writes, and for reads in the
#   order of the writes, the better of sequential and random requests counts, since the store places
#   the data; for other reads random ones.
# - OSDs (`ceph tell osd.N bench`): their sum, divided by the replicas. It only writes; journals are
#   included.
# - Network: at each end of each leg between clients, front, gateway and stores, the sum of what its
#   hosts sent, or received, at best, divided by how often an object crosses there; the smallest of
#   these. If a host's NIC allows more than that of any host it was measured with, its own limit
#   counts. Headers and all other traffic are left out.
#
# Figures are for requests of the size of an object, or of the nearest measured size, which is then
# stated; nothing is interpolated. Over deployments it is the median.


HardwareKind = Literal["disk", "osd", "network"]
Transfer = Literal["read", "write"]


class CeilingQuery(Record):
    """What a ceiling is for: requests of one kind on one layout, from these client hosts."""

    operation: Transfer
    size_bytes: float
    """Of an object, or the expected mean."""
    in_order: bool
    """Whether objects are picked in the order in which they were written."""
    clients: tuple[str, ...]
    nics_bit_s: dict[str, float] = Field(default_factory=dict)
    """NIC limits of the hosts that have one."""


class Ceiling(Record):
    """The most that one kind of hardware allows, in bytes of objects/s, after replication."""

    kind: HardwareKind
    bytes_s: PositiveFloat
    bound: float
    """How far a result may be above it, as a fraction: how far attestations of equal hosts differ.
    """
    how: str


class CeilingGap(Record):
    """Why a figure is missing, and what to do, in words."""

    why: str


class DeploymentCeiling(Record):
    """The ceiling of one deployment."""

    bytes_s: float
    limited: bool
    how: str


def ceiling(
    kind: HardwareKind,
    attested: Iterable[Attested],
    structure: Structure | None,
    asked: CeilingQuery,
) -> Ceiling | CeilingGap:
    """The ceiling of a layout from the attestation of its deployments."""
    if structure is None:
        return CeilingGap(why="unknown: this installation does not know its structure")
    if kind == "disk" and not structure.disks:
        return CeilingGap(why="objects are kept in memory, not on disk")
    own = sorted((one for one in attested if one.kind == kind), key=lambda one: one.repeat)
    deployments = [list(mine) for _, mine in groupby(own, key=lambda one: one.repeat)]
    parts = [_MEASURES[kind](mine, structure, asked) for mine in deployments]
    known = [part for part in parts if isinstance(part, DeploymentCeiling)]
    if not known:
        return next(
            (part for part in parts if isinstance(part, CeilingGap)),
            CeilingGap(why=f"not measured: --layers {kind}"),
        )
    over = f", median of {len(known)} deployments" if len(known) > 1 else ""
    bound = BOUNDS[kind] if all(part.limited for part in known) else FREE_BOUND
    return Ceiling(
        kind=kind,
        bytes_s=median(part.bytes_s for part in known),
        bound=bound,
        how=f"{known[0].how}{over}",
    )


def _disks(
    attested: Sequence[Attested], structure: Structure, asked: CeilingQuery
) -> DeploymentCeiling | CeilingGap:
    names: dict[str, list[str]] = {}
    for one in attested:
        mine = names.setdefault(one.host, [])
        if _disk_of(one) not in mine:
            mine.append(_disk_of(one))
    picks = (
        ("random",)
        if asked.operation == "read" and not asked.in_order
        else ("sequential", "random")
    )
    fit = [
        one
        for one in attested
        if one.operation == asked.operation and one.pick in picks and one.unit == "B/s"
    ]
    nearest = _nearest(fit, asked.size_bytes)
    if nearest is None:
        return CeilingGap(why="not measured: --layers disk")
    # The better one last: it stays in the mapping.
    ranked = sorted((one for one in fit if one.request_bytes == nearest), key=lambda one: one.value)
    figures = {(one.host, _disk_of(one)): one for one in ranked}

    def total(places: Mapping[str, Sequence[int]]) -> list[Attested] | None:
        """The figures of the disks with these numbers; None if one is missing."""
        found = []
        for host, numbers in places.items():
            for number in numbers:
                known = names.get(host, [])
                one = figures.get((host, known[number])) if number < len(known) else None
                if one is None:
                    return None
                found.append(one)
        return found or None

    kept = total(structure.disks)
    journals = total(structure.journals) if structure.journals else []
    if kept is None or journals is None:
        return CeilingGap(why="not measured on every disk that holds objects")
    times = structure.times_kept * structure.writes if asked.operation == "write" else 1
    rate, of = sum(one.value for one in kept), kept
    if asked.operation == "write" and journals and sum(one.value for one in journals) < rate:
        rate, of = sum(one.value for one in journals), journals
    what = "disk" if of is kept else "disk of journals"
    words = (
        f"{len(of)} {what.replace('disk', 'disks', len(of) > 1)}, {' or '.join(picks)} "
        f"{_requests(nearest, asked)}"
    )
    if asked.operation == "write" and structure.times_kept > 1:
        words += f", divided by {structure.redundancy_words}"
    if asked.operation == "write" and structure.writes > 1:
        words += ", each written twice (journal and data)"
    return DeploymentCeiling(
        bytes_s=rate / times, limited=all(one.promised is not None for one in of), how=words
    )


def _disk_of(one: Attested) -> str:
    return one.what.split()[1]


def _osds(
    attested: Sequence[Attested], structure: Structure, asked: CeilingQuery
) -> DeploymentCeiling | CeilingGap:
    if asked.operation != "write":
        return CeilingGap(why="the OSDs' own bench only writes")
    fit = [one for one in attested if one.operation == "write" and one.unit == "B/s"]
    nearest = _nearest(fit, asked.size_bytes)
    if nearest is None:
        return CeilingGap(why="not measured: --layers osd")
    mine = [one for one in fit if one.request_bytes == nearest]
    if {one.host for one in mine} != set(structure.stores):
        return CeilingGap(why="not measured on every host of OSDs")
    words = f"{len(mine)} OSDs, each alone, {_requests(nearest, asked)}"
    if structure.times_kept > 1:
        words += f", divided by {structure.redundancy_words}"
    return DeploymentCeiling(
        bytes_s=sum(one.value for one in mine) / structure.times_kept, limited=False, how=words
    )


def _nearest(attested: Sequence[Attested], size_bytes: float) -> int | None:
    """The measured request size nearest to this one by ratio, the smaller of a tie; None: none."""
    sizes = sorted({one.request_bytes for one in attested if one.request_bytes is not None})
    if size_bytes <= 0:
        return None
    return min(sizes, key=lambda size: abs(math.log(size / size_bytes)), default=None)


def _requests(measured_bytes: int, asked: CeilingQuery) -> str:
    """`requests of 64 kB`, and that it is only the nearest size measured, if so."""
    words = f"requests of {show_bytes(measured_bytes)}"
    if measured_bytes == asked.size_bytes:
        return words
    return f"{words}, the nearest measured to {show_bytes(asked.size_bytes)}"


class Crossing(Record):
    """One end of a leg: hosts that send or receive `times` what the clients' requests carry."""

    hosts: tuple[str, ...]
    sends: bool
    times: float = 1

    @property
    def words(self) -> str:
        """`what store-1, store-2, store-3 receive, 3 times`."""
        verb = f"{'send' if self.sends else 'receive'}{'s' * (len(self.hosts) == 1)}"
        times = f", {self.times:.3g} times" if self.times > 1 else ""
        return f"what {', '.join(self.hosts)} {verb}{times}"


def _network(
    attested: Sequence[Attested], structure: Structure, asked: CeilingQuery
) -> DeploymentCeiling | CeilingGap:
    found: list[DeploymentCeiling] = []
    for crossing in _crossings(structure, asked):
        rates = [
            _carried(attested, host, asked.nics_bit_s.get(host), sends=crossing.sends)
            for host in crossing.hosts
        ]
        if None in rates:
            missing = ", ".join(
                host for host, one in zip(crossing.hosts, rates, strict=True) if one is None
            )
            return CeilingGap(
                why=f"not measured: what {missing} {'sends' if crossing.sends else 'receives'} "
                "(--layers network)"
            )
        known = [one for one in rates if one is not None]
        rate = sum(bit_s for bit_s, _ in known) / 8 / crossing.times
        if math.isfinite(rate):
            found.append(
                DeploymentCeiling(
                    bytes_s=rate, limited=all(limited for _, limited in known), how=crossing.words
                )
            )
    return min(
        found,
        key=lambda part: part.bytes_s,
        default=CeilingGap(why="unknown: no host's own link was seen at its limit"),
    )


def _carried(
    attested: Sequence[Attested], host: str, nic_bit_s: float | None, *, sends: bool
) -> tuple[float, bool] | None:
    """The most that a host sends or receives, alone or with all, and whether a limit applies."""
    mine = [
        one
        for one in attested
        if (one.sender if sends else one.receiver) == host and one.sender and one.receiver
    ]
    best = max(mine, key=lambda one: one.value, default=None)
    if best is None:
        return None
    if best.promised is not None and (nic_bit_s is None or nic_bit_s > best.promised):
        # The other host's NIC was the bottleneck.
        return (math.inf, True) if nic_bit_s is None else (nic_bit_s, True)
    return best.value, best.promised is not None


def _crossings(structure: Structure, asked: CeilingQuery) -> list[Crossing]:
    """Where bodies cross links between clients and stores; none within a host."""
    reads = asked.operation == "read"
    legs = [(asked.clients, structure.entrances, 1.0, 1.0)]
    legs += [(structure.entrances, structure.gateways, 1.0, 1.0)]
    sent = structure.times_kept if structure.copied_by == "gateway" and not reads else 1
    kept = 1.0 if reads else structure.times_received
    legs += [(structure.gateways, structure.stores, sent, kept)]
    found = []
    for near, far, left, arrived in legs:
        if not set(near) & set(far):
            found.append(Crossing(hosts=near, sends=not reads, times=left))
            found.append(Crossing(hosts=far, sends=reads, times=arrived))
    return found


_MEASURES: Final[
    Mapping[
        HardwareKind,
        Callable[[Sequence[Attested], Structure, CeilingQuery], DeploymentCeiling | CeilingGap],
    ]
] = {
    "disk": _disks,
    "osd": _osds,
    "network": _network,
}


HARDWARE: Final[tuple[HardwareKind, ...]] = ("disk", "osd", "network")
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
PLAIN: Final[dict[Level, str]] = NAMES | {
    "disk": "disks",
    "network": "network",
    "object-server": "object servers",
    "gateway": "gateway",
}
"""Names of the layers in the middle of a sentence."""
INSIDE: Final[dict[Level, str]] = NAMES | {
    "disk": "its disks",
    "osd": "its OSDs alone",
    "network": "its network",
    "object-server": "its object servers",
    "gateway": "one gateway",
}
"""Names of a layout's layers within a sentence."""

LAYER_BOUND: Final = 0.10
"""How far one measured layer may be above another: as far as the same limited disks and links
differ between deployments (`results.judge.host_equality.BOUNDS`), which is less than two steps of
few repeats on one machine differ.
"""

Verdict = Literal["from memory", "at least", "held below", "not below", "not believable"]
"""`at least`: its own load generator ran out of CPU; `held below`: that of the layer below did, or
may have; `not below`: no layer is above it, since gateways keep objects elsewhere.
"""


_VERDICTS: Final[tuple[Verdict, ...]] = (
    "not believable",
    "not below",
    "from memory",
    "held below",
    "at least",
)
"""The gravest first."""


class LayerDoubt(Record):
    """A remark on a figure above one below it, or limited by its own load generator."""

    verdict: Verdict
    text: str


class LayerStep(Record):
    """One layer. Rates are None for a gap; `note` says why, or how they were obtained."""

    level: Level
    name: str
    throughput_ops_s: float | None = None
    bandwidth_mb_s: float | None = None
    workers: PositiveInt | None = None
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
    def carries(self) -> bool:
        """Whether the layers above can be shares of it."""
        return self.doubt is None or self.doubt.verdict != "not below"

    @property
    def believable(self) -> bool:
        return self.doubt is None or self.doubt.verdict != "not believable"


class Staircase(Record):
    """The steps of one layout for one kind of requests, from the bottom up."""

    layout: str
    workload: str
    operation: Operation
    api: Api
    driver: DriverName
    about: str
    object_size_bytes: float
    daemons: PositiveInt = 1
    steps: tuple[LayerStep, ...]

    @property
    def kind(self) -> Kind:
        return self.workload, self.operation, self.api, self.driver

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
            share = (
                f" ({percent(step.of_below)} of {INSIDE[step.below]})"
                if step.of_below is not None and step.below
                else ""
            )
            least = "at least " if step.held and step is not self.top else ""
            name = step.name if step.level == "front" else PLAIN[step.level]
            parts.append(
                f"{name} "
                f"{least}{show_figure(step.throughput_ops_s)}{' op/s' if not number else ''}{share}"
            )
        return f"{self.layout}, {self.about}: {' → '.join(parts) or 'unknown'}"


_COLUMNS: Final = (
    *("layout", "api", "driver", "workload", "operation", "object_size_bytes"),
    *("level", "workers", "throughput_ops_s", "bandwidth_mb_s"),
    *("below", "share_of_below", "share_of_disks", "saturated"),
    *("held_by_its_load", "believable", "doubt", "note"),
)


def staircase_csv(stairs: Iterable[Staircase]) -> str:
    """All steps as CSV: empty if a figure is unknown, with the reason as note. Shares are of 1."""
    lines = [
        (
            *(stair.layout, stair.api, stair.driver, stair.workload, stair.operation),
            *(stair.object_size_bytes, step.level, step.workers),
            *(step.throughput_ops_s, step.bandwidth_mb_s),
            *(step.below, step.of_below, step.of_disks, step.saturated, bool(step.held)),
            step.believable if step.throughput_ops_s is not None else None,
            None if step.doubt is None else f"{step.doubt.verdict}: {step.doubt.text}",
            step.note,
        )
        for stair in stairs
        for step in stair.steps
    ]
    return csv_lines(_COLUMNS, lines)


def gaps(stairs: Iterable[Staircase]) -> tuple[str, ...]:
    """What is unknown, each gap once: `RADOS of rgw-beast: not measured: --layers rados`."""
    layouts_of: dict[tuple[str, str], list[str]] = {}
    for stair in stairs:
        for step in stair.steps:
            if step.throughput_ops_s is None:
                layouts = layouts_of.setdefault((step.name, step.note), [])
                layouts += [stair.layout] * (stair.layout not in layouts)
    return tuple(
        f"{name} of {', '.join(layouts)}: {note}" for (name, note), layouts in layouts_of.items()
    )


def doubts(stairs: Iterable[Staircase]) -> tuple[str, ...]:
    """Remarks on figures, in sentences, unbelievable ones first."""
    found = [
        (
            _VERDICTS.index(step.doubt.verdict),
            (
                f"{step.name} of {stair.layout}, {stair.about}: {step.doubt.verdict} "
                f"({step.doubt.text})"
            ),
        )
        for stair in stairs
        for step in stair.steps
        if step.doubt is not None
    ]
    return tuple(dict.fromkeys(text for _, text in sorted(found, key=lambda one: one[0])))


def percent(share: float | None) -> str:
    """`34 %`, `0.52 %`: two significant digits below 10 %."""
    if share is None:
        return ""
    return f"{show_figure(share * 100, 2) if share < 0.1 else f'{share * 100:,.0f}'} %"


def above(
    rate: float, below: Iterable[LayerStep], operation: Operation, daemons: int
) -> LayerDoubt | None:
    """The gravest remark on a rate that is above a layer below it; None if it is above none."""
    found: list[LayerDoubt] = []
    for one in below:
        ops_s = one.throughput_ops_s
        if ops_s is None or not one.carries or rate <= ops_s * (1 + one.bound):
            continue
        times = f"{show_figure(rate / ops_s, 2)} times what {INSIDE[one.level]} can do"
        if one.level == "gateway" and daemons > 1:
            continue
        if one.level in ("disk", "osd") and operation == "read":
            found.append(LayerDoubt(verdict="from memory", text=times))
        elif one.held:
            why = "whose figure is a lower bound, since its load generator ran out of CPU"
            found.append(LayerDoubt(verdict="held below", text=f"{times}, {why}"))
        elif one.lone_host:
            why = f"which was measured from one host, {one.lone_host}: it may do more"
            found.append(LayerDoubt(verdict="held below", text=f"{times}, {why}"))
        else:
            found.append(
                LayerDoubt(verdict="not believable", text=f"{times}: {_causes(one.level)}")
            )
    return min(found, key=lambda doubt: _VERDICTS.index(doubt.verdict), default=None)


def _causes(level: Level) -> str:
    """How a result can be above a layer below it."""
    if level in ("disk", "osd"):
        return (
            "acknowledged before it was on all disks (a quorum, a cache), or the attestation "
            "was too short"
        )
    if level == "network":
        return "the attestation was too short, or not all traffic used these links"
    return "it was answered from a cache above that layer, or the layer was not loaded fully"
