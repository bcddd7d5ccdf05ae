"""Reading hardware and layout files, checking layouts before anything starts, and listing their
parameters.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import re
import textwrap
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, Field, ValidationError
from pydantic.fields import FieldInfo

from weighbridge.common.document import Document, DocumentError, Fault, did_you_mean
from weighbridge.common.errors import UsageError
from weighbridge.common.paths import expanded, is_file
from weighbridge.common.quantities import parse_bytes, parse_seconds, show_bytes
from weighbridge.common.record import Record
from weighbridge.gateways.gateway import STORES, Gateway, Unfit
from weighbridge.gateways.options import by_keys, by_option, option_words
from weighbridge.gateways.sizing import Sized, left_open, with_sizes
from weighbridge.topologies.hardware import Hardware


class Layout(Record):
    """A layout as in its file; its gateway checks `place` and `settings`."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
    """What tables, charts and reports call it."""
    about: str
    """One sentence, shown in reports."""
    gateway: str
    """Kind of gateway, such as rgw or swift."""
    release: str
    """Release of the gateway, such as ceph-16 or swift-2.30."""
    tuned: str = ""
    """What its settings were tuned for, and the evidence; empty: they are as shipped."""
    place: dict[str, Any]
    """Which service runs on which hosts: see the layouts of each gateway."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """What affects results: see the layouts of each gateway."""


# A layout as a command line or a suite names it: `NAME[@RELEASE][:KEY=VALUE]...`.
#
#         rgw-beast                          a shipped layout
#         my/layout.yaml                     a file
#         rgw-beast@ceph-18                  another release
#         rgw-beast:radosgw.threads=64       other settings: keys below `settings`, or `place.KEY`
#         swift:replicas=2:proxy.workers=4
#
# Changes are part of the layout's name in results, so that a layout can be compared with its
# changes.


LONGEST_NAME = 40
"""As in Layout: names of layouts are parts of file names."""

_KEY = re.compile(r"[a-z][A-Za-z0-9_.-]*")


@dataclass(frozen=True)
class ChangedSetting:
    """One changed setting. `path` starts at the top of the file."""

    path: tuple[str, ...]
    value: object
    word: str
    """The value as it was written."""
    column: int
    """Its place in the reference, from 1."""


@dataclass(frozen=True)
class Reference:
    """A layout's file or name, and changes to it; `text` is the reference as it was written."""

    name: str
    text: str
    changes: tuple[ChangedSetting, ...] = ()

    def fault(self, change: ChangedSetting) -> Fault:
        return Fault("layout", 1, change.column, "", self.text)

    def renamed(self, name: str) -> str:
        """The name of the changed layout, of at most LONGEST_NAME characters."""
        words = [name]
        for change in self.changes:
            last = "" if change.path == ("release",) else change.path[-1]
            words.append(f"{last}-{change.word}" if last else change.word)
        return slug(words, self.text)


def slug(words: Sequence[str], identity: str) -> str:
    """A name of these words; one above LONGEST_NAME characters ends in a hash of `identity`."""
    full = re.sub(r"[^a-z0-9]+", "-", "-".join(words).lower()).strip("-")
    if len(full) <= LONGEST_NAME:
        return full
    digest = hashlib.sha256(identity.encode()).hexdigest()[:6]
    return f"{full[: LONGEST_NAME - 7].rstrip('-')}-{digest}"


def parse(text: str) -> Reference:
    """Read a reference. Raises DocumentError that points into it."""
    head, *parts = _split(text, ":")
    name, at, release = head.partition("@")
    changes = []
    if at:
        if not release:
            raise _wrong(text, len(head), "@ needs a release, such as rgw-beast@ceph-18")
        changes.append(ChangedSetting(("release",), release, release, len(name) + 2))
    column = len(head) + 2
    for part in parts:
        key, equals, value = part.partition("=")
        if not equals or not _KEY.fullmatch(key):
            raise _wrong(text, column, "this is not KEY=VALUE, such as radosgw.threads=64")
        try:
            read = yaml.safe_load(value)
        except yaml.YAMLError:
            raise _wrong(text, column, f"{value!r} is not a value in YAML") from None
        keys = tuple(key.split("."))
        path = keys if keys[0] == "place" else ("settings", *keys)
        changes.append(ChangedSetting(path, read, value, column))
        column += len(part) + 1
    return Reference(name, text, tuple(changes))


