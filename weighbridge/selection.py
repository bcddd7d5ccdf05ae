"""What a command line names, read and checked: all faults of all files, before anything starts."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from weighbridge.common.document import Document, DocumentError, Fault, did_you_mean
from weighbridge.common.errors import UsageError
from weighbridge.common.paths import is_file
from weighbridge.environment import place
from weighbridge.gateways.existing.credentials import settings_of
from weighbridge.gateways.gateway import Say
from weighbridge.suites import Suite
from weighbridge.suites import loader as suite_files
from weighbridge.suites.overrides import NONE, Overrides
from weighbridge.topologies import auto, loader
from weighbridge.topologies.deployment import Look, StateFolders, build_images, preflight
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.loader import (
    Planned,
    Reference,
    changed_document,
    parse,
    path_of,
    shipped_layouts,
)

# Gateways that already run, as a command line names them: `--s3 a=https://... --swift b=...`.
#
# They become layouts by changing the shipped layout of such gateways, so that they are validated
# as a file is, and their faults are reported where they were given.


ENDPOINTS_TEMPLATE: Final = "existing"
"""The shipped layout that is changed."""
HARDWARE: Final = "this-machine"
"""The shipped hardware of such layouts."""
SUITE: Final = "endpoints"
"""The shipped suite that is replayed on them if none is named."""
_WORDS: Final[Mapping[str, str]] = {"s3": "S3", "swift": "Swift"}


@dataclass(frozen=True)
class EndpointLine:
    """The options as they were given: `NAME=URL`, and of profiles also `NAME` for all."""

    s3: tuple[str, ...] = ()
    swift: tuple[str, ...] = ()
    profiles: tuple[str, ...] = ()

    @property
    def given(self) -> bool:
        return bool(self.s3 or self.swift)

    @property
    def apis(self) -> tuple[str, ...]:
        return ("s3",) * bool(self.s3) + ("swift",) * bool(self.swift)


NO_ENDPOINTS: Final = EndpointLine()


@dataclass(frozen=True)
class _Named:
    """One endpoint: its option and API, its name and its URL."""

    option: str
    api: str
    text: str

    @property
    def name(self) -> str:
        return self.text.partition("=")[0]

    @property
    def url(self) -> str:
        return self.text.partition("=")[2]

    def fault(self, message: str = "", *, of_url: bool = False) -> Fault:
        column = len(self.name) + 2 if of_url else 1
        return Fault(self.option, 1, column, message, self.text)


def endpoint_layouts(
    line: EndpointLine, hardware: Hardware, environment: Mapping[str, str]
) -> tuple[Planned, ...]:
    """A line's layouts; endpoints of one name are one layout's. Raises DocumentError."""
    ends = [_Named("--s3", "s3", text) for text in line.s3]
    ends += [_Named("--swift", "swift", text) for text in line.swift]
    faults = [fault for one in ends if (fault := _unnamed(one))]
    seen: set[tuple[str, str]] = set()
    for one in ends:
        if (one.api, one.name) in seen:
            faults.append(
                one.fault(
                    f"{one.name!r} has a URL already: choose another name, or list several "
                    "endpoints of one gateway in a layout file"
                )
            )
        seen.add((one.api, one.name))
    named = [one for one in ends if not _unnamed(one)]
    names = list(dict.fromkeys(one.name for one in named if one.api == "s3"))
    profiles = _profiles(line, names, faults)
    parts_of: dict[str, dict[str, _Named]] = {}
    for one in named:
        parts_of.setdefault(one.name, {}).setdefault(one.api, one)
    planned = []
    for name, parts in parts_of.items():
        try:
            planned.append(_layout(name, parts, profiles.get(name), hardware, environment))
        except DocumentError as error:
            faults += error.faults
    if faults:
        raise DocumentError(list(dict.fromkeys(faults)))
    return tuple(planned)


def _unnamed(one: _Named) -> Fault | None:
    if "=" not in one.text or not one.name or "/" in one.name:
        return one.fault("expected NAME=URL, such as a=https://store.example:8443")
    return None if one.url else one.fault("the URL is missing", of_url=True)


def _profiles(
    line: EndpointLine, names: Sequence[str], faults: list[Fault]
) -> dict[str, tuple[str, Fault]]:
    """The AWS profile of each S3 endpoint that has one, with where it was given."""
    found: dict[str, tuple[str, Fault]] = {}
    for text in line.profiles:
        name, equals, profile = text.partition("=")
        origin = Fault("--profile", 1, len(name) + 2 if equals else 1, "", text)
        if not equals:
            found = dict.fromkeys(names, (text, origin)) | found
        elif name in names:
            found[name] = (profile, origin)
        else:
            message = f"there is no --s3 {name}=URL{did_you_mean(name, names)}"
            faults.append(Fault("--profile", 1, 1, message, text))
    return found


def _layout(
    name: str,
    parts: Mapping[str, _Named],
    profile: tuple[str, Fault] | None,
    hardware: Hardware,
    environment: Mapping[str, str],
) -> Planned:
    document = Document.read(shipped_layouts()[ENDPOINTS_TEMPLATE])
    first = next(iter(parts.values()))
    about = " and ".join(f"{_WORDS[api]} at {one.url}" for api, one in parts.items())
    document.change(("name",), name, first.fault())
    document.change(("about",), about, first.fault())
    document.change(("settings",), {"about": about}, first.fault())
    for api, one in parts.items():
        found = settings_of(api, name, one.url, environment)
        document.change(("settings", api), dict(found.given), one.fault(of_url=True))
        for key, (variable, value) in found.by_variable.items():
            origin = Fault(f"${variable}", 1, 1, "", value)
            document.change(("settings", api, key), value, origin)
    if profile is not None:
        word, origin = profile
        document.change(("settings", "s3", "credentials"), f"profile {word}", origin)
    return changed_document(document, hardware)


QUICK: Final = "quick"
"""The default suite, except for endpoints."""
AUTO: Final = "auto"
"""The default hardware: lab hosts made from this machine."""
TEMPLATE: Final = "lab-disks"
"""The shipped hardware that `auto` scales."""
Read = TypeVar("Read")

PLAIN: Final = ("rgw-beast", "swift")
"""Layouts whose release hosts are checked for if none is named."""


@dataclass(frozen=True)
class Selection:
    """A suite, its hardware and its layouts, checked against each other."""

    suite: Suite
    suite_text: str
    """The suite's file, or that of what replaces it."""
    hardware: Hardware
    layouts: tuple[Planned, ...]


