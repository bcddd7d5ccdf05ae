from __future__ import annotations

from collections.abc import Sequence

from weighbridge.results.analysis.across_runs.runs_summary import RunsSummary
from weighbridge.results.analysis.words import verdict_words
from weighbridge.results.report.page import render
from weighbridge.results.report.tables import EFFECT_HEAD, EFFECT_NUMBERS, effect_lines
from weighbridge.results.show.chart import Chart
from weighbridge.results.statistics import REPEATS_FOR_A_CLAIM


def runs_page(summary: RunsSummary, maps: Sequence[Chart]) -> str:
    """Render the page; `maps` are those of the comparison."""
    comparison = summary.comparison
    return render(
        "runs.html.j2",
        maps,
        summary=summary,
        manifest=summary.b.manifest,
        headline=summary.headline,
        counts=verdict_words(comparison),
        over_all=[
            one.text
            for one in comparison.effects
            if one.workers is None and one.text not in summary.verdict.details
        ],
        comparison=comparison,
        maps=maps,
        effect_head=EFFECT_HEAD,
        effect_numbers=EFFECT_NUMBERS,
        effect_lines=effect_lines(comparison),
        claim_repeats=REPEATS_FOR_A_CLAIM,
    )
