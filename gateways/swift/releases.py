"""Releases of Swift, how they differ, and what the one on a host knows."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Any, Final

from pydantic import Field

from weighbridge.common.document import did_you_mean
from weighbridge.common.endpoint import S3Way
from weighbridge.common.host import Host
from weighbridge.common.record import Record
from weighbridge.gateways import program
from weighbridge.gateways.config_text import OptionValue, Sections, sections_of
from weighbridge.gateways.front import store_image
from weighbridge.gateways.gateway import KnownRelease
from weighbridge.gateways.running import HostFile
from weighbridge.gateways.swift.settings import SwiftSettings


class SwiftRelease(KnownRelease):
    """A release of Swift as packaged by Debian or Ubuntu."""

    lacks_operations: Mapping[str, str] = Field(default_factory=dict)
    """Operations of suites that its Swift API does not do, and what it does instead."""


_ALL: Final[Mapping[S3Way, str]] = {
    "anonymous requests": "s3api without ACLs refuses requests without a signature (400)",
    "sse-c": "s3api answers 200 to SSE-C, but stores objects unencrypted, readable without the key",
    "sse-s3": "s3api does not support SSE-S3 (501)",
}
_NO_CHUNKS: Final[Mapping[S3Way, str]] = {
    **_ALL,
    "signed chunks": "this s3api does not support signed chunks (501)",
    "trailers": "this s3api does not support checksums in trailers (501)",
}

_NO_TAGS: Final = {
    "tag": "s3api does not support tags of objects (501)",
}
_NO_CONDITIONS: Final = {
    **_NO_TAGS,
    **dict.fromkeys(
        ("write-if-none-match", "rewrite-if-none-match"),
        "this s3api refuses writes with If-None-Match (501)",
    ),
}

# Both came with 2.34.
_NO_PARTS: Final = {
    **_NO_CONDITIONS,
    "read-part": "this s3api does not support partNumber of a GET (405)",
}
_IGNORES_PARTS: Final = {
    "read-part": "this Swift ignores part-number, and sends the complete object",
}


def _release(name: str, suite: str, **known: Any) -> SwiftRelease:
    return SwiftRelease(image=store_image("swift", name, suite), **known)


_before_34: Final = partial(
    _release,
    lacks=frozenset({"etag_validate_pct"}),
    s3_lacks=_NO_CHUNKS,
    s3_lacks_operations=_NO_PARTS,
    lacks_operations=_IGNORES_PARTS,
)
_KNOWN: Final = (
    _before_34("swift-2.26", "bullseye"),
    _before_34("swift-2.29", "jammy", settings_of="swift-2.26"),
    _before_34("swift-2.30", "bookworm"),
    _before_34("swift-2.33", "noble", settings_of="swift-2.30"),
    _release("swift-2.35", "trixie", s3_lacks=_ALL, s3_lacks_operations=_NO_CONDITIONS),
    _release("swift-2.38", "sid", s3_lacks=_ALL, s3_lacks_operations=_NO_TAGS),
)
RELEASES: Final = {one.image.name: one for one in _KNOWN}
"""Releases of Swift by the name that layouts use."""


# Swift ignores options that it does not know.

_USERS: Final = re.compile(r"user(64)?_.+_.+")
_INDEX: Final = re.compile(r"(\d+|<[^>]*>)$")
_CONF: Final = re.compile(r"/etc/swift/(proxy|account|container|object)-server(-\d+)?\.conf")
_OWN_EGG: Final = "egg:swift#"
_ALWAYS: Final = frozenset({"use", "pipeline"})
SWIFT_HOST: Final = "weighbridge.gateways.swift.swift_host"


def ask(
    host: Host,
    command: str,
    order: object = None,
    *,
    env: Mapping[str, str] | None = None,
    timeout_s: float = 60,
) -> Any:
    """The answer of `swift_host` there. Raises CommandFailed."""
    argv = (*program.ship(host, SWIFT_HOST), command)
    return json.loads(host.run(argv, stdin=json.dumps(order), env=env, timeout_s=timeout_s).stdout)


class Known(Record):
    """What a release knows, each by server: see `swift_host known`."""

    samples: dict[str, dict[str, frozenset[str]]]
    """Option names by section of the sample file."""
    uses: dict[str, dict[str, str]]
    """The `use` of the sample file's sections."""
    read: dict[str, frozenset[str]]
    """Names that the code reads from its configuration."""

    @classmethod
    def by(cls, host: Host) -> Known:
        """What the release on this host knows. Raises CommandFailed."""
        return cls.model_validate(ask(host, "known"))

    def faults(
        self, files: Iterable[HostFile], given: Mapping[str, Mapping[str, Collection[str]]] | None
    ) -> list[str]:
        """Faults of servers' files, a line each: unknown options and sections, undefined filters.

        `given`: options by section by server that are refused if they are unknown, where the files
        were made for another release; None: all.
        """
        found = []
        for server, sections in _servers(files):
            for section, options in sections.items():
                if self._names(server, section, options.get("use")) is None:
                    hint = did_you_mean(section, sorted(self.samples[server]), known=False)
                    place = f"{server}-server.conf [{section}]"
                    found.append(f"{place}: Swift has no such section{hint}")
            mine = None if given is None else given.get(server, {})
            for (section, name), fault in self._unknown(server, sections).items():
                if mine is None or name in mine.get(section, ()):
                    found.append(fault)
            found += _undefined(server, sections)
        return found

    def ignored(self, files: Iterable[HostFile]) -> list[str]:
        """Sentences about options that Swift does not know: it ignores them silently."""
        unknown = [self._unknown(*one).values() for one in _servers(files)]
        return list(dict.fromkeys(chain.from_iterable(unknown)))

    def _unknown(self, server: str, sections: Sections) -> dict[tuple[str, str], str]:
        found = {}
        for section, options in sections.items():
            names = self._names(server, section, options.get("use")) or frozenset()
            for name in options if names else ():
                word = name.removeprefix("set ").strip()
                user = options.get("use") == f"{_OWN_EGG}tempauth" and _USERS.fullmatch(word)
                if word not in names and not user:
                    hint = did_you_mean(word, sorted(names), known=False)
                    place = f"{server}-server.conf [{section}]"
                    found[section, name] = f"{place}: Swift does not know the option {word!r}{hint}"
        return found

    def _names(self, server: str, section: str, use: OptionValue | None) -> frozenset[str] | None:
        """Options that a section may have; None: unknown; empty: another program's, not checked."""
        samples = self.samples[server]
        kind, colon, _ = section.partition(":")
        if colon and kind in {"filter", "app"} and use is not None:
            alike = [name for name, other in self.uses[server].items() if other == use]
            if not alike:
                return None if str(use).startswith(_OWN_EGG) else frozenset()
        else:
            # Storage policy sections are named by a number: the sample has one of them.
            alike = [name for name in samples if _INDEX.sub("", name) == _INDEX.sub("", section)]
        if not alike:
            return None
        sampled = [samples[name] for name in (*alike, "DEFAULT")]
        return _ALWAYS.union(self.read[server], *sampled)


