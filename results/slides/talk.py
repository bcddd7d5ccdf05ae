"""The talk of a run: which slides, in which order."""

from __future__ import annotations

from weighbridge.results.charts.chart_theme import LIGHT, Look
from weighbridge.results.slides.closing import closing
from weighbridge.results.slides.evidence import Evidence
from weighbridge.results.slides.limits import where_time_goes
from weighbridge.results.slides.opening import answer, opening
from weighbridge.results.slides.recap import recap
from weighbridge.results.slides.requests import requests
from weighbridge.results.slides.setup import setup
from weighbridge.results.slides.slide import Deck
from weighbridge.results.slides.tuning import tuning
from weighbridge.results.slides.tuning_talk import tuning_talk


def talk(evidence: Evidence, look: Look = LIGHT) -> Deck:
    """The slides: the answer, the set-up, the map, each kind of requests, where time goes, tuning,
    limits, how to repeat it.
    """
    manifest, plan = evidence.manifest, evidence.plan
    if evidence.tuned is not None:
        return tuning_talk(evidence, evidence.tuned, look)
    return Deck(
        title=answer(evidence),
        subject=f"{plan.suite.about}: {', '.join(evidence.layouts)}",
        footer=f"Weighbridge · {plan.suite.name} · {manifest.created_at[:10]}",
        dated=manifest.created_at,
        look=look,
        colours=tuple(style.colour for style in evidence.drawn(look).values()),
        slides=(
            opening(evidence, look),
            *setup(evidence, look),
            *recap(evidence, evidence.comparison, look),
            *requests(evidence, look),
            *where_time_goes(evidence, look),
            *tuning(evidence, evidence.comparison, look),
            *closing(evidence),
        ),
    )
