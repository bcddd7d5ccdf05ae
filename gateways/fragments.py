"""What has to be pasted into configuration files to go from one configuration of a gateway to another."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Literal

from weighbridge.common.record import Record
from weighbridge.gateways.gateway import Rendered

FileKind = Literal["ceph", "swift", "haproxy", "apache", "other"]

_SECRET = "***"  # noqa: S105 - what stands for one
_KEYS = "keyring"
_NUMBERED = re.compile(r"-\d+(?=\.conf$)")
_BARE = re.compile(r"<IfDefine !WEIGHBRIDGE_\w+>")
"""A container that the suite itself asks Apache by: what is in it is meant for the container around it."""
_WIDE = 100

# Words that say what a line is about only together with the next one.
_OF_TWO: Mapping[FileKind, frozenset[str]] = {
    "haproxy": frozenset({"timeout", "option", "no", "stats", "server", "http-check", "bind"}),
    "apache": frozenset({"SetEnv", "BalancerMember", "CustomLog"}),
    "other": frozenset({"origin"}),
}

_WHERE: Mapping[FileKind, str] = {
    "ceph": "Where: at the end of ceph.conf, or in the sections that are there: of two lines for an option the later one holds. "
    "A daemon's own section holds against a general one such as [client], wherever it stands. "
    "Daemons read the file when they start.",
    "swift": "Where: in the sections of these names that are there, in place of their lines for the same options: Swift refuses "
    "a file in which a section or an option stands twice. Its servers read the file when they start.",
    "haproxy": "Where: in the sections of these names that are there, in place of lines that begin with the same words: HAProxy "
    "refuses a second section of a name. It reads the file when it starts, or is told to reload.",
    "apache": "Where: what is in no container, at the end of the configuration, where the later line holds (but an MPM is loaded "
    "in place of the other); what is in one, in the container that is there, since of two virtual hosts of an address only the "
    "first is asked. ServerLimit, ThreadLimit and another MPM want a stop and a start, not a reload.",
    "other": "Where: in place of the lines that begin with the same words. Its daemon reads the file when it starts.",
}

_Path = tuple[tuple[str, int], ...]
"""Containers from the outermost on: the line that begins each, and its number among those that begin alike."""


class FragmentPart(Record):
    """What of one kind of file is to be otherwise, as a text that its program reads: lines, and comments that say where."""

    name: str
    """What the file is called: `ceph.conf`, `proxy-server.conf`."""
    kind: FileKind
    text: str


@dataclass(frozen=True)
class _Swap:
    """A line that comes in place of another; None: it is new, or it goes."""

    before: str | None
    after: str | None


@dataclass
class _Place:
    """The swaps of one container, each with the files that want it."""

    swaps: dict[_Swap, list[Rendered]] = field(default_factory=dict)


def fragments(before: Sequence[Rendered], after: Sequence[Rendered], evidence: Sequence[str] = ()) -> tuple[FragmentPart, ...]:
    """A piece for each name of file in which these configurations differ, in the order of `after`; none when they do not.

    Only lines that differ are in it, each once under its section or container, with the line it comes in place of as a comment;
    lines that go are comments. Files of the same name on several hosts, and numbered ones such as proxy-server-1.conf, are one
    piece; what not all of them want says which do. `evidence` are lines of comment at the top. No line with a secret is told.
    """
    known = {(one.host, one.path): one for one in before}
    wanted = {(one.host, one.path): one for one in after}
    files: dict[str, dict[_Path, _Place]] = {}
    sharing: Counter[str] = Counter()
    for key, one in {**wanted, **known}.items():
        name = _name(one)
        if name == _KEYS:
            continue
        sharing[name] += 1
        places = files.setdefault(name, {})
        old = known[key].text if key in known else ""
        new = wanted[key].text if key in wanted else ""
        for path, swap in _swaps(_parsed(_kind(name), old), _parsed(_kind(name), new), _kind(name)):
            places.setdefault(path, _Place()).swaps.setdefault(swap, []).append(one)
    return tuple(
        FragmentPart(name=name, kind=_kind(name), text=_text(name, places, sharing[name], evidence))
        for name, places in files.items()
        if places
    )


def _name(one: Rendered) -> str:
    return _NUMBERED.sub("", PurePosixPath(one.path).name)


def _kind(name: str) -> FileKind:
    known: Mapping[str, FileKind] = {"ceph.conf": "ceph", "haproxy.cfg": "haproxy", "apache.conf": "apache", "swift.conf": "swift"}
    return known.get(name, "swift" if name.endswith("-server.conf") else "other")


def _parsed(kind: FileKind, text: str) -> dict[_Path, list[str]]:
    """Lines by container, in the order in which containers begin, without comments and empty lines."""
    found: dict[_Path, list[str]] = {(): []}
    seen: Counter[tuple[_Path, str]] = Counter()
    stack: list[_Path] = [()]

    def begin(within: _Path, head: str) -> _Path:
        seen[within, head] += 1
        path = (*within, (head, seen[within, head]))
        found[path] = []
        return path

    for raw in text.splitlines():
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if kind == "apache" and line.startswith("</"):
            stack.pop()
        elif kind == "apache" and line.startswith("<"):
            stack.append(stack[-1] if _BARE.fullmatch(line) else begin(stack[-1], line))
        elif kind == "haproxy":
            if raw[0].isspace():
                found[stack[-1]].append(line)
            else:
                stack[-1] = begin((), line)
        elif kind != "apache" and line.startswith("[") and line.endswith("]"):
            stack[-1] = begin((), line)
        else:
            found[stack[-1]].append(line)
    return found


def _swaps(
    before: Mapping[_Path, Sequence[str]], after: Mapping[_Path, Sequence[str]], kind: FileKind
) -> Iterator[tuple[_Path, _Swap]]:
    for path, lines in after.items():
        old = before.get(path, ())
        gone = [line for line in (Counter(old) - Counter(lines)).elements() if _SECRET not in line]
        for line in (Counter(lines) - Counter(old)).elements():
            if _SECRET in line:
                continue
            same = next((one for one in gone if _called(one, kind) == _called(line, kind)), None)
            if same is not None:
                gone.remove(same)
            yield path, _Swap(same, line)
        yield from ((path, _Swap(line, None)) for line in gone)
    for path in before:
        if path and path not in after and path[:-1] in after:
            yield path[:-1], _Swap(f"{path[-1][0]} with all that is in it", None)


def _called(line: str, kind: FileKind) -> str:
    """What a line is about: one that comes in place of another is about the same."""
    if kind in {"ceph", "swift"}:
        return line.partition("=")[0].strip()
    words = line.split()
    if kind == "apache" and words[0] == "LoadModule":
        # One MPM comes in place of another, a module of any other kind beside the others.
        return "mpm" if words[1].startswith("mpm_") else words[1]
    return " ".join(words[: 1 + (words[0] in _OF_TWO.get(kind, ()))])


def _text(name: str, places: Mapping[_Path, _Place], files: int, evidence: Sequence[str]) -> str:
    kind = _kind(name)
    lines = [f"# {name}"]
    for one in evidence:
        lines += [_comment(line) for line in one.splitlines()]
    lines += _wrapped(_WHERE[kind])
    open_: _Path = ()
    for path in _ordered(places):
        shared = next((number for number, pair in enumerate(zip(open_, path, strict=False)) if pair[0] != pair[1]), None)
        common = min(len(open_), len(path)) if shared is None else shared
        lines += _closed(open_, common, kind)
        if len(path) <= 1:
            lines.append("")
        for depth in range(common, len(path)):
            lines.append(f"{_indent(depth, kind)}{path[depth][0]}")
        open_ = path
        lines += _told(places[path], _indent(len(path), kind), path, files)
    lines += _closed(open_, 0, kind)
    return "\n".join(lines) + "\n"


def _ordered(places: Mapping[_Path, _Place]) -> list[_Path]:
    """Each container followed by those within it; what is in none comes first. Otherwise as they are."""
    heads = list(dict.fromkeys(path[:depth] for path in places for depth in range(len(path) + 1)))
    number = {head: index for index, head in enumerate(heads)}
    return sorted(places, key=lambda path: [number[path[: depth + 1]] for depth in range(len(path))])


def _closed(path: _Path, depth: int, kind: FileKind) -> list[str]:
    """The ends of those containers of a path that are deeper than `depth`; only Apache's have any."""
    if kind != "apache":
        return []
    return [f"{_indent(at, kind)}</{path[at][0][1:].split()[0].rstrip('>')}>" for at in reversed(range(depth, len(path)))]


def _indent(depth: int, kind: FileKind) -> str:
    return {"apache": "  ", "haproxy": "    "}.get(kind, "") * depth


def _told(place: _Place, indent: str, path: _Path, files: int) -> Iterator[str]:
    if path and re.fullmatch(r"\[client\.rgw\..*\]", path[-1][0]):
        yield f"{indent}# the name of a radosgw of this layout: yours has one of its own"
    for swap, wanting in place.swaps.items():
        if len(wanting) < files:
            yield f"{indent}# only {', '.join(dict.fromkeys(f'{one.host}:{one.path}' for one in wanting))}:"
        if swap.after is None:
            yield indent + _comment(f"remove: {swap.before}")
            continue
        if swap.before is not None:
            yield indent + _comment(f"in place of: {swap.before}")
        yield f"{indent}{swap.after}"


def _comment(line: str) -> str:
    # A backslash at its end would make the next line part of the comment, for Apache and Ceph.
    return f"# {line.rstrip().rstrip(chr(92))}".rstrip()


def _wrapped(text: str) -> list[str]:
    lines = ["#"]
    for word in text.split():
        if len(lines[-1]) + 1 + len(word) > _WIDE:
            lines.append("#")
        lines[-1] += f" {word}"
    return lines