def _servers(files: Iterable[HostFile]) -> Iterator[tuple[str, Sections]]:
    """The files that configure a Swift server, each with its server."""
    for file in files:
        if match := _CONF.fullmatch(file.path):
            yield match[1], sections_of(file.text)


def _undefined(server: str, sections: Sections) -> Iterator[str]:
    heads = [section.partition(":") for section in sections]
    defined = {name for kind, _, name in heads if kind in {"filter", "app"}}
    for word in str(sections.get("pipeline:main", {}).get("pipeline", "")).split():
        if word not in defined:
            place = f"{server}-server.conf [pipeline:main]"
            hint = did_you_mean(word, sorted(defined))
            yield f"{place}: {word!r} has no section [filter:{word}]{hint}"


def code_faults(host: Host, settings: SwiftSettings) -> list[str]:
    """Why the host's PyECLib cannot code as the settings say, by line. Raises CommandFailed."""
    ec = settings.ec
    if ec is None:
        return []
    found = ask(host, "code", {"type": ec.type, "k": ec.k, "m": ec.m})
    known = [str(name) for name in found["known"]]
    if ec.type not in known:
        return [f"settings.ec.type: no {ec.type!r}{did_you_mean(ec.type, known)}"]
    if found["why"]:
        return [f"settings.ec: {ec.type} cannot do k {ec.k}, m {ec.m}: {found['why']}"]
    return []
