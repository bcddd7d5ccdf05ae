"""Checks that a release of Swift knows its options: it ignores unknown ones silently."""

from __future__ import annotations

import configparser
import json
import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from weighbridge.common.document import did_you_mean
from weighbridge.common.host import Host
from weighbridge.common.record import Record
from weighbridge.gateways import program

_USERS = re.compile(r"user(64)?_.+_.+")
_INDEX = re.compile(r"(\d+|<[^>]*>)$")
_OWN_EGG = "egg:swift#"
_ALWAYS = frozenset({"use", "pipeline"})


class Known(Record):
    """The output of `swift_host known` for a release, each by server."""

    samples: dict[str, dict[str, frozenset[str]]]
    """Option names by section of the sample file."""
    uses: dict[str, dict[str, str]]
    """The `use` of the sample file's sections."""
    read: dict[str, frozenset[str]]
    """Names that the code reads from its configuration."""


def faults(
    known: Known, server: str, text: str, mine: Mapping[str, Collection[str]] | None = None
) -> list[str]:
    """Faults of a server's file, a line each: unknown options and sections, undefined filters.

    `mine`: options by section which are refused if they are unknown, where the file was made for
    another release; None: all.
    """
    parser = _parse(text)
    found = [
        f"{server}-server.conf [{section}]: Swift has no such section"
        + did_you_mean(section, sorted(known.samples[server]), known=False)
        for section in parser.sections()
        if _names(known, server, section, parser[section].get("use")) is None
    ]
    found += [
        said
        for (section, name), said in unknown(known, server, text).items()
        if mine is None or name in mine.get(section, ())
    ]
    return found + _pipeline(parser, server)


def unknown(known: Known, server: str, text: str) -> dict[tuple[str, str], str]:
    """Options of a server's file that Swift does not know, by section and name, each with a
    sentence: Swift ignores them silently.
    """
    found = {}
    parser = _parse(text)
    for section in parser.sections():
        given = parser[section]
        names = _names(known, server, section, given.get("use"))
        if not names:
            continue
        for name in given:
            word = name.removeprefix("set ").strip()
            if word not in names and not (
                given.get("use") == f"{_OWN_EGG}tempauth" and _USERS.fullmatch(word)
            ):
                meant = did_you_mean(word, sorted(names), known=False)
                place = f"{server}-server.conf [{section}]"
                found[section, name] = f"{place}: Swift does not know the option {word!r}{meant}"
    return found


def _names(known: Known, server: str, section: str, use: str | None) -> frozenset[str] | None:
    """Options that a section may have; None: unknown; empty: another program's, not checked."""
    samples = known.samples[server]
    kind, colon, _ = section.partition(":")
    if colon and kind in {"filter", "app"} and use is not None:
        alike = [name for name, other in known.uses[server].items() if other == use]
        if not alike:
            return None if use.startswith(_OWN_EGG) else frozenset()
    else:
        # Storage policy sections are named by a number: the sample has one of them.
        alike = [name for name in samples if _INDEX.sub("", name) == _INDEX.sub("", section)]
    if not alike:
        return None
    sampled = [samples[name] for name in (*alike, "DEFAULT")]
    return _ALWAYS.union(known.read[server], *sampled)


def _pipeline(parser: configparser.RawConfigParser, server: str) -> list[str]:
    words = parser.get("pipeline:main", "pipeline", fallback="").split()
    defined = {
        section.partition(":")[2]
        for section in parser.sections()
        if section.startswith(("filter:", "app:"))
    }
    return [
        f"{server}-server.conf [pipeline:main]: {word!r} has no section "
        f"[filter:{word}]{did_you_mean(word, sorted(defined))}"
        for word in words
        if word not in defined
    ]


def _parse(text: str) -> configparser.RawConfigParser:
    # [DEFAULT] is treated like other sections: its options must not appear in each of them.
    parser = configparser.RawConfigParser(
        default_section="", delimiters=("=",), comment_prefixes=("#",), strict=True
    )
    parser.optionxform = str  # type: ignore[method-assign,assignment]  # names keep their case
    parser.read_string(text)
    return parser


def own_files(texts: Mapping[str, str]) -> list[tuple[str, str]]:
    """(server, text) of a host's files that configure a Swift server."""
    matched = (
        (
            re.fullmatch(r"/etc/swift/(proxy|account|container|object)-server(-\d+)?\.conf", path),
            text,
        )
        for path, text in texts.items()
    )
    return [(match[1], text) for match, text in matched if match]


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


def known_to(host: Host) -> Known:
    """What the release on this host knows. Raises CommandFailed."""
    return Known.model_validate(ask(host, "known"))


def ignored(known: Known, texts: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Sentences about what Swift does not know in the files, by path, by host."""
    lines = [
        said
        for own in texts.values()
        for server, text in own_files(own)
        for said in unknown(known, server, text).values()
    ]
    return list(dict.fromkeys(lines))
