"""Talks of made-up runs, and how tests read them."""

from fake_run import WORKLOADS, StepFaults
from weighbridge.results.record.store import RunStore
from weighbridge.results.slides.slide import Deck, Slide

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


def slide(deck: Deck, start: str) -> Slide:
    return next(one for one in deck.slides if one.key.startswith(start))


def text_of(one: Slide) -> str:
    cards = [
        part for card in one.cards for part in (card.figure, card.about, card.text, card.detail)
    ]
    cells = [
        cell.text for line in (one.grid.lines if one.grid is not None else ()) for cell in line
    ]
    return "\n".join((one.title, one.lead, *cards, *cells, *one.lines, one.code, one.foot))
