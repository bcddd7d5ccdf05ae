"""What has to be pasted into configuration files to go from one configuration of a gateway to
another.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final

from weighbridge.common.record import Record
from weighbridge.gateways.file_grammar import FileGrammar, OtherGrammar
from weighbridge.gateways.front import FRONTS
from weighbridge.gateways.gateway import STORES, Rendered

_SECRET = "***"  # noqa: S105 - what stands for one
_KEYS = "keyring"
_NUMBERED = re.compile(r"-\d+(?=\.conf$)")
_WIDE = 100
_OTHER: Final = OtherGrammar()

_Path = tuple[tuple[str, int], ...]
"""Containers from the outermost on: the line that begins each, and its number among those that
begin alike.
"""


class FragmentPart(Record):
    """What of one kind of file is to be otherwise, as a text that its program reads: lines, and
    comments that say where.
    """

    name: str
    """What the file is called: `ceph.conf`, `proxy-server.conf`."""
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


def fragments(
    before: Sequence[Rendered], after: Sequence[Rendered], evidence: Sequence[str] = ()
) -> tuple[FragmentPart, ...]:
    """A piece for each name of file in which these configurations differ, in the order of `after`;
    none when they do not.

    Only lines that differ are in it, each once under its section or container, with the line it
    comes in place of as a comment; lines that go are comments. Files of the same name on several
    hosts, and numbered ones such as proxy-server-1.conf, are one piece; what not all of them want
    says which do. `evidence` are lines of comment at the top. No line with a secret is told.
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
        grammar = _grammar(name)
        for path, swap in _swaps(_parsed(grammar, old), _parsed(grammar, new), grammar):
            places.setdefault(path, _Place()).swaps.setdefault(swap, []).append(one)
    return tuple(
        FragmentPart(name=name, text=_text(name, places, sharing[name], evidence))
        for name, places in files.items()
        if places
    )


def _name(one: Rendered) -> str:
    return _NUMBERED.sub("", PurePosixPath(one.path).name)


def _grammar(name: str) -> FileGrammar:
    """How a file of this name is read, as its store or front declares it."""
    declared = [grammar for store in STORES.values() for grammar in store.grammars]
    declared += [grammar for front in FRONTS.values() for grammar in front.grammars]
    return next((grammar for grammar in declared if grammar.is_of(name)), _OTHER)


def _parsed(grammar: FileGrammar, text: str) -> dict[_Path, list[str]]:
    """Lines by container, in the order in which containers begin, without comments and empty
    lines.
    """
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
        what = grammar.reads(raw)
        if what == "end":
            stack.pop()
        elif what == "transparent":
            stack.append(stack[-1])
        elif what == "container":
            stack.append(begin(stack[-1], line))
        elif what == "section":
            stack[-1] = begin((), line)
        else:
            found[stack[-1]].append(line)
    return found


def _swaps(
    before: Mapping[_Path, Sequence[str]],
    after: Mapping[_Path, Sequence[str]],
    grammar: FileGrammar,
) -> Iterator[tuple[_Path, _Swap]]:
    for path, lines in after.items():
        old = before.get(path, ())
        gone = [line for line in (Counter(old) - Counter(lines)).elements() if _SECRET not in line]
        for line in (Counter(lines) - Counter(old)).elements():
            if _SECRET in line:
                continue
            same = next((one for one in gone if grammar.about(one) == grammar.about(line)), None)
            if same is not None:
                gone.remove(same)
            yield path, _Swap(same, line)
        yield from ((path, _Swap(line, None)) for line in gone)
    for path in before:
        if path and path not in after and path[:-1] in after:
            yield path[:-1], _Swap(f"{path[-1][0]} with all that is in it", None)


def _text(name: str, places: Mapping[_Path, _Place], files: int, evidence: Sequence[str]) -> str:
    grammar = _grammar(name)
    lines = [f"# {name}"]
    for one in evidence:
        lines += [_comment(line) for line in one.splitlines()]
    lines += _wrapped(grammar.where)
    open_: _Path = ()
    for path in _ordered(places):
        shared = next(
            (
                number
                for number, pair in enumerate(zip(open_, path, strict=False))
                if pair[0] != pair[1]
            ),
            None,
        )
        common = min(len(open_), len(path)) if shared is None else shared
        lines += _closed(open_, common, grammar)
        if len(path) <= 1:
            lines.append("")
        for depth in range(common, len(path)):
            lines.append(f"{grammar.indent * depth}{path[depth][0]}")
        open_ = path
        lines += _told(places[path], grammar, path, files)
    lines += _closed(open_, 0, grammar)
    return "\n".join(lines) + "\n"


def _ordered(places: Mapping[_Path, _Place]) -> list[_Path]:
    """Each container followed by those within it; what is in none comes first.

    Otherwise as they are.
    """
    heads = list(dict.fromkeys(path[:depth] for path in places for depth in range(len(path) + 1)))
    number = {head: index for index, head in enumerate(heads)}
    return sorted(
        places, key=lambda path: [number[path[: depth + 1]] for depth in range(len(path))]
    )


def _closed(path: _Path, depth: int, grammar: FileGrammar) -> list[str]:
    """The ends of those containers of a path that are deeper than `depth`."""
    ends = ((at, grammar.ending(path[at][0])) for at in reversed(range(depth, len(path))))
    return [f"{grammar.indent * at}{end}" for at, end in ends if end]


def _told(place: _Place, grammar: FileGrammar, path: _Path, files: int) -> Iterator[str]:
    indent = grammar.indent * len(path)
    note = grammar.note(path[-1][0]) if path else ""
    if note:
        yield f"{indent}# {note}"
    for swap, wanting in place.swaps.items():
        if len(wanting) < files:
            yield (
                f"{indent}# only "
                f"{', '.join(dict.fromkeys(f'{one.host}:{one.path}' for one in wanting))}:"
            )
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
