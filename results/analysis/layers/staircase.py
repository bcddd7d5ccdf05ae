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

from collections.abc import Iterable
from typing import Final, Literal

from pydantic import PositiveInt

from weighbridge.common.csv_text import csv_lines
from weighbridge.common.layers import Level
from weighbridge.common.record import Record
from weighbridge.results.analysis.findings import Kind
from weighbridge.results.analysis.layers.ceiling import HardwareKind
from weighbridge.results.figures import show_figure
from weighbridge.suites import Api, DriverName, Operation

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
differ between deployments (`results.analysis.sameness.BOUNDS`), which is less than two steps of few
repeats on one machine differ.
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
    """A remark on a figure above one below it, or limited by its own load generator; `text` says
    why.
    """

    verdict: Verdict
    text: str


class LayerStep(Record):
    """One layer. Rates are None for a gap, and `note` says why; else `note` says how they were
    obtained.
    """

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
        """Whether the figure can be taken as it is."""
        return self.doubt is None or self.doubt.verdict != "not believable"


class Staircase(Record):
    """The steps of one layout for one kind of requests, from the bottom up."""

    layout: str
    workload: str
    operation: Operation
    api: Api
    driver: DriverName
    about: str
    """Name of the requests, such as `64 kB reads`."""
    object_size_bytes: float
    daemons: PositiveInt = 1
    steps: tuple[LayerStep, ...]

    @property
    def kind(self) -> Kind:
        """The kind of requests, as in rows and panels."""
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
        """The step of a layer, if known."""
        return next((step for step in self.known if step.level == level), None)

    @property
    def words(self) -> str:
        """The staircase in one line:

        `disks 9,370 op/s → RADOS 3,210 (34 % of its disks) → gateway 594 (19 % of RADOS)`.
        """
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
