"""The works of a COSBench workload file as COSBench reads them, with remarks on all it ignores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Literal

from weighbridge.common.document import did_you_mean
from weighbridge.suites.cosbench_xml import Element, XmlPlace

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
        self._add(Remark(place, message, "note"))

    def change(self, place: XmlPlace, message: str) -> None:
        """Note what would make the suite measure something else than the file."""
        self._add(Remark(place, message, "change"))

    def fault(self, place: XmlPlace, message: str) -> None:
        """Note what COSBench itself would refuse."""
        self._add(Remark(place, message, "fault"))

    def of(self, *severities: Severity) -> tuple[Remark, ...]:
        """Those of some severities, in file order."""
        return tuple(
            one
            for _, one in sorted(self._all.items(), key=itemgetter(0))
            if one.severity in severities
        )

    def _add(self, remark: Remark) -> None:
        self._all.setdefault((remark.place.line, remark.place.column, remark.message), remark)


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

STORAGE_KEYS = {
    "swift": ("timeout", "token", "storage_url", "policy", "logging"),
    "s3": (
        "accesskey", "secretkey", "endpoint", "path_style_access", "timeout", "proxyhost",
        "proxyport", "logging",
    ),
}  # fmt: skip
AUTH_KEYS = {
    "swauth": ("username", "password", "auth_url", "url", "timeout", "retry", "caching", "logging"),
    "keystone": (
        "username", "password", "tenant_name", "tenant_id", "auth_url", "url", "service", "timeout",
        "logging",
    ),
    "none": ("logging", "caching"),
}  # fmt: skip
ENDPOINT_KEYS = frozenset(
    {"token", "storage_url", "accesskey", "secretkey", "endpoint", "path_style_access"}
)

WORK_TYPES = ("normal", "init", "prepare", "cleanup", "dispose", "delay")
OPERATION_TYPES = ("read", "write", "filewrite", "delete", "list")


@dataclass(frozen=True)
class ConfigValue:
    """The value of a config key, and the place of that config."""

    value: str
    place: XmlPlace


Settings = Mapping[str, ConfigValue]
"""By key, inherited ones included: the last one wins, as in COSBench."""


@dataclass(frozen=True, eq=False)
class WorkOperation:
    """One operation of a work. Compared by identity: a work may have two with equal fields."""

    kind: str
    ratio: int
    settings: Settings
    place: XmlPlace


@dataclass(frozen=True)
class Work:
    """One work of a stage. Times in seconds; 0 means no limit, as in COSBench."""

    stage: str
    name: str
    kind: str
    workers: int
    runtime_s: int
    rampup_s: int
    total_ops: int
    total_bytes: int
    afr: int | None
    storage: ConfigValue
    """The type of its storage."""
    settings: Settings
    operations: tuple[WorkOperation, ...]
    element: Element


@dataclass(frozen=True)
class Stage:
    """Works that run concurrently."""

    name: str
    works: tuple[Work, ...]
    place: XmlPlace


def stages(root: Element, remarks: Remarks) -> tuple[Stage, ...]:
    """The stages of a file, in order; remarks on what COSBench ignores or refuses."""
    return _StageReader(remarks).workload(root)


class _StageReader:
    def __init__(self, remarks: Remarks) -> None:
        self.remarks = remarks

    def workload(self, root: Element) -> tuple[Stage, ...]:
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
        storage = self._storage(root, ConfigValue("none", root.place))
        found = [self.stage(element, settings, storage) for element in workflow.all("workstage")]
        if not found:
            self.remarks.fault(workflow.place, "the workflow has no <workstage>")
        return tuple(found)

    def stage(self, element: Element, inherited: Settings, storage: ConfigValue) -> Stage:
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
        works = tuple(self.work(one, name, settings, storage) for one in element.all("work"))
        if not works:
            self.remarks.fault(element.place, f"stage {name!r} has no <work>")
        return Stage(name, works, element.place)

    def work(self, element: Element, stage: str, inherited: Settings, storage: ConfigValue) -> Work:
        self._note_unknown(element)
        kind = element.get("type") or "normal"
        if kind not in WORK_TYPES:
            hint = did_you_mean(kind, WORK_TYPES)
            self.remarks.fault(element.at("type"), f"COSBench has no work of type {kind!r}{hint}")
        settings = self._settings(element, inherited)
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
        operations = tuple(self.operation(one, settings) for one in element.all("operation"))
        if kind == "normal":
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

    def operation(self, element: Element, inherited: Settings) -> WorkOperation:
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
        if set(kinds) <= {"write", "delay"}:
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
        for name, _ in element.attributes:
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

    def _settings(self, element: Element, inherited: Settings) -> Settings:
        pairs = self._pairs(element)
        self._note_unknown_keys(element, "config", [key for key, _ in pairs], KEYS)
        place = element.at("config")
        return {**inherited, **{key: ConfigValue(value, place) for key, value in pairs}}

    def _pairs(self, element: Element) -> list[tuple[str, str]]:
        """A config's pairs, split at `;` and the first `=`. All else may be secret."""
        pairs = []
        for part in (element.get("config") or "").split(";"):
            key, equals, value = part.partition("=")
            if equals and key.strip():
                pairs.append((key.strip(), value.strip()))
            elif part.strip():
                message = "a part of config that is not key=value is left out, as COSBench does"
                self.remarks.note(element.at("config"), message)
        return pairs

    def _storage(self, element: Element, inherited: ConfigValue) -> ConfigValue:
        """The storage type in effect for an element; endpoints and users belong to layouts."""
        for auth in element.all("auth"):
            self._note_unknown(auth)
            kind = auth.get("type") or "none"
            keys = [key for key, _ in self._pairs(auth)]
            config = f", with its config ({', '.join(map(_shown, keys))})" if keys else ""
            self.remarks.note(
                auth.place,
                f"auth {_shown(kind)} is left out{config}; the layout has users and endpoints",
            )
            self._note_unknown_keys(auth, "auth", keys, AUTH_KEYS.get(kind))
        for storage in element.all("storage"):
            self._note_unknown(storage)
            inherited = ConfigValue(storage.get("type") or "none", storage.place)
            pairs = self._pairs(storage)
            known = STORAGE_KEYS.get(inherited.value)
            self._note_unknown_keys(storage, "storage", [key for key, _ in pairs], known)
            for key, value in pairs:
                self._storage_key(storage.at("config"), key, value)
        return inherited

    def _note_unknown_keys(
        self, element: Element, what: str, keys: Sequence[str], known: tuple[str, ...] | None
    ) -> None:
        if known is None:
            return
        for key in keys:
            if key not in known:
                self.remarks.note(
                    element.at("config"),
                    f"{what} has no key {_shown(key)}{did_you_mean(key, known)}; COSBench ignores "
                    "it as well",
                )

    def _storage_key(self, place: XmlPlace, key: str, value: str) -> None:
        if key in ENDPOINT_KEYS:
            message = f"storage: {key} is left out: the layout has users and endpoints"
            self.remarks.note(place, message)
        elif key == "policy":
            self.remarks.change(
                place,
                f"storage: policy {_shown(value)} chooses where objects are stored; layouts have "
                "one policy",
            )
        elif key in {"proxyhost", "proxyport"}:
            self.remarks.change(
                place, f"storage: {key} sends requests through a proxy; here they go to the gateway"
            )
        elif key == "timeout":
            self.remarks.note(
                place, "storage: timeout is left out: the suite has `timeout`, by default 60s"
            )
        elif key == "logging":
            self.remarks.note(
                place, "storage: logging is left out: single operations are not logged here"
            )

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
    """A word of the file in quotes, on one line and of limited length."""
    return repr(text if len(text) <= 60 else f"{text[:57]}...")