def path_of(key: str, settings: type[BaseModel]) -> tuple[str, ...]:
    """The path of a dotted key below settings of this record.

    Below a mapping of options a name may itself have dots: the last word is the option and the
    words before it the section, after the server where sections are kept by server:
    `options.client.rgw.gateway-1.rgw_frontends` is the option `rgw_frontends` of the section
    `client.rgw.gateway-1`. Words that the record does not know are kept, for the reader of the
    settings to refuse.
    """
    words, found = key.split("."), list[str]()
    model: type[BaseModel] | None = settings
    while words and model is not None:
        word, *words = words
        if word not in model.model_fields and (row := by_option(model).get(word)) is not None:
            word, *words = (*row.key.split("."), *words)  # a daemon's own name of a setting
        found.append(word)
        field = model.model_fields.get(word)
        if field is None:
            break
        levels = _levels(field.annotation)
        if levels and len(words) > levels:
            # With one level all words are the name; else those between server and option are the
            # section.
            servers = max(levels - 2, 0)
            head, rest = words[:servers], words[servers:]
            names = [".".join(rest)] if levels == 1 else [".".join(rest[:-1]), rest[-1]]
            words = [*head, *names]
        if levels:
            break
        model = _record(field.annotation)[0]
    return (*found, *words)


def split(text: str) -> list[str]:
    """The references in a comma-separated list; a comma within brackets belongs to a value."""
    return [word.strip() for word in _split(text, ",") if word.strip()]


def _split(text: str, mark: str) -> Sequence[str]:
    parts, depth = [""], 0
    for character in text:
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(character, 0)
        if character == mark and depth <= 0:
            parts.append("")
        else:
            parts[-1] += character
    if depth:
        raise UsageError(f"{text!r}: brackets are not closed")
    return parts


def _levels(annotation: Any) -> int:
    if typing.get_origin(annotation) is dict:
        return 1 + _levels(typing.get_args(annotation)[1])
    return 0


def _wrong(text: str, column: int, message: str) -> DocumentError:
    return DocumentError([Fault("layout", 1, column, message, text)])


@dataclass(frozen=True)
class Planned:
    """A layout that was checked against its hardware, with its gateway. `text` is its file."""

    layout: Layout
    gateway: Gateway
    text: str
    sizing: tuple[Sized, ...] = ()
    """The gateway's settings that are not the layout's own, but follow the size of its hosts."""

    @property
    def advice(self) -> tuple[str, ...]:
        """The gateway's advice, after the layout's name."""
        return tuple(f"{self.layout.name}: {text}" for text in self.gateway.advice)


def shipped_layouts() -> Mapping[str, Path]:
    """The shipped layouts by name."""
    return {path.stem: path for path in sorted(_folder().glob("*.yaml"))}


def shipped_hardware() -> Mapping[str, Path]:
    """The shipped hardware files by name."""
    return {path.stem: path for path in sorted((_folder() / "hardware").glob("*.yaml"))}


def find(name: str, known: Mapping[str, Path], what: str) -> Path:
    """The file of a layout or hardware, given as a path or a shipped name. Raises UsageError."""
    path = Path(name)
    if is_file(path):
        return path
    if name in known:
        return known[name]
    advice = f"Give the path of a YAML file or the name of a shipped {what}."
    raise UsageError(f"no {what} {name!r}{did_you_mean(name, list(known))}", advice=advice)


def load_hardware(path: Path) -> Hardware:
    """Read a hardware file. Raises DocumentError with all faults at once."""
    document = Document.read(path)
    hardware = document.into(Hardware)
    faults = [document.fault_at(("ssh", key), why) for key, why in _unusable(hardware)]
    if faults:
        raise DocumentError(faults)
    return hardware


def _unusable(hardware: Hardware) -> Iterator[tuple[str, str]]:
    access = hardware.ssh
    if access is None:
        return
    if access.key is not None:
        path = expanded(access.key)
        if not is_file(path):
            yield "key", f"there is no file {path}"
        elif path.stat().st_mode & 0o077:
            yield "key", f"{path} can be read by others: chmod 600 {path}"
    hosts = expanded(access.known_hosts)
    if "known_hosts" in access.model_fields_set and not is_file(hosts):
        yield "known_hosts", f"there is no file {hosts}: make it with ssh-keyscan, then check it"


