"""Without claims nothing that is shown claims anything: terminal, page, slides, papers, data."""

from __future__ import annotations

import csv
import io
import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.console import Console

from fake_run import WORKLOADS, fake_run
from made_rows import altered
from weighbridge.results import derive
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.charts.gallery import gallery_of
from weighbridge.results.derivation import Derived
from weighbridge.results.export.export import produce
from weighbridge.results.record.store import RunStore
from weighbridge.results.record.telemetry import Attested
from weighbridge.results.slides.evidence import evidence
from weighbridge.results.slides.slide import Deck
from weighbridge.results.slides.talk import talk
from weighbridge.screen.outcome import print_outcome

CLAIMS = re.compile(
    r"\b(leads|led|faster than|slower than|wins|beats|same hosts|are valid|is faster|is slower)\b"
)
CHOSEN = tuple(altered(one, workers=(1, 16)) for one in WORKLOADS[:2])


class Words(HTMLParser):
    """Everything readable on a page: its texts, and those for screen readers."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self._raw = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._raw = tag in ("script", "style")
        self.words += [value for name, value in attrs if name in ("aria-label", "title") and value]

    def handle_endtag(self, tag: str) -> None:
        self._raw = False

    def handle_data(self, data: str) -> None:
        if not self._raw:
            self.words.append(data)


def made(folder: Path, *, repeats: int, gave: dict[str, float]) -> RunStore:
    """A run; `gave`: what a host's CPU gave under each layout, of 1400 that are promised."""
    store = fake_run(folder, workloads=CHOSEN, repeats=repeats, telemetry=False)
    if gave:
        one = {"repeat": 0, "host": "gateway-1", "kind": "cpu", "what": "CPU", "promised": 1400.0}
        for name, value in gave.items():
            given = {**one, "unit": "events/s", "layout": name, "value": value}
            store.attest([Attested.model_validate(given)])
    return store


@pytest.fixture(scope="module")
def grave(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    gave = {"rgw-beast": 1395.0, "swift": 245.0}
    return made(tmp_path_factory.mktemp("grave"), repeats=5, gave=gave)


@pytest.fixture(scope="module")
def provisional(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    return made(tmp_path_factory.mktemp("provisional"), repeats=1, gave={})


@pytest.fixture(scope="module")
def below(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    gave = {"rgw-beast": 1250.0, "swift": 960.0}
    return made(tmp_path_factory.mktemp("below"), repeats=5, gave=gave)


@cache
def derived_of(store: RunStore) -> Derived:
    return derive(store.folder, pictures=False)


@cache
def deck_of(store: RunStore) -> Deck:
    return talk(evidence(store))


def shown(store: RunStore) -> dict[str, str]:
    """Everything that shows a run, by medium."""
    screen = io.StringIO()
    derived = derived_of(store)
    print_outcome(derived, Console(file=screen, width=140))
    return {
        "terminal": screen.getvalue(),
        "page": " ".join(Words(derived.report.read_text()).words),
        "slides": deck_of(store).model_dump_json(),
        "markdown": produce(store.folder, "markdown")[1].files[0].content.decode(),
    }


@pytest.mark.parametrize("state", ["grave", "provisional", "below"])
def test_a_run_without_claims_claims_nothing_anywhere(
    state: str, request: pytest.FixtureRequest
) -> None:
    words = "not comparable" if state == "grave" else "provisional"
    for place, text in shown(request.getfixturevalue(state)).items():
        found = CLAIMS.search(text)
        assert found is None, f"{place}: {text[max(0, found.start() - 80) : found.end() + 80]}"
        assert words in text.lower(), place


def test_hosts_below_their_promise_are_a_reason_beside_every_figure(below: RunStore) -> None:
    (one,) = derived_of(below).reasons
    assert (one.status, one.where) == ("provisional", "all figures")
    assert one.words.startswith("hosts below promise: CPU of gateway-1 gave 31 % less than")


def test_a_quiet_run_with_enough_repeats_claims_something(tmp_path: Path) -> None:
    found = shown(made(tmp_path, repeats=5, gave={}))
    assert ["leads" in found[place] for place in ("terminal", "page")] == [True, True]


def test_a_card_for_an_incomparable_finding_has_no_ratio_and_says_why(grave: RunStore) -> None:
    first = deck_of(grave).slides[0]
    assert first.title.startswith("Nothing may be ranked, since hosts differ: CPU of gateway-1 gav")
    assert [card.figure for card in first.cards] == ["–", "–"]
    assert all(
        "not comparable" in card.text and card.detail.startswith("hosts differ: CPU of gateway-1")
        for card in first.cards
    )


def test_a_provisional_card_has_no_layouts_colour_and_says_why(provisional: RunStore) -> None:
    seen = evidence(provisional)
    deck = talk(seen)
    assert all(card.text.startswith("provisional: rgw-beast ") for card in deck.slides[0].cards)
    assert all(
        "a claim needs 5 repeats of each side" in card.detail for card in deck.slides[0].cards
    )
    assert not {card.colour for card in deck.slides[0].cards} & set(deck.colours)


def test_the_setup_slide_has_the_verdict_of_attestation(
    grave: RunStore, provisional: RunStore
) -> None:
    differing, unknown = (deck_of(store).slides[1].title for store in (grave, provisional))
    assert differing.endswith("differs beyond its bound, as for swift and rgw-beast")
    assert unknown.endswith("not attested")


def test_the_last_slides_count_doubts(grave: RunStore, provisional: RunStore) -> None:
    titles = [
        next(one.title for one in deck_of(store).slides if one.key == "limits")
        for store in (grave, provisional)
    ]
    assert titles == ["All 8 figures are not comparable", "All 8 figures are provisional"]


def test_a_reason_is_on_the_page_once_with_its_cells(grave: RunStore) -> None:
    derived = derived_of(grave)
    (one,) = derived.reasons
    assert (one.status, one.where) == ("not comparable", "all figures")
    page = derived.report.read_text()
    assert page.count('<li class="not-comparable">') == 1


def test_chart_titles_begin_with_their_verdict(grave: RunStore, provisional: RunStore) -> None:
    for store, words in ((grave, "Not comparable: "), (provisional, "Provisional: ")):
        figures = gallery_of(store.folder).of("figures")
        assert figures
        assert all(one.finding.startswith(words) for one in figures)


def test_data_has_the_doubts(grave: RunStore, provisional: RunStore) -> None:
    (file,) = produce(grave.folder, "csv", ["effects"])[1].files
    lines = list(csv.DictReader(io.StringIO(file.content.decode())))
    assert all(
        "grave: hosts differ: CPU of gateway-1 gave 245 events/s" in line["doubts"]
        for line in lines
    )
    derived = derived_of(provisional)
    effects = list(csv.DictReader(io.StringIO((derived.folder / "effects.csv").read_text())))
    assert {line["doubts"].partition(":")[0] for line in effects} == {"few repeats"}


def test_data_has_intervals_over_repeats_and_the_first_byte(grave: RunStore) -> None:
    (file,) = produce(grave.folder, "csv", ["summary"])[1].files
    lines = list(csv.DictReader(io.StringIO(file.content.decode())))
    rows = RunData(grave.folder).rows
    for line, row in zip(lines, rows, strict=True):
        spread = row.figure("throughput")
        assert float(line["throughput_over_repeats_low_ops_s"]) == spread.low
        assert float(line["throughput_over_repeats_high_ops_s"]) == spread.high
        assert line["first_byte_ms"] == (
            "" if row.value("first-byte") is None else str(row.value("first-byte"))
        )
