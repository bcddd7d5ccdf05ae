"""Chart sources of a run folder, also with other rows in its table, and what a chart shows."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from made_rows import summarize
from weighbridge.results.features.open_run import open_run
from weighbridge.results.figures.summary import Row
from weighbridge.results.judge.comparing import compare
from weighbridge.results.judge.run_data import RunData
from weighbridge.results.run.step import StepResult
from weighbridge.results.run.store import RunStore
from weighbridge.results.show.chart import Chart
from weighbridge.results.show.chart_source import ChartSource


def replaced(data: RunData, results: Mapping[Callable[..., Any], Any]) -> RunData:
    """The run with other results of features, by the functions that make them."""
    for make, result in results.items():
        data.kept[make.__wrapped__] = result  # type: ignore[attr-defined]
    return data


def fake_chart_source(
    store: RunStore,
    rows: Sequence[Row] | None = None,
    results: Mapping[Callable[..., Any], Any] = MappingProxyType({}),
    steps: Iterable[StepResult] = (),
    **more: Any,
) -> ChartSource:
    """The chart source of a run; `results` are those of features, `more` its other fields."""
    data, plan = replaced(open_run(store.folder), results), store.plan()
    if steps:
        data.__dict__["steps"] = {step.key: step for step in steps}
    table = tuple(summarize(plan, store.steps()) if rows is None else rows)
    given = {"data": data, "plan": plan, "rows": table, "comparison": compare(table, plan.twins)}
    return ChartSource(**{**given, **more})


def texts_of(chart: Chart) -> list[str]:
    """Every text in the specs of a chart: not drawn, which takes a hundred times as long."""
    return [text for _, spec in chart.pictures() for text in _texts(spec)]


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)
