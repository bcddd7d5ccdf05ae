from __future__ import annotations

from collections.abc import Iterator

from weighbridge.results.show.theme import LIGHT, Look
from weighbridge.results.slides.closing import closing
from weighbridge.results.slides.durability_slide import durability_slides
from weighbridge.results.slides.evidence import Evidence
from weighbridge.results.slides.latency_slide import latency_slide
from weighbridge.results.slides.limits import where_time_goes
from weighbridge.results.slides.opening import answer, opening
from weighbridge.results.slides.recap import recap
from weighbridge.results.slides.request_group import request_groups
from weighbridge.results.slides.setup import setup
from weighbridge.results.slides.slide import Deck, Slide
from weighbridge.results.slides.throughput_slide import throughput_slide
from weighbridge.results.slides.tuning import tuning
from weighbridge.results.slides.tuning_talk import tuning_talk


def talk(evidence: Evidence, look: Look = LIGHT) -> Deck:
    """The deck of a comparison, or of a tuning."""
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
            *_requests(evidence),
            *durability_slides(evidence.durability, look),
            *where_time_goes(evidence, look),
            *tuning(evidence, evidence.comparison),
            *closing(evidence),
        ),
    )


def _requests(evidence: Evidence) -> Iterator[Slide]:
    for group in request_groups(evidence):
        if (latency := latency_slide(evidence, group)) is not None:
            yield latency
        yield throughput_slide(evidence, group)