def unsized(hardware: Hardware) -> tuple[str, ...]:
    """Real hosts but clients of which the file does not say the size."""
    if not hardware.of.by_ssh:
        return ()
    return tuple(
        name
        for name, size in hardware.sizes.items()
        if name not in hardware.clients and (size.cpus is None or size.memory_bytes is None)
    )


def load_layout(
    path: Path, hardware: Hardware | None, reference: Reference | None = None
) -> Planned:
    """Read a layout, apply the changes of `reference`, and check it against its gateway and
    hardware, if that is known.

    Raises DocumentError with all faults at once; UsageError when the file cannot be read.
    """
    document, faults = Document.read(path), list[Fault]()
    if reference is None or not reference.changes:
        return _checked(document, hardware, faults)
    given = document.data if isinstance(document.data, dict) else {}
    kind = str(given.get("gateway"))
    for change in reference.changes:
        keys = change.path
        if keys[0] == "settings" and kind in STORES:  # which may be named as the daemon does
            keys = ("settings", *path_of(".".join(map(str, keys[1:])), STORES[kind].Settings))
        try:
            document.change(keys, change.value, reference.fault(change))
        except DocumentError as error:
            faults += error.faults
    planned = _checked(document, hardware, faults)
    name = reference.renamed(planned.layout.name)
    return replace(planned, layout=planned.layout.model_copy(update={"name": name}))


def changed_document(document: Document, hardware: Hardware) -> Planned:
    """Check a layout changed by `Document.change`. Raises DocumentError with all faults."""
    planned = _checked(document, hardware, [])
    return replace(planned, text=_text(planned.layout))


def checked_again(layout: Layout, hardware: Hardware, where: str) -> Planned:
    """Check a layout of a plan, `where` for messages. Raises DocumentError with all faults."""
    return _checked(Document(f"{where}: layout {layout.name}", _text(layout)), hardware, [])


def changed_layout(
    base: Planned | Path,
    hardware: Hardware,
    changes: Mapping[str, object],
    origin: Fault | Callable[[str], Fault],
    *,
    reference: Reference | None = None,
    name: str | None = None,
) -> Planned:
    """A layout with further settings, by their dotted keys below `settings` (see
    `reference.path_of`), checked as any other.

    `base` is a layout, or a file to which `reference` is applied first. `origin` is where faults of
    a change are reported, of all or by key; its message is not used. `name` is the new layout's;
    None: the base's name with the last two words of each key and its value, shortened as by
    `Reference.renamed`.

    Raises DocumentError with all faults at once, each at the origin of its change, also when the
    change conflicts with a setting of the base.
    """
    planned = base if isinstance(base, Planned) else load_layout(base, hardware, reference)
    words = [f"{'-'.join(key.split('.')[-2:])}-{value}" for key, value in changes.items()]
    full = [planned.layout.name, *changes.items()]
    kind, faults = type(planned.gateway), list[Fault]()
    update = {
        "name": name or slug([planned.layout.name, *words], repr(full)),
        "settings": by_keys(kind.Settings, planned.layout.settings),
    }
    layout = planned.layout.model_copy(update=update)
    if not changes:
        return replace(planned, layout=layout)
    document = Document(f"layout {layout.name}", _text(layout))
    document.was_valid = True
    for key, value in changes.items():
        where = origin if isinstance(origin, Fault) else origin(key)
        try:
            document.change(("settings", *path_of(key, kind.Settings)), value, where)
        except DocumentError as error:
            faults += error.faults
    planned = _checked(document, hardware, faults)
    return replace(planned, text=_text(planned.layout))


