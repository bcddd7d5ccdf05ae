from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from weighbridge.conductor.plan import blocks, design_length

LAYOUTS = st.integers(1, 7).map(lambda size: [f"layout-{number}" for number in range(size)])


@given(LAYOUTS, st.integers(1, 3), st.integers(0, 2**63))
def test_each_design_balances_positions_and_predecessors(
    names: list[str], designs: int, seed: int
) -> None:
    length = design_length(len(names))
    found = blocks(names, designs * length, seed)
    for begin in range(0, len(found), length):
        one = found[begin : begin + length]
        places = Counter(place for block in one for place in enumerate(block))
        followed = Counter(pair for block in one for pair in pairwise(block))
        assert len(places) == len(names) ** 2
        assert len(set(places.values())) == 1
        assert len(followed) == len(names) * (len(names) - 1)
        assert len(set(followed.values())) <= 1


@given(LAYOUTS, st.integers(1, 20), st.integers(0, 2**63))
def test_every_block_visits_every_layout_once_and_the_seed_alone_decides(
    names: list[str], count: int, seed: int
) -> None:
    found = blocks(names, count, seed)
    assert len(found) == count
    assert all(sorted(block) == sorted(names) for block in found)
    assert blocks(names, count, seed) == found


@given(LAYOUTS, st.integers(0, 2**63))
def test_after_as_many_blocks_as_layouts_each_has_had_every_position_once(
    names: list[str], seed: int
) -> None:
    found = blocks(names, len(names), seed)
    assert len({place for block in found for place in enumerate(block)}) == len(names) ** 2


def test_another_seed_gives_another_order_and_each_layout_comes_first_as_often_over_seeds() -> None:
    first = Counter(blocks(["a", "b", "c"], 1, seed)[0] for seed in range(6000))
    assert len(first) == 6
    assert all(800 < times < 1200 for times in first.values())
