"""The works of a COSBench workload file, as COSBench would see them, with all that it passes over
named.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from weighbridge.common.document import did_you_mean
from weighbridge.suites.cosbench_xml import Element, XmlPlace
from weighbridge.suites.importer_remarks import Remarks

ATTRIBUTES = {
    "workload": ("name", "description", "trigger", "config"),
    "auth": ("type", "config"),
    "storage": ("type", "config"),
    "workflow": ("config",),
    "workstage": ("name", "closuredelay", "trigger", "config"),
    "work": (
        "name", "type", "workers", "interval", "division", "runtime", "rampup", "rampdown", "afr", "totalOps", "totalBytes",
        "driver", "config",
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
    "containers", "objects", "sizes", "cprefix", "csuffix", "oprefix", "osuffix", "chunked", "content", "hashCheck", "name",
    "files", "fileselection", "createContainer", "deleteContainer", "histogram",
)  # fmt: skip
"""Of the config of workloads, stages, works and operations."""

STORAGE_KEYS = {
    "swift": ("timeout", "token", "storage_url", "policy", "logging"),
    "s3": (
        "accesskey",
        "secretkey",
        "endpoint",
        "path_style_access",
        "timeout",
        "proxyhost",
        "proxyport",
        "logging",
    ),
}
AUTH_KEYS = {
    "swauth": ("username", "password", "auth_url", "url", "timeout", "retry", "caching", "logging"),
    "keystone": (
        "username",
        "password",
        "tenant_name",
        "tenant_id",
        "auth_url",
        "url",
        "service",
        "timeout",
        "logging",
    ),
    "none": ("logging", "caching"),
}

WORK_TYPES = ("normal", "init", "prepare", "cleanup", "dispose", "delay")
OPERATION_TYPES = ("read", "write", "filewrite", "delete", "list")


@dataclass(frozen=True)
class Setting:
    """The value of a key of some config, and where that config stands."""

    value: str
    place: XmlPlace


Settings = Mapping[str, Setting]
"""By key, what was inherited included: the last one wins, as in COSBench."""


@dataclass(frozen=True, eq=False)
class Operation:
    """One operation of a work. No two are the same one, whatever they say."""

    kind: str
    ratio: int
    settings: Settings
    place: XmlPlace


@dataclass(frozen=True)
class Work:
    """One work of a stage. Times in seconds; 0 is COSBench's word for no limit."""

    stage: str
    number: int
    """Of its stage, from 1."""
    name: str
    kind: str
    workers: int
    runtime_s: int
    rampup_s: int
    total_ops: int
    total_bytes: int
    afr: int | None
    storage: Setting
    """Its type, and where that is said."""
    settings: Settings
    operations: tuple[Operation, ...]
    element: Element


@dataclass(frozen=True)
class Stage:
    """The works that run at once."""

    name: str
    works: tuple[Work, ...]
    place: XmlPlace


def stages(root: Element, remarks: Remarks) -> tuple[Stage, ...]:
    """The stages of a file, in order.

    What COSBench passes over, refuses or has no figure for is remarked.
    """
    return _Reading(remarks).workload(root)


