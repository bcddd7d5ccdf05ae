"""The works of a COSBench workload file as COSBench reads them, with remarks on all it ignores."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from weighbridge.common.document import did_you_mean
from weighbridge.suites.cosbench_xml import SHOWN_KEYS, Element, XmlPlace

Severity = Literal["note", "change", "fault"]
"""How a remark affects the import.

`note`: left out, or handled otherwise by every suite. `change`: the suite would measure something
else, which is refused unless requested. `fault`: COSBench itself refuses the file or fails on it.
"""


@dataclass(frozen=True)
class Remark:
    """One difference between the suite and the file, and its place in the file."""

    place: XmlPlace
    message: str
    severity: Severity

    def __str__(self) -> str:
        return f"{self.place.file}:{self.place.line}: {self.message}"


class Remarks:
    """The remarks of one import, without duplicates."""

    def __init__(self) -> None:
        self._all: dict[tuple[int, int, str], Remark] = {}

    def note(self, place: XmlPlace, message: str) -> None:
        """Note what is left out, or handled otherwise by every suite."""
        self.add(place, message, "note")

    def change(self, place: XmlPlace, message: str) -> None:
        """Note what would make the suite measure something else than the file."""
        self.add(place, message, "change")

    def fault(self, place: XmlPlace, message: str) -> None:
        """Note what COSBench itself would refuse."""
        self.add(place, message, "fault")

    def of(self, *severities: Severity) -> tuple[Remark, ...]:
        """Those of some severities, in file order."""
        ordered = [self._all[key] for key in sorted(self._all)]
        return tuple(one for one in ordered if one.severity in severities)

    def add(self, place: XmlPlace, message: str, severity: Severity) -> None:
        """Note a difference, unless this place has the same remark already."""
        remark = Remark(place, message, severity)
        self._all.setdefault((place.line, place.column, message), remark)


ATTRIBUTES = {
    "workload": ("name", "description", "trigger", "config"),
    "auth": ("type", "config"),
    "storage": ("type", "config"),
    "workflow": ("config",),
    "workstage": ("name", "closuredelay", "trigger", "config"),
    "work": (
        "name", "type", "workers", "interval", "division", "runtime", "rampup", "rampdown", "afr",
        "totalOps", "totalBytes", "driver", "config",
    ),
    "operation": ("type", "ratio", "division", "config", "id"),
}  # fmt: skip
CHILDREN = {
    "workload": ("auth", "storage", "workflow"),
    "workflow": ("workstage",),
    "workstage": ("auth", "storage", "work"),
    "work": ("auth", "storage", "operation"),
}
"""The mapping files of COSBench 0.4.2."""

KEYS = (
    "containers", "objects", "sizes", "cprefix", "csuffix", "oprefix", "osuffix", "chunked",
    "content", "hashCheck", "name", "files", "fileselection", "createContainer", "deleteContainer",
    "histogram",
)  # fmt: skip
"""Of the config of workloads, stages, works and operations."""
BOOLEAN_KEYS = frozenset({
    "chunked", "hashCheck", "createContainer", "deleteContainer", "histogram", "logging",
    "path_style_access", "no_verify_ssl", "is_prefetch", "is_range_request",
})  # fmt: skip
"""Of configs and storages."""
BOOLEANS = {
    **dict.fromkeys(("true", "yes", "on"), "true"),
    **dict.fromkeys(("false", "no", "off"), "false"),
}
"""In any case: `getBoolean` of COSBench's commons-configuration 1.5, which throws for others."""

APIS = {
    "swift": "swift", "s3": "s3",
    "ess": "s3", "essv2": "s3", "gdas": "s3", "sio": "s3", "siov1": "s3",
}  # fmt: skip
"""COSBench's storages that are APIs of a suite: its own, and S3's in what others made of it."""