def hardware_named(name: str | None) -> Hardware:
    """The hardware of a path or a shipped name, or made from this machine (`auto`, or None).

    What `auto` is called here, such as `auto-2`, is another name of it: reports print commands.

    Raises UsageError or DocumentError, for `auto` MissingPrerequisite without a folder for hosts.
    """
    shipped = loader.shipped_hardware()
    if name is None or auto.NAME.fullmatch(name):
        template = loader.load_hardware(shipped[TEMPLATE])
        made = auto.made_for(auto.this_machine(place().home), template)
        if name not in {None, AUTO, made.name}:
            raise UsageError(
                f"hardware {name} was made from another machine; this one's is {made.name}",
                advice=f"Use --hardware {AUTO}, or a file with the same hosts for both machines.",
            )
        return made
    return loader.load_hardware(loader.find(name, shipped, "hardware"))


def layout_named(name: str, hardware: Hardware | None) -> Planned:
    """A reference's layout, checked against known hardware. Raises UsageError or DocumentError."""
    path, reference = _layout_file(name)
    return loader.load_layout(path, hardware, reference)


def layout_for(suite: Suite | None, name: str, hardware: Hardware) -> Planned:
    """A reference's layout; for faults with its gateway's `fault_settings` where the reference sets
    none, under its own name. Raises as `layout_named`.
    """
    plain = layout_named(name, hardware)
    if suite is None or all(one.fault is None for one in suite.workloads):
        return plain
    path, reference = _layout_file(name)
    kind = type(plain.gateway)
    given = {change.path for change in reference.changes}
    changes = {
        key: value
        for key, value in kind.fault_settings.items()
        # What is given sets all that is below it.
        if not any(("settings", *path_of(key, kind.Settings))[: len(one)] == one for one in given)
    }
    if not changes:
        return plain
    origin = Fault("layout", 1, 1, "", reference.text)
    return loader.changed_layout(
        path, hardware, changes, origin, reference=reference, name=plain.layout.name
    )


def _layout_file(name: str) -> tuple[Path, Reference]:
    # A file's own name may have a colon or an @ in it.
    reference = Reference(name, name) if is_file(Path(name)) else parse(name)
    return loader.find(reference.name, loader.shipped_layouts(), "layout"), reference


