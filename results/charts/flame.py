"""A flame graph: folded stacks as one picture, wide where much time was spent, the root at the
bottom (after Brendan Gregg, 2011).

It is a self-contained SVG without a script; a frame's tooltip says what it is and how much time it
took.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final
from xml.sax.saxutils import escape

from weighbridge.results.charts.chart_theme import FONT, INK, MUTED
from weighbridge.results.record.profile import KERNEL, Stack

WIDTH: Final = 1220
ROW: Final = 19
HEAD: Final = 62
LETTER: Final = 6.4
"""The average width of a letter of Inter at 12 px, by which long names are cut."""
LEAST: Final = 0.6
"""The least width of a drawn frame: narrower ones cannot be seen, and there are thousands."""

COLOURS: Final = {"gateway": "#8ecae6", "storage": "#f4b860", "kernel": "#c9ccd3"}
"""Colours by owner of the code. Dark letters are readable on all three."""
LEGEND: Final = {
    "gateway": "gateway’s hosts",
    "storage": "storage hosts",
    "kernel": "kernel, for both",
}


@dataclass
class _Node:
    """A frame with its callees; its samples include theirs."""

    name: str
    samples: int = 0
    callees: dict[str, _Node] = field(default_factory=dict)

    def add(self, frames: Sequence[str], samples: int) -> None:
        """Count a stack from here on."""
        node = self
        node.samples += samples
        for frame in frames:
            node = node.callees.setdefault(frame, _Node(frame))
            node.samples += samples

    @property
    def depth(self) -> int:
        """The most frames above it."""
        deepest, level = 0, [self]
        while level := [below for node in level for below in node.callees.values()]:
            deepest += 1
        return deepest


@dataclass(frozen=True)
class _Box:
    """A frame as it is drawn."""

    name: str
    samples: int
    x: float
    width: float
    row: int
    colour: str


def flame(stacks: Sequence[Stack], *, title: str) -> str:
    """The SVG of stacks whose first frame is their kind. Without stacks it says so."""
    root = _Node("all")
    for stack in stacks:
        root.add(stack.frames, stack.samples)
    rows = root.depth
    height = HEAD + ROW * max(1, rows) + 10
    shapes = (
        "".join(_drawn(box, height, root.samples) for box in _boxes(root))
        if root.samples
        else _nothing(height)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" '
        f'role="img" aria-label="{_attribute(title)}" font-family="{_attribute(FONT)}" '
        'font-size="12">'
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>'
        f'<text x="10" y="24" font-size="17" font-weight="600" fill="{INK}">{escape(title)}</text>'
        f"{_legend(root.samples)}{shapes}</svg>\n"
    )


def _boxes(root: _Node) -> Iterator[_Box]:
    """Every frame that is wide enough, with its callees above it in order of their names, as usual
    in flame graphs.
    """
    scale = (WIDTH - 20) / root.samples
    waiting = [(node, 10.0 + offset * scale, 0, node.name) for node, offset in _callees(root)]
    while waiting:
        node, x, row, kind = waiting.pop()
        width = node.samples * scale
        if width < LEAST:
            continue
        name, colour = node.name, COLOURS.get(kind, COLOURS["kernel"])
        if name.endswith(KERNEL):
            name, colour = name.removesuffix(KERNEL), COLOURS["kernel"]
        yield _Box(name, node.samples, x, width, row, colour)
        waiting += [(below, x + offset * scale, row + 1, kind) for below, offset in _callees(node)]


def _callees(node: _Node) -> Iterator[tuple[_Node, int]]:
    """The callees of a frame, each with the samples to its left."""
    offset = 0
    for name in sorted(node.callees):
        yield node.callees[name], offset
        offset += node.callees[name].samples


def _drawn(box: _Box, height: int, total: int) -> str:
    y = height - 10 - ROW * (box.row + 1)
    fits = int((box.width - 6) / LETTER)
    # Up to three letters of a name would say nothing.
    shown = box.name if len(box.name) <= fits else f"{box.name[: fits - 1]}…" if fits > 3 else ""
    words = (
        f'<text x="{box.x + 3:.1f}" y="{y + 13.5:.1f}" fill="{INK}">{escape(shown)}</text>'
        if shown
        else ""
    )
    share = 100 * box.samples / total
    return (
        f"<g><title>{escape(box.name)}: {share:.2f} %, {box.samples} samples</title>"
        f'<rect x="{box.x:.2f}" y="{y}" width="{box.width:.2f}" height="{ROW - 1}" '
        f'fill="{box.colour}" '
        f'stroke="white" stroke-width="0.5"/>{words}</g>'
    )


def _legend(samples: int) -> str:
    x, parts = 10, []
    for kind, colour in COLOURS.items():
        words = LEGEND[kind]
        parts.append(f'<rect x="{x}" y="38" width="13" height="13" fill="{colour}"/>')
        parts.append(f'<text x="{x + 18}" y="49" fill="{MUTED}">{escape(words)}</text>')
        x += 44 + round(len(words) * LETTER)
    parts.append(
        f'<text x="{WIDTH - 10}" y="49" text-anchor="end" fill="{MUTED}">{samples:,} samples; '
        "width is CPU time</text>"
    )
    return "".join(parts)


def _nothing(height: int) -> str:
    return f'<text x="10" y="{height - 14}" fill="{MUTED}">no samples were taken</text>'


def _attribute(text: str) -> str:
    return escape(text, {'"': "&quot;"})
