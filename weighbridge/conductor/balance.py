"""Balance: in which order the blocks of a run visit its layouts, so that neither a place in a block
nor a neighbour favours one.

The design is E. J. Williams' (Australian Journal of Scientific Research A 2, 1949): a Latin square
in which, besides standing at every place once, each layout follows every other once. Of an even
number of layouts it is one square, of an odd number a square and its mirror image, in which each
then stands at every place twice and follows every other twice. Which layout is which letter of the
square, and in which order its rows come, is drawn anew for every design; the last may be cut short
by the number of blocks.
"""

from __future__ import annotations

import random
from collections.abc import Sequence


def blocks(names: Sequence[str], count: int, seed: int) -> tuple[tuple[str, ...], ...]:
    """`count` blocks of all names, balanced over every `design_length` of them; the same for the
    same seed.
    """
    drawn = random.Random(seed)  # noqa: S311 - a seeded order is wanted, not a secret
    found: list[tuple[str, ...]] = []
    while len(found) < count:
        found += _design(names, drawn)
    return tuple(found[:count])


def design_length(layouts: int) -> int:
    """After how many blocks of so many layouts their order is balanced."""
    return layouts if layouts % 2 == 0 or layouts == 1 else 2 * layouts


def _design(names: Sequence[str], drawn: random.Random) -> list[tuple[str, ...]]:
    size = len(names)
    letters = drawn.sample(names, size)
    # 0, 1, size - 1, 2, size - 2 ...: the steps from each to the next are all different, and stay
    # so in every row.
    zigzag = [(place + 1) // 2 if place % 2 else -place // 2 for place in range(size)]
    square = [tuple(letters[(start + step) % size] for step in zigzag) for start in range(size)]
    squares = [square] if design_length(size) == size else [square, [row[::-1] for row in square]]
    drawn.shuffle(squares)
    return [row for one in squares for row in drawn.sample(one, size)]