_PLACE = "the layout has users and endpoints"
STORAGE_KEYS: Mapping[str, tuple[Severity, str]] = {
    **dict.fromkeys(
        ("token", "storage_url", "accesskey", "secretkey", "endpoint", "path_style_access"),
        ("note", _PLACE),
    ),
    "aws_region": ("note", _PLACE),
    "no_verify_ssl": ("note", "certificates are always verified here"),
    "timeout": ("note", "the suite has `timeout`, by default 60s"),
    "logging": ("note", "single operations are not logged here"),
    "restore_days": ("note", "it is for restore, which no suite has"),
    "policy": ("change", "chooses where objects are stored; layouts have one policy"),
    "storage_class": ("change", "chooses how objects are stored; here all have the default class"),
    "proxyhost": ("change", "sends requests through a proxy; here they go to the gateway"),
    "proxyport": ("change", "sends requests through a proxy; here they go to the gateway"),
    "is_prefetch": ("change", "adds a header `prefetch` to reads; here they have none"),
}
"""Of storages, with what is lost: COSBench 0.4.2's (`S3Constants`, `SwiftConstants`), and those of
its pull request 423 and of cosbench-sineio."""
NO_EFFECT = frozenset({"", "false", "STANDARD"})
"""Values with which a storage does what it does without the key."""
_SLIP = 0.85
"""From this likeness on an unknown key is a known one, misspelt."""
RANGE_KEYS = ("is_range_request", "file_length", "chunk_length")
PART_KEY = "part_size"
"""Keys of storages that decide what a read, or a `mwrite`, requests."""

OWN_WORKS = ("init", "prepare", "cleanup", "dispose", "delay")
"""Types of works to which COSBench gives an operation of its own, whatever the file has; every
other type is a normal work (`Work.validate`). Its archive writes these operations out.
"""


@dataclass(frozen=True)
class ConfigValue:
    """The value of a config key, and the place of that config."""

    value: str
    place: XmlPlace = field(repr=False)


Settings = Mapping[str, ConfigValue]
"""By key, inherited ones included: the last one wins, as in COSBench."""


@dataclass(frozen=True)
class Storage:
    """The storage of a work: the innermost alone counts, with its config."""

    kind: str
    settings: Settings
    place: XmlPlace = field(repr=False)


@dataclass(frozen=True, eq=False)
class WorkOperation:
    """One operation of a work. Compared by identity: a work may have two with equal fields."""

    kind: str
    ratio: int
    settings: Settings
    place: XmlPlace


@dataclass(frozen=True)
class Work:
    """One work of a stage. Times in seconds; 0 means no limit, as in COSBench. Two that differ in
    their places alone have the same representation.
    """

    stage: str
    name: str
    kind: str
    workers: int
    runtime_s: int
    rampup_s: int
    total_ops: int
    total_bytes: int
    afr: int | None
    storage: Storage
    settings: Settings
    operations: tuple[WorkOperation, ...]
    element: Element = field(repr=False)


@dataclass(frozen=True)
class Stage:
    """Works that run concurrently."""

    name: str
    works: tuple[Work, ...]
    place: XmlPlace


