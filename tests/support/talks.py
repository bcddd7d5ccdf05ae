"""Talks of made-up runs, and how tests read them."""

from fake_run import WORKLOADS, StepFaults
from weighbridge.results.features.open_run import open_run
from weighbridge.results.run.store import RunStore
from weighbridge.results.show.deck import Deck
from weighbridge.results.show.slide import Slide
from weighbridge.results.show.talk import talk

SHORT = tuple(
    workload.model_copy(update={"runtime": 2.0, "workers": (1, 16)}) for workload in WORKLOADS
)


SPOILT = StepFaults(failed=(("swift", "small-read", 16),), absent=(("swift", "large-read", 16),))


FIVE = ("rgw-beast", "rgw-civetweb", "rgw-apache-fastcgi", "rgw-haproxy", "swift")


def with_control(store: RunStore) -> RunStore:
    """The same run with its last layout as an A/A control of its first."""
    plan = store.plan().model_copy(update={"twins": {"rgw-haproxy": "rgw-beast"}})
    (store.folder / "plan.resolved.json").write_text(plan.model_dump_json())
    return store


def deck_of(store: RunStore) -> Deck:
    return talk(open_run(store.folder))


def slide(deck: Deck, title: str) -> Slide:
    return next(page for page in deck.pages if title in page.title)


def of_workload(deck: Deck, about: str) -> Slide:
    pages = [page for page in deck.pages if page.charts or page is not deck.pages[0]]
    return next(page for page in pages if f" at {about}" in page.title)


def text_of(page: Slide) -> str:
    cards = [
        part for card in page.cards for part in (card.figure, card.about, card.text, card.detail)
    ]
    cells = [cell.text for line in page.table for cell in line]
    charts = [
        part
        for chart in page.charts
        for series in chart.series
        for part in (chart.title, series.name, *(f"{one.x}: {one.label}" for one in series.points))
    ]
    texts = (page.title, page.caveat, page.lead, *cards, *cells, *charts, *page.lines)
    return "\n".join((*texts, page.code, page.foot, *page.notes))
