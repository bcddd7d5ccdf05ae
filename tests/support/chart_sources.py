"""Chart sources of a run folder, also with other rows in its table, and what a chart shows."""

from collections.abc import Iterator, Sequence
from typing import Any

from weighbridge.results.analysis.comparing import compare
from weighbridge.results.analysis.steps.summary import Row, summarize
from weighbridge.results.charts.chart_source import ChartSource
from weighbridge.results.charts.composer import compose
from weighbridge.results.charts.panels import Figure
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


def texts_of(figure: Figure) -> list[str]:
    """Every text in the spec of a figure: not drawn, which takes a hundred times as long."""
    return list(_texts(compose(figure)))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)