class StageReader:
    """The stages of a file, in order; remarks on what COSBench ignores or refuses."""

    def __init__(self, remarks: Remarks) -> None:
        self.remarks = remarks

    def stages(self, root: Element) -> tuple[Stage, ...]:
        """Those below the file's root element."""
        if root.tag != "workload":
            message = f"a workload file begins with <workload>, not <{root.tag}>"
            self.remarks.fault(root.place, message)
            return ()
        self._note_unknown(root)
        if not root.get("name"):
            self.remarks.fault(root.place, "the workload has no name")
        self._trigger(root)
        workflows = list(root.all("workflow"))
        if len(workflows) != 1:
            message = "more than one <workflow>" if workflows else "the workload has no <workflow>"
            self.remarks.fault(root.place, message)
            return ()
        workflow = workflows[0]
        self._note_unknown(workflow)
        settings = self._settings(workflow, self._settings(root, {}))
        storage = self._storage(root, Storage("none", {}, root.place))
        stages = [self._stage(element, settings, storage) for element in workflow.all("workstage")]
        if not stages:
            self.remarks.fault(workflow.place, "the workflow has no <workstage>")
        return tuple(stages)

    def _stage(self, element: Element, inherited: Settings, storage: Storage) -> Stage:
        self._note_unknown(element)
        name = element.get("name") or ""
        if not name:
            self.remarks.fault(element.place, "a stage has no name")
        self._trigger(element)
        delay = element.get("closuredelay")
        if delay not in {None, "", "0"}:
            self.remarks.note(
                element.at("closuredelay"),
                f"the pause of {delay} s after stage {name!r} is left out: steps follow each other "
                "without one here",
            )
        settings = self._settings(element, inherited)
        storage = self._storage(element, storage)
        works = tuple(self._work(one, name, settings, storage) for one in element.all("work"))
        if not works:
            self.remarks.fault(element.place, f"stage {name!r} has no <work>")
        return Stage(name, works, element.place)

    def _work(self, element: Element, stage: str, inherited: Settings, storage: Storage) -> Work:
        self._note_unknown(element)
        kind = self._kind(element)
        settings = self._settings(element, inherited, measured=kind == "normal")
        storage = self._storage(element, storage)
        name = element.get("name") or ("" if kind == "normal" else kind)
        if not name:
            self.remarks.fault(element.place, "a work has no name")
        workers = self._number(element, "workers", 0)
        if workers is not None and workers < 1 and kind != "delay":
            self.remarks.fault(element.at("workers"), "a work must have `workers` above 0")
        for attribute, why in (
            ("driver", "the load of a suite is not tied to a driver"),
            ("interval", "figures are reported every second here"),
            ("rampdown", "workers continue after the window here until all are measured"),
        ):
            value = element.get(attribute)
            if value not in {None, "", "0"}:
                self.remarks.note(
                    element.at(attribute), f"{attribute} {value!r} is left out: {why}"
                )
        operations: tuple[WorkOperation, ...] = ()
        if kind == "normal":
            operations = tuple(self._operation(one, settings) for one in element.all("operation"))
            self._division(element, [operation.kind for operation in operations])
        return Work(
            stage=stage,
            name=name,
            kind=kind,
            workers=workers or 0,
            runtime_s=self._number(element, "runtime", 0) or 0,
            rampup_s=self._number(element, "rampup", 0) or 0,
            total_ops=self._number(element, "totalOps", 0) or 0,
            total_bytes=self._number(element, "totalBytes", 0) or 0,
            afr=self._number(element, "afr", None),
            storage=storage,
            settings=settings,
            operations=operations,
            element=element,
        )

    def _kind(self, element: Element) -> str:
        kind = element.get("type") or "normal"
        if kind in OWN_WORKS or kind == "normal":
            return kind
        if kind == "mprepare" and not any(element.all("operation")):
            self.remarks.change(
                element.at("type"), "mprepare uploads objects in parts; here each is one upload"
            )
            return "prepare"
        message = f"a work of type {_shown(kind)} is a normal work for COSBench"
        if any(element.all("operation")):
            self.remarks.note(element.at("type"), message)
        else:
            hint = did_you_mean(kind, OWN_WORKS)
            self.remarks.fault(element.at("type"), f"{message}, and needs an operation{hint}")
        return "normal"

    def _operation(self, element: Element, inherited: Settings) -> WorkOperation:
        self._note_unknown(element)
        kind = element.get("type") or ""
        ratio = self._number(element, "ratio", 100)
        if ratio is not None and ratio > 100:
            message = f"a ratio is a whole number from 0 to 100, not {ratio}"
            self.remarks.fault(element.at("ratio"), message)
        if element.get("id"):
            message = "the id of an operation is left out: nothing refers to it"
            self.remarks.note(element.at("id"), message)
        self._division(element, [kind])
        settings = self._settings(element, inherited)
        return WorkOperation(kind, 100 if ratio is None else ratio, settings, element.place)

    def _division(self, element: Element, kinds: Sequence[str]) -> None:
        division = element.get("division")
        if division in {None, "", "none"}:
            return
        if set(kinds) <= {"write", "mwrite", "delay"}:
            self.remarks.note(
                element.at("division"),
                f"division {division!r} is left out: each worker writes its own objects here",
            )
        else:
            self.remarks.change(
                element.at("division"),
                f"division {division!r} gives each worker its own part of the objects; here all "
                "workers share all of them",
            )

    def _note_unknown(self, element: Element) -> None:
        known = ATTRIBUTES[element.tag]
        for name in element.attributes:
            if name not in known:
                hint = did_you_mean(name, known)
                self.remarks.note(
                    element.at(name),
                    f"<{element.tag}> has no attribute {_shown(name)}{hint}; COSBench ignores it "
                    "as well",
                )
        children = CHILDREN.get(element.tag, ())
        for child in element.children:
            if child.tag not in children:
                hint = did_you_mean(child.tag, children)
                self.remarks.note(
                    child.place,
                    f"<{_shown(child.tag)}> in <{element.tag}> is left out{hint}: COSBench has no "
                    "such element",
                )
        if element.words:
            message = f"text within <{element.tag}> is left out: COSBench ignores it"
            self.remarks.note(element.place, message)

    def _trigger(self, element: Element) -> None:
        if element.get("trigger"):
            self.remarks.change(
                element.at("trigger"),
                f"the trigger of <{element.tag}> runs a script, whose effect is not known",
            )

    def _settings(
        self, element: Element, inherited: Settings, *, measured: bool = True
    ) -> Settings:
        pairs = self._pairs(element)
        for key, given in pairs.items():
            if key not in KEYS:
                self._unknown_key(given.place, "config", key, KEYS, measured=measured)
        return {**inherited, **pairs}

    def _pairs(self, element: Element) -> dict[str, ConfigValue]:
        """A config's pairs, split at `;` and the first `=`. All else may be secret."""
        place = element.at("config")
        pairs = {}
        for part in (element.get("config") or "").split(";"):
            key, equals, value = (word.strip() for word in part.partition("="))
            if equals and key:
                word = value.lower()
                if key in BOOLEAN_KEYS and word not in BOOLEANS:
                    message = f"{key} must be true, yes, on, false, no or off: COSBench fails on it"
                    self.remarks.fault(place, message)
                value = BOOLEANS.get(word, value) if key in BOOLEAN_KEYS else value
                pairs[key] = ConfigValue(value, place)
            elif part.strip():
                message = "a part of config that is not key=value is left out, as COSBench does"
                self.remarks.note(place, message)
        return pairs

    def _storage(self, element: Element, inherited: Storage) -> Storage:
        """The storage in effect for an element; endpoints and users belong to layouts."""
        for auth in element.all("auth"):
            self._note_unknown(auth)
            kind = auth.get("type") or "none"
            keys = ", ".join(map(_shown, self._pairs(auth)))
            config = f", with its config ({keys})" if keys else ""
            self.remarks.note(
                auth.place,
                f"auth {_shown(kind)} is left out{config}; the layout has users and endpoints",
            )
        for storage in element.all("storage"):
            self._note_unknown(storage)
            pairs = self._pairs(storage)
            inherited = Storage(storage.get("type") or "none", pairs, storage.place)
            for key, given in pairs.items():
                self._storage_key(given.place, key, given.value, known=inherited.kind in APIS)
        return inherited

    def _unknown_key(
        self, place: XmlPlace, what: str, key: str, keys: Collection[str], *, measured: bool
    ) -> None:
        """Remark a key that 0.4.2 ignores: a slip is of no effect there; any other may be of a
        version that measures something else by it.
        """
        slip = difflib.get_close_matches(key, keys, 1, _SLIP)
        if slip or not measured:
            hint = did_you_mean(key, slip, known=False)
            message = f"{what} has no key {_shown(key)}{hint}; COSBench ignores it as well"
            self.remarks.note(place, message)
        else:
            self.remarks.change(
                place,
                f"{what} has no key {_shown(key)}: COSBench 0.4.2 ignores it, other versions may "
                "measure something else by it",
            )

    def _storage_key(self, place: XmlPlace, key: str, value: str, *, known: bool) -> None:
        if key not in STORAGE_KEYS:
            keys = (*STORAGE_KEYS, *RANGE_KEYS, PART_KEY)
            if known and key not in keys:
                self._unknown_key(place, "storage", key, keys, measured=True)
            return
        severity, why = STORAGE_KEYS[key]
        if severity == "note" or value in NO_EFFECT:
            self.remarks.note(place, f"storage: {key} is left out: {why}")
        else:
            shown = f" {_shown(value)}" if key in SHOWN_KEYS else ""
            self.remarks.change(place, f"storage: {key}{shown} {why}")

    def _number(self, element: Element, name: str, default: int | None) -> int | None:
        value = element.get(name)
        if value is None:
            return default
        digits = value.strip()
        if not digits.isascii() or not digits.isdigit() or len(digits) > 18:
            message = f"{name}: must be a whole number, 0 or more, not {_shown(value)}"
            self.remarks.fault(element.at(name), message)
            return None
        return int(digits)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}...")