class _Reading:
    def __init__(self, remarks: Remarks) -> None:
        self.remarks = remarks

    def workload(self, root: Element) -> tuple[Stage, ...]:
        if root.tag != "workload":
            self.remarks.fault(
                root.place, f"a workload file begins with <workload>, not <{root.tag}>"
            )
            return ()
        self._look(root)
        if not root.get("name"):
            self.remarks.fault(root.place, "the workload has no name")
        self._trigger(root)
        workflows = list(root.all("workflow"))
        if len(workflows) != 1:
            self.remarks.fault(
                root.place,
                "the workload must have its workflow"
                if not workflows
                else "more than one <workflow>",
            )
            return ()
        workflow = workflows[0]
        self._look(workflow)
        settings = self._settings(workflow, self._settings(root, {}))
        storage = self._storage(root, Setting("none", root.place))
        found = [
            self.stage(element, number, settings, storage)
            for number, element in enumerate(workflow.all("workstage"), start=1)
        ]
        if not found:
            self.remarks.fault(workflow.place, "the workflow has no <workstage>")
        return tuple(found)

    def stage(self, element: Element, number: int, inherited: Settings, storage: Setting) -> Stage:
        self._look(element)
        name = element.get("name") or ""
        if not name:
            self.remarks.fault(element.place, "a stage has no name")
        self._trigger(element)
        delay = element.get("closuredelay")
        if delay not in {None, "", "0"}:
            what = "nothing waits between steps here"
            self.remarks.told(
                element.at("closuredelay"),
                f"the pause of {delay} s after stage {name!r} is left out: {what}",
            )
        settings = self._settings(element, inherited)
        storage = self._storage(element, storage)
        works = tuple(
            self.work(one, name, number, settings, storage) for one in element.all("work")
        )
        if not works:
            self.remarks.fault(element.place, f"stage {name!r} has no <work>")
        return Stage(name, works, element.place)

    def work(
        self, element: Element, stage: str, number: int, inherited: Settings, storage: Setting
    ) -> Work:
        self._look(element)
        kind = element.get("type") or "normal"
        if kind not in WORK_TYPES:
            self.remarks.fault(
                element.at("type"),
                f"COSBench has no work of type {kind!r}{did_you_mean(kind, WORK_TYPES)}",
            )
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
            ("interval", "figures are told each second here"),
            ("rampdown", "workers go on past the window here until all have been measured"),
        ):
            if element.get(attribute) not in {None, "", "0"}:
                self.remarks.told(
                    element.at(attribute),
                    f"{attribute} {element.get(attribute)!r} is left out: {why}",
                )
        operations = tuple(self.operation(one, settings) for one in element.all("operation"))
        if kind == "normal" and element.get("division") not in {None, "", "none"}:
            self._division(element, operations)
        afr = self._number(element, "afr", None)
        return Work(
            stage=stage,
            number=number,
            name=name,
            kind=kind,
            workers=workers or 0,
            runtime_s=self._number(element, "runtime", 0) or 0,
            rampup_s=self._number(element, "rampup", 0) or 0,
            total_ops=self._number(element, "totalOps", 0) or 0,
            total_bytes=self._number(element, "totalBytes", 0) or 0,
            afr=afr,
            storage=storage,
            settings=settings,
            operations=operations,
            element=element,
        )

    def operation(self, element: Element, inherited: Settings) -> Operation:
        self._look(element)
        kind = element.get("type") or ""
        ratio = self._number(element, "ratio", 100)
        if ratio is not None and ratio > 100:
            self.remarks.fault(
                element.at("ratio"), f"a ratio is a whole number from 0 to 100, not {ratio}"
            )
        if element.get("id"):
            self.remarks.told(
                element.at("id"), "the id of an operation is left out: nothing refers to it"
            )
        if element.get("division") not in {None, "", "none"}:
            self._division(element, (Operation(kind, 100, {}, element.place),))
        return Operation(
            kind, 100 if ratio is None else ratio, self._settings(element, inherited), element.place
        )

    def _division(self, element: Element, operations: tuple[Operation, ...]) -> None:
        what = f"division {element.get('division')!r}"
        if {operation.kind for operation in operations} <= {"write", "delay"}:
            self.remarks.told(
                element.at("division"),
                f"{what} is left out: each worker writes objects of its own here anyway",
            )
        else:
            message = (
                f"{what} gives each worker a part of the objects to itself; here all "
                "workers share them all"
            )
            self.remarks.changes(element.at("division"), message)

    def _look(self, element: Element) -> None:
        """Name attributes, elements and words that COSBench passes over."""
        known = ATTRIBUTES[element.tag]
        for name, _ in element.attributes:
            if name not in known:
                hint = did_you_mean(name, known)
                self.remarks.told(
                    element.at(name),
                    f"<{element.tag}> has no attribute {_shown(name)}{hint}; COSBench passes it "
                    "over as well",
                )
        for child in element.children:
            if child.tag not in CHILDREN.get(element.tag, ()):
                hint = did_you_mean(child.tag, CHILDREN.get(element.tag, ()))
                self.remarks.told(
                    child.place,
                    f"<{_shown(child.tag)}> in <{element.tag}> is left out{hint}: COSBench has "
                    "nothing of that name",
                )
        if element.words:
            self.remarks.told(
                element.place,
                f"text within <{element.tag}> is left out: it means nothing to COSBench",
            )

    def _trigger(self, element: Element) -> None:
        if element.get("trigger"):
            self.remarks.changes(
                element.at("trigger"),
                f"the trigger of <{element.tag}> runs a script beside it, and what that does is "
                "not known",
            )

    def _settings(self, element: Element, inherited: Settings) -> Settings:
        settings = dict(inherited)
        place = element.at("config")
        for key, value in self._pairs(element):
            if key not in KEYS:
                self.remarks.told(
                    place,
                    f"config has no key {_shown(key)}{did_you_mean(key, KEYS)}; COSBench passes "
                    "it over as well",
                )
            settings[key] = Setting(value, place)
        return settings

    def _pairs(self, element: Element) -> list[tuple[str, str]]:
        """The pairs of a config: split at `;`, and each at its first `=`.

        What is no pair may be part of a secret: not shown.
        """
        pairs = []
        for part in (element.get("config") or "").split(";"):
            key, equals, value = part.partition("=")
            if equals and key.strip():
                pairs.append((key.strip(), value.strip()))
            elif part.strip():
                self.remarks.told(
                    element.at("config"),
                    "a part of config that is no key=value is left out, as COSBench does",
                )
        return pairs

    def _storage(self, element: Element, inherited: Setting) -> Setting:
        """The type of storage that holds for an element; where it is, and as whom, is a matter of
        layouts.
        """
        for auth in element.all("auth"):
            self._look(auth)
            kind = auth.get("type") or "none"
            keys = [key for key, _ in self._pairs(auth)]
            credentials = (
                f": its config ({', '.join(_shown(key) for key in keys)}) stays behind"
                if keys
                else ""
            )
            self.remarks.told(
                auth.place,
                f"auth {_shown(kind)} is left out{credentials}; a layout's own users and "
                "endpoints are taken",
            )
            self._strange(auth, keys, AUTH_KEYS.get(kind))
        for storage in element.all("storage"):
            self._look(storage)
            inherited = Setting(storage.get("type") or "none", storage.place)
            pairs = self._pairs(storage)
            self._strange(storage, [key for key, _ in pairs], STORAGE_KEYS.get(inherited.value))
            for key, value in pairs:
                self._storage_key(storage, key, value)
        return inherited

    def _strange(self, element: Element, keys: list[str], known: tuple[str, ...] | None) -> None:
        for key in keys if known is not None else ():
            if key not in (known or ()):
                hint = did_you_mean(key, known or ())
                self.remarks.told(
                    element.at("config"),
                    f"{element.tag} has no key {_shown(key)}{hint}; COSBench passes it over as well",
                )

    def _storage_key(self, element: Element, key: str, value: str) -> None:
        place = element.at("config")
        if key in {
            "token",
            "storage_url",
            "accesskey",
            "secretkey",
            "endpoint",
            "path_style_access",
        }:
            self.remarks.told(
                place, f"storage: {key} stays behind: a layout's own users and endpoints are taken"
            )
        elif key == "policy":
            self.remarks.changes(
                place,
                f"storage: policy {_shown(value)} puts objects where that policy says; layouts "
                "have one policy",
            )
        elif key in {"proxyhost", "proxyport"}:
            self.remarks.changes(
                place, f"storage: {key} sends requests through a proxy; here they go to the gateway"
            )
        elif key == "timeout":
            self.remarks.told(
                place,
                "storage: timeout is left out: a request is given the suite's `timeout`, 60s "
                "where it has none",
            )
        elif key == "logging":
            self.remarks.told(
                place, "storage: logging is left out: single operations are not logged here"
            )

    def _number(self, element: Element, name: str, default: int | None) -> int | None:
        text = element.get(name)
        if text is None:
            return default
        if not text.strip().isascii() or not text.strip().isdigit() or len(text.strip()) > 18:
            self.remarks.fault(
                element.at(name), f"{name}: a whole number from 0 up is wanted, not {_shown(text)}"
            )
            return None
        return int(text)


def _shown(text: str) -> str:
    """A word of the file as it can be shown: on one line, and not without end."""
    return repr(text if len(text) <= 60 else f"{text[:57]}...")
