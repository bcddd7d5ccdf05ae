"""Configuration fragments to paste, to get from one configuration of a gateway to another."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final

from weighbridge.common.record import Record
from weighbridge.gateways.front import FRONTS
from weighbridge.gateways.gateway import STORES, Rendered, Site
from weighbridge.gateways.probe import FileGrammar, OtherGrammar

_SECRET: Final = "***"  # noqa: S105 - a placeholder
_KEYRING: Final = "keyring"
_NUMBERED: Final = re.compile(r"-\d+(?=\.conf$)")
_WIDE: Final = 100


class FragmentPart(Record):
    """The changes to one kind of file, as text for its program with comments on where it goes."""

    name: str
    """The file name: `ceph.conf`, `proxy-server.conf`."""
    text: str


@dataclass
class _Block:
    """A file, or a section or container in it."""

    lines: list[str] = field(default_factory=list)
    blocks: dict[tuple[str, int], _Block] = field(default_factory=dict)
    """By first line, numbered among equal ones."""
    changes: dict[tuple[str | None, str | None], list[Rendered]] = field(default_factory=dict)
    """A line and the one that replaces it, of which one may be none; each with its files."""

    @property
    def changed(self) -> bool:
        return bool(self.changes) or any(block.changed for block in self.blocks.values())


def fragments(
    before: Sequence[Rendered], after: Sequence[Rendered], evidence: Sequence[str] = ()
) -> tuple[FragmentPart, ...]:
    """One fragment for each file name in which the configurations differ, in the order of `after`.

    Only lines that differ are included, each once under its section or container, with the replaced
    line as a comment; removed lines are comments. Files of the same name on several hosts, and
    numbered ones such as proxy-server-1.conf, share one fragment; a line that applies only to some
    of them names these. `evidence` are comment lines at the top. Lines with a secret are left out.
    """
    known = {(file.host, file.path): file for file in before}
    wanted = {(file.host, file.path): file for file in after}
    changes: dict[str, _Block] = {}
    sharing: Counter[str] = Counter()
    for key, file in {**wanted, **known}.items():
        name = _NUMBERED.sub("", PurePosixPath(file.path).name)
        if name == _KEYRING:
            continue
        sharing[name] += 1
        grammar = _grammar(name)
        texts = [files[key].text if key in files else "" for files in (known, wanted)]
        old, new = (_parsed(grammar, text) for text in texts)
        _compare(old, new, grammar, file, changes.setdefault(name, _Block()))
    parts = []
    for name, block in changes.items():
        if block.changed:
            grammar = _grammar(name)
            lines = [_comment(line) for text in evidence for line in text.splitlines()]
            lines += textwrap.wrap(
                grammar.where,
                _WIDE,
                initial_indent="# ",
                subsequent_indent="# ",
                break_long_words=False,
                break_on_hyphens=False,
            )
            lines += _shown(block, grammar, sharing[name])
            parts.append(FragmentPart(name=name, text="\n".join([f"# {name}", *lines, ""])))
    return tuple(parts)


def without_addresses(text: str, sites: Mapping[str, Site]) -> str:
    """A text that has `ADDRESS-OF-gateway-1` for the address of each host: only a lab has those."""
    for name, site in sites.items():
        own = rf"(?<![\w.]){re.escape(site.address)}(?![\w.]*\w)"
        text = re.sub(own, f"ADDRESS-OF-{name}", text)
    return text


def _grammar(name: str) -> FileGrammar:
    declared = [grammar for store in STORES.values() for grammar in store.grammars]
    declared += [grammar for front in FRONTS.values() for grammar in front.grammars]
    return next((grammar for grammar in declared if grammar.is_of(name)), OtherGrammar())


def _parsed(grammar: FileGrammar, text: str) -> _Block:
    stack = [_Block()]
    for raw in text.splitlines():
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        kind = grammar.reads(raw)
        if kind == "end":
            stack.pop()
        elif kind == "transparent":
            stack.append(stack[-1])
        elif kind == "line":
            stack[-1].lines.append(line)
        else:
            if kind == "section":
                del stack[1:]
            number = sum(head == line for head, _ in stack[-1].blocks)
            stack.append(stack[-1].blocks.setdefault((line, number), _Block()))
    return stack[0]


def _compare(old: _Block, new: _Block, grammar: FileGrammar, file: Rendered, into: _Block) -> None:
    """Add the changes of a file to those of others."""
    swaps: list[tuple[str | None, str | None]] = []
    before = [line for line in old.lines if _SECRET not in line]
    after = [line for line in new.lines if _SECRET not in line]
    gone = list((Counter(before) - Counter(after)).elements())
    for line in (Counter(after) - Counter(before)).elements():
        same = next((one for one in gone if grammar.about(one) == grammar.about(line)), None)
        if same is not None:
            gone.remove(same)
        swaps.append((same, line))
    swaps += [(line, None) for line in gone]
    swaps += [
        (f"{head} and everything in it", None)
        for head, number in old.blocks
        if (head, number) not in new.blocks
    ]
    for swap in swaps:
        into.changes.setdefault(swap, []).append(file)
    for head, block in new.blocks.items():
        inner = into.blocks.setdefault(head, _Block())
        _compare(old.blocks.get(head, _Block()), block, grammar, file, inner)


def _shown(
    block: _Block, grammar: FileGrammar, files: int, head: str = "", depth: int = 0
) -> Iterator[str]:
    outside, inside = grammar.indent * max(0, depth - 1), grammar.indent * depth
    if depth == 1 or (not depth and block.changes):
        yield ""
    if head:
        yield f"{outside}{head}"
    if head and block.changes and (note := grammar.note(head)):
        yield f"{inside}# {note}"
    for (before, after), wanting in block.changes.items():
        if len(wanting) < files:
            places = dict.fromkeys(f"{file.host}:{file.path}" for file in wanting)
            yield f"{inside}# only {', '.join(places)}:"
        if before is not None:
            yield inside + _comment(f"{'replaces' if after else 'remove'}: {before}")
        if after is not None:
            yield f"{inside}{after}"
    for (inner, _), own in block.blocks.items():
        if own.changed:
            yield from _shown(own, grammar, files, inner, depth + 1)
    if head and (end := grammar.ending(head)):
        yield f"{outside}{end}"


def _comment(line: str) -> str:
    # A backslash at the end would continue the comment on the next line, for Apache and Ceph.
    return f"# {line.rstrip().rstrip(chr(92))}".rstrip()
