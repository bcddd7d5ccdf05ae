"""Gateways that already run, as a command line names them: `--s3 a=https://... --swift b=...`.

They become layouts by changing the shipped layout of such gateways, so that they are validated as
a file is, and their faults are reported where they were given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from weighbridge.common.document import Document, DocumentError, Fault, did_you_mean
from weighbridge.gateways.existing.on_the_line import settings_of
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.loader import Planned, changed_document, shipped_layouts

TEMPLATE: Final = "existing"
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
        """Whether the line names endpoints."""
        return bool(self.s3 or self.swift)

    @property
    def apis(self) -> tuple[str, ...]:
        """The APIs of its endpoints."""
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
    """The layouts of a line, in order; endpoints of one name are the APIs of one layout.

    Raises DocumentError with all faults at once.
    """
    ends = [_Named("--s3", "s3", text) for text in line.s3]
    ends += [_Named("--swift", "swift", text) for text in line.swift]
    faults = [fault for one in ends if (fault := _unnamed(one))]
    faults += _doubles(ends)
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
    """Why an option is not NAME=URL."""
    if "=" not in one.text or not one.name or "/" in one.name:
        return one.fault("expected NAME=URL, such as a=https://store.example:8443")
    return None if one.url else one.fault("the URL is missing", of_url=True)


def _doubles(ends: Sequence[_Named]) -> list[Fault]:
    """Names that two endpoints of one API have."""
    keys = [(one.api, one.name) for one in ends]
    return [
        one.fault(
            f"{one.name!r} has a URL already: choose another name, or list several endpoints of "
            "one gateway in a layout file"
        )
        for number, one in enumerate(ends)
        if keys[number] in keys[:number]
    ]


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
    """The layout of one name. Raises DocumentError."""
    document = Document.read(shipped_layouts()[TEMPLATE])
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
