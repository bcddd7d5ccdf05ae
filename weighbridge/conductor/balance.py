"""The order in which the blocks of a run visit its layouts, balanced by position and predecessor.

The design is E. J. Williams' (Australian Journal of Scientific Research A 2, 1949): a Latin square
in which each layout has every position once and follows every other layout once. For an even number
of layouts it is one square; for an odd number, a square and its mirror image, in which each has
every position twice and follows every other twice. Which layout is which letter of the square, and
the order of its rows, is drawn again for every design; the number of blocks may cut the last short.
"""

from __future__ import annotations

import random
from collections.abc import Sequence


def blocks(names: Sequence[str], count: int, seed: int) -> tuple[tuple[str, ...], ...]:
    """`count` blocks of all names, balanced over each `design_length` of them; fixed by `seed`."""
    drawn = random.Random(seed)  # noqa: S311 - this is a seeded order, not a secret
    found: list[tuple[str, ...]] = []
    while len(found) < count:
        found += _design(names, drawn)
    return tuple(found[:count])


def design_length(layouts: int) -> int:
    """The number of blocks after which the order of so many layouts is balanced."""
    return layouts if layouts % 2 == 0 or layouts == 1 else 2 * layouts


def _design(names: Sequence[str], drawn: random.Random) -> list[tuple[str, ...]]:
    size = len(names)
    letters = drawn.sample(names, size)
    # 0, 1, size - 1, 2, size - 2 ...: the steps from each to the next are all different, in every
    # row.
    zigzag = [(place + 1) // 2 if place % 2 else -place // 2 for place in range(size)]
    square = [tuple(letters[(start + step) % size] for step in zigzag) for start in range(size)]
    squares = [square] if design_length(size) == size else [square, [row[::-1] for row in square]]
    drawn.shuffle(squares)
    return [row for one in squares for row in drawn.sample(one, size)]
