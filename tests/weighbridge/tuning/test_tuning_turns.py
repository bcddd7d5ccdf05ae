"""Which setting is tried when."""

from collections.abc import Callable, Sequence

import pytest

from stub_tuning import TUNING
from weighbridge.results.features.tuning.setting_table import SettingEntry, SettingTable
from weighbridge.results.run.trial import EntryVerdict, LayoutVariant, Trial
from weighbridge.suites.tuning import Tuning
from weighbridge.tuning.turns import Judge, TrialCount, TrialTurn, rounds

BASELINE = LayoutVariant(name="base")


def settings(count: int) -> list[LayoutVariant]:
    return [
        LayoutVariant(name=f"setting-{number}", settings={"speed": number + 2.0})
        for number in range(count)
    ]


def tuning(seed: int = 2014, **trials: int) -> Tuning:
    return Tuning.model_validate({**TUNING, "seed": seed, "trials": trials})


def judged(
    clear: Sequence[str] = (), verdicts: dict[str, EntryVerdict] | None = None, *, known: int = 9
) -> Judge:
    def judge() -> SettingTable:
        entries = tuple(
            SettingEntry(
                variant=one,
                name=one.name,
                trials=5,
                effects=(),
                verdict=(verdicts or {}).get(one.name, "not significant"),
                clear=one.name in clear,
                gain=1.0,
            )
            for one in settings(known)
        )
        return SettingTable(
            baseline=BASELINE, entries=entries, readings=(), drift=(), trials=0, looks=1
        )

    return judge


def played(
    what: Tuning, many: int, judge: Judge, heard: Callable[[TrialTurn], object] = lambda turn: None
) -> list[TrialTurn]:
    turns = rounds([TrialCount(one) for one in settings(many)], what, BASELINE, judge)
    found: list[TrialTurn] = []
    turn = next(turns, None)
    while turn is not None:
        found.append(turn)
        heard(turn)
        known = {"number": len(found), "repeat": 0, "scope": "restart"}
        trial = {**known, "arm": turn.variant, "round": turn.round}
        try:
            turn = turns.send(Trial.model_validate(trial))
        except StopIteration:
            turn = None
    return found


def names(found: Sequence[TrialTurn], number: int) -> list[str]:
    return [turn.variant.name for turn in found if turn.round == number]


@pytest.mark.parametrize(
    ("many", "every", "between"), [(1, 5, [1]), (5, 5, [5]), (6, 5, [3, 3]), (7, 3, [2, 2, 3])]
)
def test_a_round_begins_and_ends_with_the_baseline_and_repeats_it_as_often_as_asked(
    many: int, every: int, between: list[int]
) -> None:
    found = names(played(tuning(least=2, most=2, baseline_every=every), many, judged()), 0)
    assert found[0] == found[-1] == "base"
    counts = [len(part.split()) for part in " ".join(found).split("base") if part.strip()]
    assert sorted(counts) == between
    assert sorted(set(found) - {"base"}) == [one.name for one in settings(many)]


def test_the_order_is_drawn_again_in_each_round_and_fixed_by_the_seed() -> None:
    what = tuning(least=2, most=3, baseline_every=50)
    found = played(what, 9, judged())
    assert names(found, 0) != names(found, 1)
    assert found == played(what, 9, judged())
    assert found != played(tuning(seed=1, least=2, most=3, baseline_every=50), 9, judged())


def test_a_clear_setting_is_tried_often_enough_for_a_claim_and_others_to_the_limit() -> None:
    found = played(tuning(least=3, most=5), 3, judged(clear=["setting-1"]))
    tried = [turn.variant.name for turn in found]
    assert [tried.count(one.name) for one in settings(3)] == [5, 3, 5]


def test_nothing_is_judged_before_the_least_number_of_trials() -> None:
    asked: list[int] = []
    made: list[TrialTurn] = []

    def judge() -> SettingTable:
        asked.append(max(turn.round for turn in made) + 1)
        return judged()()

    played(tuning(least=3, most=5), 2, judge, made.append)
    assert asked == [3, 4]


@pytest.mark.parametrize("verdict", ["not allowed", "failed"])
def test_a_setting_that_may_not_be_chosen_drops_out(verdict: EntryVerdict) -> None:
    found = played(tuning(least=2, most=4), 2, judged(verdicts={"setting-0": verdict}))
    tried = [turn.variant.name for turn in found]
    assert [tried.count("setting-0"), tried.count("setting-1")] == [2, 4]


def test_rounds_end_when_no_setting_is_left() -> None:
    found = played(tuning(least=2, most=20), 2, judged(clear=["setting-0", "setting-1"]))
    assert {turn.round for turn in found} == {0, 1}