def _text(layout: Layout) -> str:
    return yaml.safe_dump(layout.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def _checked(document: Document, hardware: Hardware | None, faults: list[Fault]) -> Planned:
    """A layout that has these faults already. Raises DocumentError with those and all others."""
    layout: Layout | None = None
    gateway: Gateway | None = None
    sizing: tuple[Sized, ...] = ()
    try:
        layout = document.into(Layout)
    except DocumentError as error:
        faults += error.faults
    given = document.data if isinstance(document.data, dict) else {}
    kind = _kind_of_gateway(document, given, faults)
    if kind is not None:
        release = given.get("release")
        if isinstance(release, str) and release not in kind.releases:
            hint = did_you_mean(release, list(kind.releases), known=False)
            message = f"no release {release!r} of {kind.kind}{hint}"
            message += f"; known: {', '.join(kind.releases)}"
            faults.append(document.fault_at(("release",), message))
        place = _part(document, given.get("place"), kind.Placement, "place", faults)
        settings = _part(document, given.get("settings", {}), kind.Settings, "settings", faults)
        whole = place is not None and settings is not None
        if whole and isinstance(release, str) and release in kind.releases:
            try:
                gateway = kind(release, place, settings)
                if hardware is not None:
                    sizing = left_open(settings, gateway.by_size(hardware.sizes))
                    gateway = kind(release, place, with_sizes(settings, sizing))
                    faults += _misplaced(document, given, gateway, hardware)
            except ValueError as error:
                at = error.at if isinstance(error, Unfit) else ("place",)
                faults.append(document.fault_at(at, str(error)))
    if layout is None or gateway is None or faults:
        raise DocumentError(
            sorted(dict.fromkeys(faults), key=lambda fault: (fault.file, fault.line, fault.column))
        )
    return Planned(layout, gateway, "\n".join(document.lines) + "\n", sizing)


def _kind_of_gateway(
    document: Document, given: Mapping[str, Any], faults: list[Fault]
) -> type[Gateway] | None:
    name = given.get("gateway")
    if not isinstance(name, str):
        return None  # a fault of the layout, which was said
    try:
        return STORES[STORES.known(name)]
    except ValueError as error:
        faults.append(document.fault_at(("gateway",), str(error)))
        return None


def _part(document: Document, data: object, model: Any, under: str, faults: list[Fault]) -> Any:
    """The record of a part of the file, as far as the file says something of it; unknown keys hide
    no other fault.
    """
    if not isinstance(data, dict):
        return None  # a fault of the layout, which was said
    try:
        record = model.model_validate(data)
    except ValidationError as error:
        faults += document.faults_of(error, model, (under,))
        unknown = [one["loc"] for one in error.errors() if one["type"] == "extra_forbidden"]
        if len(unknown) < error.error_count():
            return None
    else:
        faults += document.truths(data, record, (under,))
        return record
    rest = deepcopy(data)
    for *path, key in unknown:
        inner: Any = rest
        for part in path:
            # Names of union members that pydantic adds are not in the file.
            if not isinstance(inner, dict) or part in inner:
                inner = inner[part]
        inner.pop(key, None)
    return None if rest == data else _part(document, rest, model, under, faults)


def _misplaced(
    document: Document, given: Mapping[str, Any], gateway: Gateway, hardware: Hardware
) -> list[Fault]:
    known = f"hardware {hardware.name!r}"
    if gateway.already_runs and hardware.of.contained:
        message = f"{known} has its own network, from which a running gateway cannot be reached"
        return [document.fault_at(("gateway",), f"{message}: choose --hardware this-machine")]
    if not gateway.already_runs and hardware.of.for_running_gateways:
        message = f"{known} is for gateways that already run, and {gateway.kind} must be started"
        advice = "choose other hardware, such as lab-cpu"
        return [document.fault_at(("gateway",), f"{message}: {advice}")]
    pool = gateway.pool
    if pool is not None and pool.host not in hardware.observed:
        hint = did_you_mean(pool.host, list(hardware.observed))
        message = f"{known} has no host {pool.host!r} among those that are `observed`{hint}"
        where = _path_of(given.get("settings"), pool.host) or ()
        return [document.fault_at(("settings", *where), message)]
    faults = []
    for name, need in gateway.needs().items():
        spec, roles = hardware.hosts.get(name), ", ".join(need.roles)
        if spec is None:
            message = f"{known} has no host {name!r}{did_you_mean(name, list(hardware.hosts))}"
        elif len(spec.disks) < need.disks:
            message = f"{roles} needs {need.disks} disk(s); host {name!r} of {known} has "
            message += str(len(spec.disks))
        elif (has := spec.size.memory_bytes) is not None and has < need.memory_bytes:
            message = f"{roles} may take {show_bytes(need.memory_bytes)} of memory; host {name!r} "
            message += f"of {known} has {show_bytes(has)}"
        else:
            continue
        path = _path_of(given.get("place"), name) or ()
        faults.append(document.fault_at(("place", *path), message))
    if not faults:
        disks = {name: len(spec.disks) for name, spec in hardware.hosts.items()}
        faults = [
            document.fault_at(one.at, f"{one} (hardware {hardware.name!r})")
            for one in gateway.lacks(disks)
        ]
    return sorted(faults, key=lambda fault: (fault.line, fault.column))


def _path_of(value: object, name: str) -> tuple[str | int, ...] | None:
    if value == name:
        return ()
    items = enumerate(value) if isinstance(value, list) else ()
    for key, inner in value.items() if isinstance(value, dict) else items:
        found = _path_of(inner, name)
        if found is not None:
            return (key, *found)
    return None


def _folder() -> Path:
    return Path(str(resources.files("weighbridge.topologies")))


# The parameters of a gateway's layouts, read off the records that validate them.


@dataclass(frozen=True)
class LayoutParameter:
    """One setting: its dotted key below `settings`, its type, its default, and what it does."""

    key: str
    kind: str
    default: str
    about: str


def parameters(settings: type[BaseModel], under: str = "") -> Iterator[LayoutParameter]:
    """Parameters of a record and of those in it, below `KEY[]` in lists, `KEY.NAME` in mappings."""
    texts = field_texts(settings)
    for name, field in settings.model_fields.items():
        inner, place = _record(field.annotation)
        key = f"{under}{name}{place}"
        if inner is not None:
            yield from parameters(inner, f"{key}.")
        else:
            text = texts.get(name, name.replace("_", " "))
            if own := option_words(name, field):
                text = f"{text.removesuffix('.')} ({own})."
            yield LayoutParameter(key, _kind_of(field), _default(field), text)


@functools.cache  # each time the source of its module would be parsed
def field_texts(model: type[BaseModel]) -> Mapping[str, str]:
    """The docstrings below the fields of a record and its base classes, by field."""
    found: dict[str, str] = {}
    for one in reversed(model.__mro__):
        if not issubclass(one, BaseModel) or one is BaseModel or vars(one).get("fronts"):
            continue  # fields of fronts come from a registry and have no source
        tree = ast.parse(textwrap.dedent(inspect.getsource(one)))
        (body,) = (node for node in tree.body if isinstance(node, ast.ClassDef))
        for field, text in zip(body.body, body.body[1:], strict=False):
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(text, ast.Expr)
            ):
                words = ast.literal_eval(text.value) if isinstance(text.value, ast.Constant) else ""
                found[field.target.id] = " ".join(str(words).split())
    return found


