from __future__ import annotations

from pathlib import Path

import pytest

from fake_knobs import FEW
from fake_tuning import FakeCourse, fake_tuning
from weighbridge.results.record.store import RunStore
from weighbridge.results.slides.evidence import Evidence, evidence
from weighbridge.results.slides.fitting import ROOM_PT, SMALLEST_PT, body_pt, size_for
from weighbridge.results.slides.powerpoint import powerpoint
from weighbridge.results.slides.slide import BarChart, Deck, Slide
from weighbridge.results.slides.talk import talk


@pytest.fixture(scope="module")
def tuned(tuned_run: RunStore) -> Evidence:
    return evidence(tuned_run)


@pytest.fixture(scope="module")
def deck(tuned: Evidence) -> Deck:
    return talk(tuned)


def slide(deck: Deck, start: str) -> Slide:
    return next(one for one in deck.slides if one.key.startswith(start))


def test_the_talk_of_a_tuning_goes_from_the_answer_to_how_to_repeat_it(deck: Deck) -> None:
    keys = list(dict.fromkeys(one.key.rstrip("0123456789").rstrip("-") for one in deck.slides))
    assert keys[:6] == ["answer", "set-up", "tried", "ledger", "tornado", "no-effect"]
    assert keys[6:] == ["chosen", "confirmation", "limits", "repeat"]


def test_every_table_fits_its_slide_in_readable_type(deck: Deck) -> None:
    for one in deck.slides:
        if one.grid is not None:
            size = size_for(one.grid, ROOM_PT, body_pt(one.title, one.lead, one.foot))
            assert size is not None, one.key
            assert size >= SMALLEST_PT


def test_bars_are_the_effects_of_the_ledger(tuned: Evidence, deck: Deck) -> None:
    assert tuned.tuned is not None
    chart = slide(deck, "tornado-1").chart
    assert isinstance(chart, BarChart)
    ratios = [one.effects[0].ratio for one in tuned.tuned.table.entries]
    known = sorted((one for one in ratios if one is not None), key=lambda one: -one.either_way)
    assert [bar.value for bar in chart.bars] == pytest.approx(
        [(one.value - 1) * 100 for one in known[: len(chart.bars)]]
    )


def test_the_notes_have_the_files_to_paste_and_every_figure(tuned: Evidence, deck: Deck) -> None:
    assert tuned.tuned is not None
    assert tuned.tuned.winner is not None
    notes = "\n".join(note for one in deck.slides for note in one.notes)
    for fragment in tuned.tuned.winner.fragments:
        assert fragment.text in notes
    for entry in tuned.tuned.table.entries:
        for effect in entry.effects:
            assert effect.text in notes


@pytest.mark.parametrize("rounds", [0, 1])
def test_an_interrupted_tuning_has_a_talk_that_says_so(tmp_path: Path, rounds: int) -> None:
    course = FakeCourse(rounds=rounds, state="interrupted", choose=False)
    deck = talk(evidence(fake_tuning(tmp_path, course, knobs=FEW)))
    assert any("not complete: interrupted" in line for line in slide(deck, "answer").lines)
    assert slide(deck, "limits").title.startswith("The tuning is not complete")
    assert not any(one.key.startswith(("chosen", "confirmation")) for one in deck.slides)
    assert powerpoint(deck)


def test_a_winner_that_was_not_confirmed_is_not_praised(tmp_path: Path) -> None:
    deck = talk(evidence(fake_tuning(tmp_path, FakeCourse(confirmed=1.0), knobs=FEW)))
    assert "was not confirmed" in slide(deck, "confirmation").title
    assert deck.title.endswith("the winner was not confirmed")
