from __future__ import annotations

import math

import pytest

from weighbridge.results.analysis.history.change_points import RULE, change_points

Level = tuple[int, float]
"""So many runs at this figure."""


def leveled(*levels: Level) -> list[float]:
    """Levels one after another, scattered by up to 0.2 %."""
    figures = [figure for count, figure in levels for _ in range(count)]
    return [figure * (1 + 0.001 * (at % 3)) for at, figure in enumerate(figures)]


def test_passing_levels_are_left_out_of_the_change_from_the_level_before_them_to_the_newest() -> (
    None
):
    (found,) = change_points(leveled((10, 100), (3, 125), (10, 80)), 0.05)
    assert (found.at, found.runs_before, found.passing, found.runs_after) == (13, 10, 3, 10)
    assert (found.before, found.after) == (pytest.approx(100, 0.01), pytest.approx(80, 0.01))
    assert found.sides == (slice(0, 10), slice(13, 23))
    (found,) = change_points(leveled((10, 100), (3, 125), (3, 60), (10, 80)), 0.05)
    assert (found.at, found.passing) == (16, 6)
    assert found.after / found.before == pytest.approx(0.8, 0.01)


def test_series_are_searched_as_otava_does_and_short_sides_are_left_out() -> None:
    level = [100.0 + 0.1 * (number % 3) for number in range(20)]
    halved = [value / 2 for value in level]
    (found,) = change_points([*level, *halved], 0.05)
    assert (found.at, found.runs_before, found.runs_after) == (20, 20, 20)
    assert found.after / found.before == pytest.approx(0.5)
    assert found.p < 1e-9
    for series, changes in (
        ([*level, *([50.0] * (RULE.after - 1))], 0),
        ([*level, *([50.0] * RULE.after)], 1),
        ([*level[: RULE.before - 1], *halved], 0),
        ([*level[: RULE.before], *halved], 1),
        ([1.0] * 50, 0),
        ([], 0),
    ):
        assert len(change_points(series, 0.05)) == changes
    assert not any(math.isnan(one.p) for one in change_points([*level, *level], 0.0))


@pytest.mark.parametrize("figure", [70, 140])
def test_a_passing_level_after_which_all_is_as_before_is_no_change(figure: float) -> None:
    passed = leveled((20, 100), (4, figure), (5, 100))
    assert [one.at for one in change_points(passed[:24], 0.05)] == [20]
    assert change_points(passed, 0.05) == ()
    constant = [100.0] * 20 + [figure] * 4 + [100.0] * 5
    assert change_points(constant, 0.05) == ()


def test_a_newest_level_is_a_change_until_it_is_known_to_pass() -> None:
    up = leveled((20, 100), (4, 125))
    assert [one.at for one in change_points(up, 0.05)] == [20]
    (found,) = change_points([*up, 80.0], 0.05)
    assert (found.at, found.runs_after, found.after > found.before) == (20, 4, True)


def test_a_level_that_lasts_is_two_changes() -> None:
    found = change_points(leveled((10, 100), (RULE.before, 125), (10, 80)), 0.05)
    assert [(one.at, one.passing) for one in found] == [(10, 0), (15, 0)]


def test_a_change_over_a_passing_level_must_be_larger_than_the_threshold() -> None:
    figures = leveled((20, 100), (4, 70), (5, 91))
    assert change_points(figures, 0.15) == ()
    assert [one.at for one in change_points(figures, 0.05)] == [24]