def fitting(hardware: Hardware) -> tuple[Planned, ...]:
    """Layouts that ship and fit the hosts, each gateway's of one release: that of `PLAIN`, else one
    that fits, since a host has one version of a program.
    """
    found: dict[str, Planned] = {}
    for name, path in loader.shipped_layouts().items():
        try:
            planned = loader.load_layout(path, hardware)
        except DocumentError:
            continue  # it needs hosts or disks that this hardware lacks
        if not planned.gateway.already_runs:
            found[name] = planned
    first = {
        one.layout.gateway: one.layout.release
        for one in (*reversed(found.values()), *(found[n] for n in PLAIN if n in found))
    }
    return tuple(one for one in found.values() if one.layout.release == first[one.layout.gateway])


def select(
    suite: str | None,
    layouts: Sequence[str],
    hardware: str | None,
    *,
    line: EndpointLine = NO_ENDPOINTS,
    overrides: Overrides = NONE,
) -> Selection:
    """Read all that is named: files, and endpoints of a line, which come before the layouts.

    `overrides` replace what the suite says. Without names: with endpoints their suite, hardware and
    APIs, and no other layouts; else `quick`, `auto`, and the suite's layouts. Raises DocumentError
    or UsageError with the faults of all of them.
    """
    refused: list[UsageError] = []
    if line.given:
        hardware = hardware or HARDWARE
        overrides = replace(overrides, api=overrides.api or ",".join(line.apis))
    suite_path = _tried(
        partial(suite_files.find, suite or (SUITE if line.given else QUICK)), refused
    )
    read = None
    if suite_path is not None:
        read = _tried(partial(suite_files.load_changed, suite_path, overrides), refused)
    chosen, text = read or (None, "")
    hosts = _tried(partial(hardware_named, hardware), refused)
    planned: list[Planned] = []
    if line.given and hosts is not None:
        planned += _tried(partial(endpoint_layouts, line, hosts, os.environ), refused) or ()
    usual = () if line.given or chosen is None else chosen.layouts
    for name in list(layouts) or list(usual):
        # Without hardware, whether a layout fits is not known; whether it is valid is.
        fitted = None if hosts is None else partial(layout_for, chosen, name, hosts)
        layout = _tried(fitted or partial(layout_named, name, None), refused)
        planned += [] if layout is None else [layout]
    if refused or chosen is None or hosts is None:
        raise together(refused)
    return Selection(chosen, text, hosts, tuple(planned))


def on_sized_hosts(
    layouts: Sequence[Planned], hardware: Hardware
) -> tuple[Hardware, tuple[Planned, ...]]:
    """Hardware and layouts by hosts' sizes, real ones asked. Raises TargetError, DocumentError."""
    known = hardware.of.sized(hardware)
    if known is hardware:
        return hardware, tuple(layouts)
    found = [loader.checked_again(one.layout, known, hardware.name) for one in layouts]
    return known, tuple(
        replace(new, text=old.text) for new, old in zip(found, layouts, strict=True)
    )


def size_remark(hardware: Hardware) -> str:
    """What to know of settings shown for real hosts of unknown size; empty: it is known."""
    names = loader.unsized(hardware)
    if not names:
        return ""
    return (
        f"the size of {', '.join(names)} is not known until they are asked: settings that follow "
        "it are those of hosts with one CPU here. Write `machine: {cpus: 40, memory: 384GiB}` "
        "below each; `weighbridge doctor --hardware FILE` shows it"
    )


def _tried(read: Callable[[], Read], refused: list[UsageError]) -> Read | None:
    try:
        return read()
    except UsageError as error:
        refused.append(error)
        return None


def together(refused: Sequence[UsageError]) -> UsageError:
    """Several refusals as one error; faults in files stay faults."""
    if len(refused) == 1:
        return refused[0]
    documents = [error for error in refused if isinstance(error, DocumentError)]
    if len(documents) == len(refused):
        return DocumentError([fault for error in documents for fault in error.faults])
    advice = dict.fromkeys(error.advice for error in refused if error.advice)
    return UsageError(
        "\n".join(dict.fromkeys(error.message for error in refused)), advice="\n".join(advice)
    )


def check(
    layouts: Sequence[Planned],
    hardware: Hardware,
    place: StateFolders,
    say: Say,
    *,
    attest: bool = False,
    look: Look | None = None,
) -> None:
    """Have each layout's programs check it, then `look`; builds missing images, `attest`: of tools.
    Raises UsageError with all faults, CommandFailed.
    """
    build_images(layouts, hardware, place, say, attest=attest)
    refused: dict[str, list[str]] = {}
    for one in layouts:
        try:
            preflight(one, hardware, place, say, attest=attest, look=look)
        except UsageError as error:
            refused.setdefault(str(error), []).append(one.layout.name)
    if refused:
        raise UsageError(
            "\n".join(f"{', '.join(names)}: {message}" for message, names in refused.items())
        )
