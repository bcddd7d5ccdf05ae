"""The noise floor by A/A controls."""

from __future__ import annotations

import math
import random

import pytest

from compared_rows import FIVE, cell, row, times
from made_rows import altered, changed
from weighbridge.results.analysis.comparing import compare
from weighbridge.results.analysis.comparison import Comparison
from weighbridge.results.analysis.findings import find, headline
from weighbridge.results.record.step import UNLIKE


def test_a_control_gives_the_noise_floor_and_is_never_compared_with_others() -> None:
    rows = [
        row(name, workers, times(factor))
        for name, factors in {"a": (1, 1), "b": (1.15, 1.15), "t": (1.1, 0.95)}.items()
        for workers, factor in zip((1, 8), factors, strict=True)
    ]
    found = compare(rows, {"t": "a"})
    assert found.subjects == ("b",)
    assert {one.subject for one in found.effects} == {"b"}
    throughput, p90 = found.noise
    assert (throughput.metric, throughput.layout) == ("throughput", "a")
    assert (throughput.control, throughput.cells, throughput.repeats) == ("t", 2, 5)
    # All pairs of a cell are equal: a mean's error is the root mean square of the two cells' means,
    # times t(0.975, 10).
    assert throughput.ratio == pytest.approx(
        math.exp(2.2281 * math.sqrt((math.log(1.1) ** 2 + math.log(0.95) ** 2) / 2)), rel=1e-4
    )
    assert throughput.low < throughput.ratio < throughput.high
    assert (throughput.pairs, throughput.shown) == (10, 2)
    assert p90.ratio == pytest.approx(throughput.ratio)
    assert cell(found).noise == cell(found, workers=None).noise == throughput.ratio
    text = cell(found).text
    assert text.startswith("No difference found beyond the noise floor of this machine: ")
    assert text.endswith("; n = 5; the noise floor of this machine is 1.2×.")


def test_a_difference_within_the_noise_floor_is_no_claim() -> None:
    rows = [row("a"), row("b", rates=times(1.2)), row("t", rates=times(1.3))]
    found = cell(compare(rows, {"t": "a"}))
    assert found.verdict == "not significant"
    assert found.text.startswith("No difference found beyond the noise floor")
    assert found.text.endswith(" is 2.0×.")
    assert headline(find(rows, {"t": "a"})).startswith("No layout leads")


def test_the_noise_floor_is_an_estimate_over_all_pairs_and_does_not_grow_with_every_cell() -> None:
    draw = random.Random(7)
    few, many = (
        compare(
            [
                row(name, cell, [math.exp(draw.gauss(0, 0.05)) for _ in FIVE])
                for cell in range(1, cells + 1)
                for name in "at"
            ],
            {"t": "a"},
        ).noise[0]
        for cells in (2, 40)
    )
    # Two sides that scatter by 5 % differ by 7 %; means of five stay within 1.96 times a root of
    # five of that.
    assert many.ratio == pytest.approx(math.exp(1.96 * 0.05 * math.sqrt(2 / 5)), rel=0.015)
    assert many.high / many.low < few.high / few.low
    assert few.low < many.ratio < few.high


def test_a_control_of_a_single_layout_gives_a_noise_floor_and_an_unmeasured_one_none() -> None:
    found = compare([row("a"), row("t", rates=times(1.02, FIVE[::-1]))], {"t": "a"})
    assert (found.subjects, found.effects) == ((), ())
    assert [floor.shown for floor in found.noise] == [1, 1]
    assert 1.02 < found.noise[0].ratio < 1.06
    found = compare([row("a"), row("b", rates=times(2.0)), row("t", rates=())], {"t": "a"})
    assert (found.noise, cell(found).noise) == ((), None)
    assert "noise floor" not in cell(found).text


def test_repeats_of_a_control_that_was_unlike_its_layout_are_no_pairs() -> None:
    note = f"{UNLIKE}: no objects of mixed"
    control = row("t", rates=times(1.02, FIVE[::-1]))

    def unlike(count: int) -> Comparison:
        first = tuple(changed(one, notes=(note,)) for one in control.points[:count])
        points = (*first, *control.points[count:])
        return compare([row("a"), row("b"), changed(control, points=points)], {"t": "a"})

    assert {floor.repeats for floor in unlike(2).noise} == {3}
    none = unlike(5)
    assert none.noise == ()
    (why,) = none.unused
    assert why.endswith(f": t, the A/A control of a, could not be used ({note}).")


def test_an_upper_end_without_a_meaning_is_no_number_in_a_sentence() -> None:
    (floor, *_) = compare([row("a"), row("t", rates=times(1.02))], {"t": "a"}).noise
    assert "or more" not in altered(floor, low=1.0, high=99.0).words
    text = altered(floor, high=552_781.0).words
    assert " or more)" in text
    assert "552" not in text
