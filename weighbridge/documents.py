"""What verbs that compare runs, cut power, or look at what is there, print with `--json`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from weighbridge.common.json_document import JsonDocument
from weighbridge.common.record import Record
from weighbridge.results.analysis.across_runs.guard import Guarded
from weighbridge.results.analysis.comparison import Comparison
from weighbridge.results.analysis.durability import LayoutDurability
from weighbridge.results.analysis.history.history import History


class ComparedRunsDocument(JsonDocument):
    """What `compare-runs` prints."""

    document: Literal["compared runs"] = "compared runs"
    a: str
    """The name of run A."""
    b: str
    """The name of run B."""
    guarded: Guarded
    """Facts that are the same in both, that are not known, and that differ."""
    comparison: Comparison
    """Each effect with its tests, as in comparison.json."""
    lost: tuple[str, ...]
    """What was comparable in A and is not in B, or has no result there."""


class HistoryDocument(JsonDocument):
    """What `history` prints."""

    document: Literal["history"] = "history"
    answer: str
    """What changed last, in one sentence, or that nothing did."""
    history: History
    """Runs, the series of their figures, the changes in them, and where runs are not compared."""
    gone: tuple[str, ...] = ()
    """Runs that are kept, and whose folders were not read."""
    left_out: tuple[str, ...] = ()
    """A sentence for each folder that could not be read."""


class DurabilityDocument(JsonDocument):
    """What `durability` prints."""

    document: Literal["durability"] = "durability"
    layouts: tuple[LayoutDurability, ...]
    failed: tuple[str, ...] = ()
    """Layouts that could not be tried to the end, and why."""


class RequirementSeen(Record):
    """Something that hosts need, and whether it is there."""

    host: str
    """A real host; empty: this machine."""
    name: str
    found: bool
    optional: bool = False
    """Whether only some options need it."""
    why: str
    remedy: str
    """How to get it."""


class DoctorDocument(JsonDocument):
    """What `doctor` prints."""

    document: Literal["doctor"] = "doctor"
    hardware: str
    requirements: tuple[RequirementSeen, ...]
    """What this machine, and real hosts, need for the hardware; exit code 2 if anything that is not
    optional is missing.
    """
    advice: tuple[str, ...] = ()
    """What is allowed in a layout that was checked, and seldom meant."""


class ShippedLayout(Record):
    """A layout that ships."""

    name: str
    about: str
    gateway: str
    releases: tuple[str, ...]
    """Its own first, then others that have its settings."""


class ParameterOfGateway(Record):
    """A setting of layouts of one gateway."""

    gateway: str
    key: str
    """Dotted, below `settings`."""
    kind: str
    default: str
    about: str


class TopologiesDocument(JsonDocument):
    """What `topologies` prints."""

    document: Literal["topologies"] = "topologies"
    layouts: tuple[ShippedLayout, ...]
    """The layouts that ship."""
    parameters: tuple[ParameterOfGateway, ...]
    """Every setting of their gateways, with its default."""


class ReachedEndpoint(Record):
    """One API of a running deployment, with what it takes to use it."""

    api: str
    urls: tuple[str, ...]
    user: str
    key: str
    """The secret key, as `status` shows it."""


class DeadDaemon(Record):
    """A daemon that was started and has died."""

    host: str
    service: str
    log: str
    """The path of its output: on this machine, or on its real host."""


class RunningDeployment(Record):
    """A deployment that is running, or was left."""

    label: str
    layout: str
    """Empty for one that this machine did not make."""
    hardware: str
    since: str
    state: Literal["running", "in use", "left running", "made on another machine"]
    """`running`: on lab hosts. On real hosts, `in use`: by a command of this machine that is at
    work; `left running`: its command has ended; or `made on another machine`."""
    addresses: dict[str, str]
    """Of its hosts, by name."""
    endpoints: tuple[ReachedEndpoint, ...]
    dead: tuple[DeadDaemon, ...]


class StatusDocument(JsonDocument):
    """What `status` prints."""

    document: Literal["status"] = "status"
    deployments: tuple[RunningDeployment, ...]
    silent: dict[str, str] = Field(default_factory=dict)
    """Real hosts that do not answer, and why: what runs there is not known."""


class LabImage(Record):
    """A root image of lab hosts."""

    name: str
    debian: str
    """The release of Debian or Ubuntu whose packages it has."""
    built: str
    """The day of its packages; empty: not built."""
    packages: str
    """A sum over names and versions of its packages; empty: not built."""


class ImagesDocument(JsonDocument):
    """What `images` prints."""

    document: Literal["images"] = "images"
    images: tuple[LabImage, ...]
