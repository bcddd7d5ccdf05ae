"""Configuration fragments to paste, to get from one configuration of a gateway to another."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os.path import commonprefix
from pathlib import PurePosixPath
from typing import Final

from weighbridge.common.record import Record
from weighbridge.gateways.front import FRONTS
from weighbridge.gateways.gateway import STORES, Rendered, Site
from weighbridge.gateways.probe import FileGrammar, OtherGrammar

_SECRET = "***"  # noqa: S105 - a placeholder
_KEYRING = "keyring"
_NUMBERED = re.compile(r"-\d+(?=\.conf$)")
_WIDE = 100
_OTHER: Final = OtherGrammar()

_Path = tuple[tuple[str, int], ...]
"""Containers from the outermost inwards: the first line of each, numbered among equal ones."""


class FragmentPart(Record):
    """The changes to one kind of file, as text for its program with comments on where it goes."""

    name: str
    """The file name: `ceph.conf`, `proxy-server.conf`."""
    text: str


@dataclass(frozen=True)
class _Swap:
    """A line that replaces another; None: nothing is replaced, or the line is removed."""

    before: str | None
    after: str | None


_Place = dict[_Swap, list[Rendered]]
"""The changes of one container, each with the files it applies to."""


def fragments(
    before: Sequence[Rendered], after: Sequence[Rendered], evidence: Sequence[str] = ()
) -> tuple[FragmentPart, ...]:
    """One fragment for each file name in which the configurations differ, in the order of `after`.

    Only lines that differ are included, each once under its section or container, with the replaced
    line as a comment; removed lines are comments. Files of the same name on several hosts, and
    numbered ones such as proxy-server-1.conf, share one fragment; a line that applies only to some
    of them names these. `evidence` are comment lines at the top. Lines with a secret are left out.
    """
    known = {(one.host, one.path): one for one in before}
    wanted = {(one.host, one.path): one for one in after}
    files: dict[str, dict[_Path, _Place]] = {}
    sharing: Counter[str] = Counter()
    for key, one in {**wanted, **known}.items():
        name = _NUMBERED.sub("", PurePosixPath(one.path).name)
        if name == _KEYRING:
            continue
        sharing[name] += 1
        places = files.setdefault(name, {})
        old = known[key].text if key in known else ""
        new = wanted[key].text if key in wanted else ""
        grammar = _grammar(name)
        for path, swap in _swaps(_parsed(grammar, old), _parsed(grammar, new), grammar):
            places.setdefault(path, {}).setdefault(swap, []).append(one)
    return tuple(
        FragmentPart(name=name, text=_text(name, places, sharing[name], evidence))
        for name, places in files.items()
        if places
    )


def without_addresses(text: str, sites: Mapping[str, Site]) -> str:
    """A text that has `ADDRESS-OF-gateway-1` for the address of each host: only a lab has those."""
    for name, site in sites.items():
        own = rf"(?<![\w.]){re.escape(site.address)}(?![\w.]*\w)"
        text = re.sub(own, f"ADDRESS-OF-{name}", text)
    return text


def _grammar(name: str) -> FileGrammar:
    declared = [grammar for store in STORES.values() for grammar in store.grammars]
    declared += [grammar for front in FRONTS.values() for grammar in front.grammars]
    return next((grammar for grammar in declared if grammar.is_of(name)), _OTHER)


def _parsed(grammar: FileGrammar, text: str) -> dict[_Path, list[str]]:
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
            yield path[:-1], _Swap(f"{path[-1][0]} and everything in it", None)


def _text(name: str, places: Mapping[_Path, _Place], files: int, evidence: Sequence[str]) -> str:
    grammar = _grammar(name)
    lines = [f"# {name}"]
    for one in evidence:
        lines += [_comment(line) for line in one.splitlines()]
    where = textwrap.wrap(grammar.where, _WIDE - 2, break_long_words=False, break_on_hyphens=False)
    lines += [f"# {line}" for line in where]
    open_: _Path = ()
    for path in _ordered(places):
        common = len(commonprefix([open_, path]))  # noqa: RUF071 - of tuples, not of paths
        lines += _closed(open_, common, grammar)
        if len(path) <= 1:
            lines.append("")
        for depth in range(common, len(path)):
            lines.append(f"{grammar.indent * depth}{path[depth][0]}")
        open_ = path
        lines += _changes(places[path], grammar, path, files)
    lines += _closed(open_, 0, grammar)
    return "\n".join(lines) + "\n"


def _ordered(places: Mapping[_Path, _Place]) -> list[_Path]:
    heads = list(dict.fromkeys(path[:depth] for path in places for depth in range(len(path) + 1)))
    number = {head: index for index, head in enumerate(heads)}
    return sorted(
        places, key=lambda path: [number[path[: depth + 1]] for depth in range(len(path))]
    )


def _closed(path: _Path, depth: int, grammar: FileGrammar) -> list[str]:
    ends = ((at, grammar.ending(path[at][0])) for at in reversed(range(depth, len(path))))
    return [f"{grammar.indent * at}{end}" for at, end in ends if end]


def _changes(place: _Place, grammar: FileGrammar, path: _Path, files: int) -> Iterator[str]:
    indent = grammar.indent * len(path)
    note = grammar.note(path[-1][0]) if path else ""
    if note:
        yield f"{indent}# {note}"
    for swap, wanting in place.items():
        if len(wanting) < files:
            yield (
                f"{indent}# only "
                f"{', '.join(dict.fromkeys(f'{one.host}:{one.path}' for one in wanting))}:"
            )
        if swap.after is None:
            yield indent + _comment(f"remove: {swap.before}")
            continue
        if swap.before is not None:
            yield indent + _comment(f"replaces: {swap.before}")
        yield f"{indent}{swap.after}"


def _comment(line: str) -> str:
    # A backslash at the end would continue the comment on the next line, for Apache and Ceph.
    return f"# {line.rstrip().rstrip(chr(92))}".rstrip()
