"""Chart sources of a run folder, also with other rows in its table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weighbridge.results.analysis.comparing import compare
from weighbridge.results.analysis.steps.summary import Row, summarize
from weighbridge.results.charts.chart_source import ChartSource
from weighbridge.results.record.store import RunStore


def fake_chart_source(
    store: RunStore, rows: Sequence[Row] | None = None, **more: Any
) -> ChartSource:
    """The chart source of a run; `more` are its other fields."""
    plan = store.plan()
    table = tuple(summarize(plan, store.steps()) if rows is None else rows)
    given = {
        "plan": plan,
        "rows": table,
        "steps": tuple(store.steps()),
        "comparison": compare(table, plan.twins),
    }
    return ChartSource(**{**given, **more})