def _record(annotation: Any) -> tuple[type[BaseModel] | None, str]:
    """The record that a field holds, optional or not, or has in a list or a mapping, and how its
    keys are reached; None: it holds anything else.
    """
    origin, held = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in {typing.Union, types.UnionType}:
        there = [one for one in held if one is not type(None)]
        return _record(there[0]) if len(there) == 1 else (None, "")
    if origin is typing.Annotated:
        return _record(held[0])
    for kind, place in ((tuple, "[]"), (dict, ".NAME")):
        if origin is kind and (inner := _record(held[0 if kind is tuple else 1])[0]) is not None:
            return inner, place
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        return annotation, ""
    return None, ""


def _kind_of(field: FieldInfo) -> str:
    readers = {getattr(one, "func", None) for one in field.metadata}
    if parse_bytes in readers:
        return "size"
    return "time" if parse_seconds in readers else _kind(field.annotation)


def _kind(annotation: Any) -> str:
    origin = typing.get_origin(annotation)
    if origin is Literal:
        return " | ".join(str(choice) for choice in typing.get_args(annotation))
    if origin in {typing.Union, types.UnionType}:
        kinds = ("none" if one is type(None) else _kind(one) for one in typing.get_args(annotation))
        return " | ".join(dict.fromkeys(kinds))
    if origin is typing.Annotated:
        return _kind(typing.get_args(annotation)[0])
    if origin is not None:
        return "mapping" if origin is dict else "list"
    words = {int: "number", float: "number", str: "text", bool: "true | false"}
    name = getattr(annotation, "__name__", str(annotation))
    return words.get(annotation, re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower())


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "(must be given)"
    value = field.get_default(call_default_factory=True, validated_data={})
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    kind = _kind_of(field)
    if kind == "size":
        return show_bytes(value)
    if kind == "time":
        return f"{value:g}s"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, BaseModel):
        return ", ".join(f"{name}: {one}" for name, one in value if one is not None)
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return "{}" if value == {} else str(value)
