"""Write the dashboard for Grafana in one query language (`influxql`, `flux`, `sql`) to stdout.

Run by `make reference`. The panels are declared once, here; `grafana_queries.py` has the languages.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any, Final, Literal

from grafana_queries import LANGUAGES, Language, Wanted, home_of

from weighbridge.common.record import Record
from weighbridge.conductor.plan import AGAIN

SOURCE: Final = {"type": "influxdb", "uid": "${source}"}
LEGENDS: Final = {
    "weighbridge_second": "{layout} {workload} {operation}, {workers} workers, repeat {repeat}",
    "weighbridge_step": "{layout} {workload} {operation}, {workers} workers, repeat {repeat}",
    "weighbridge_host": (
        "{layout} {host} ({tier}), {workload}, {workers} workers, repeat {repeat}, {phase}"
    ),
    "weighbridge_live": "{layout} {workload}, {workers} workers, repeat {repeat}, {phase}",
}
"""The name of a series; `{tag}` is the value of a tag."""
BROKEN_AFTER_MS: Final = 5000
"""Where series come in one table, points of a series that are closer are joined."""


class Line(Record):
    """A field, drawn as lines or points; `says` follows the name of each of its series."""

    field: str
    says: str = ""
    optional: bool = False
    """Whether a database may well have no run with it."""


class Panel(Record):
    """A chart over time, with its place on Grafana's 24 columns."""

    title: str
    about: str
    measurement: str
    lines: tuple[Line, ...]
    unit: str
    """Grafana's id of a unit."""
    place: tuple[int, int, int, int]
    """x, y, width, height."""
    drawn: Literal["line", "points"] = "line"
    valid: bool = False
    """Of valid steps only."""
    scale: Literal["linear", "log"] = "linear"
    low: int | None = 0
    high: int | None = None

    @property
    def wanted(self) -> tuple[Wanted, ...]:
        """What is asked of the database, a field for each line."""
        return tuple(
            Wanted(
                measurement=self.measurement,
                field=line.field,
                valid=self.valid,
                optional=line.optional,
            )
            for line in self.lines
        )


PANELS: Final = (
    Panel(
        title="Throughput, every second",
        about=(
            "Operations a second inside the window of each step, as its driver counted them; "
            "failures are not among them."
        ),
        measurement="weighbridge_second",
        lines=(Line(field="ops"),),
        unit="ops",
        place=(0, 0, 12, 9),
    ),
    Panel(
        title="Latency, every second",
        about="Mean and highest latency of each second; percentiles are of entire steps, below.",
        measurement="weighbridge_second",
        lines=(Line(field="mean_ms", says=": mean"), Line(field="max_ms", says=": max")),
        unit="ms",
        place=(12, 0, 12, 9),
        scale="log",
        low=None,
    ),
    Panel(
        title="Throughput of steps",
        about="One point a step and repeat, at the end of its window; only of valid steps.",
        measurement="weighbridge_step",
        lines=(Line(field="throughput_ops_s"),),
        unit="ops",
        place=(0, 9, 12, 9),
        drawn="points",
        valid=True,
    ),
    Panel(
        title="p90 of steps",
        about=(
            "One point a step and repeat; none where fewer than 20 samples lie beyond it, or where "
            "the driver keeps bins: those are the two ends of an interval."
        ),
        measurement="weighbridge_step",
        lines=(
            Line(field="p90_ms", optional=True),
            Line(field="p90_low_ms", says=": more than", optional=True),
            Line(field="p90_high_ms", says=": at most", optional=True),
        ),
        unit="ms",
        place=(12, 9, 12, 9),
        drawn="points",
        valid=True,
    ),
    Panel(
        title="Failures of steps",
        about="Requests that failed inside the window, of all steps, valid or not.",
        measurement="weighbridge_step",
        lines=(Line(field="errors"),),
        unit="short",
        place=(0, 18, 12, 8),
        drawn="points",
    ),
    Panel(
        title="Valid and steady",
        about="1: yes, 0: no; no point where steadiness is unknown.",
        measurement="weighbridge_step",
        lines=(
            Line(field="valid", says=": valid"),
            Line(field="steady", says=": steady", optional=True),
        ),
        unit="short",
        place=(12, 18, 12, 8),
        drawn="points",
        high=1,
    ),
    Panel(
        title="CPU of hosts",
        about="Share of the CPU that a host may use; of hosts without a limit there is none.",
        measurement="weighbridge_host",
        lines=(Line(field="cpu_share", optional=True),),
        unit="percentunit",
        place=(0, 26, 12, 9),
        high=1,
    ),
    Panel(
        title="Disks of hosts",
        about="Share of the time that the busiest disk of a host had a request in progress.",
        measurement="weighbridge_host",
        lines=(Line(field="disk_busy_share", optional=True),),
        unit="percentunit",
        place=(12, 26, 12, 9),
        high=1,
    ),
    Panel(
        title="Network of hosts",
        about="Bytes a second.",
        measurement="weighbridge_host",
        lines=(
            Line(field="received_bytes_s", says=": received"),
            Line(field="sent_bytes_s", says=": sent"),
        ),
        unit="Bps",
        place=(0, 35, 12, 9),
    ),
    Panel(
        title="Memory of hosts",
        about="Without the page cache of files.",
        measurement="weighbridge_host",
        lines=(Line(field="memory_held_bytes", optional=True),),
        unit="bytes",
        place=(12, 35, 12, 9),
    ),
    Panel(
        title="While a step runs",
        about=(
            "What drivers report as they go, with warm-up and drain: for watching; the figures are "
            "those above."
        ),
        measurement="weighbridge_live",
        lines=(Line(field="ops_s"),),
        unit="ops",
        place=(0, 44, 24, 8),
    ),
)


class Variable(Record):
    """A choice of a tag's values, of runs or of steps that were chosen before."""

    tag: str
    within: str = ""
    sort: int = 1
    """Grafana's order: 1 by letter, 2 by letter from the last, 3 by number."""
    multi: bool = True
    shown: str = ""
    """A regular expression of the values that are shown."""


VARIABLES: Final = (
    Variable(tag="suite", multi=False),
    Variable(tag="run", within="suite", sort=2),
    Variable(tag="layout", within="run", shown=f"/^(?!.*{AGAIN}$)/"),
    Variable(tag="workload", within="run"),
    Variable(tag="workers", within="run", sort=3),
    Variable(tag="operation", within="run"),
)
_ON_LOAD: Final = 1
_ON_TIME_RANGE: Final = 2
_HIDDEN: Final = 2


def dashboard(language: Language) -> dict[str, Any]:
    """The dashboard as Grafana imports it."""
    default = language.name == "influxql"
    return {
        "uid": "weighbridge" if default else f"weighbridge-{language.name}",
        "title": "Weighbridge" if default else f"Weighbridge ({language.called})",
        "description": (
            f"Runs of Weighbridge in an InfluxDB, queried in {language.called}. They are sent by "
            "weighbridge compare --influx URL, or weighbridge export RUN --to influx. A/A controls "
            "are left out."
        ),
        "tags": ["weighbridge"],
        "timezone": "utc",
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [*_variables(language)]},
        "annotations": {"list": [_annotation(language)]},
        "panels": [_panel(number, one, language) for number, one in enumerate(PANELS, start=1)],
        "links": [],
    }


def _variables(language: Language) -> Iterator[dict[str, Any]]:
    yield {
        "name": "source",
        "label": "Source",
        "type": "datasource",
        "query": "influxdb",
        "refresh": _ON_LOAD,
        "hide": 0,
    }
    for one in VARIABLES:
        every = language.all_of(one.tag)
        yield {
            **_variable(one.tag, language.values(one.tag, home_of(one.tag), one.within)),
            "label": one.tag.capitalize(),
            "refresh": _ON_TIME_RANGE,
            "sort": one.sort,
            "multi": one.multi,
            "includeAll": True,
            "current": {"text": ["All"], "value": ["$__all"]},
            "hide": 0,
            **({"allValue": every} if every is not None else {}),
            **({"regex": one.shown} if one.shown else {}),
        }
    asked = [wanted for panel in PANELS for wanted in panel.wanted]
    for name, query in language.hidden(asked).items():
        yield {**_variable(name, query), "refresh": _ON_TIME_RANGE, "hide": _HIDDEN}


def _variable(name: str, query: str) -> dict[str, Any]:
    return {
        "name": name,
        "type": "query",
        "datasource": SOURCE,
        "query": query,
        "definition": query,
    }


def _annotation(language: Language) -> dict[str, Any]:
    return {
        "name": "Runs",
        "datasource": SOURCE,
        "enable": True,
        "iconColor": "#0072B2",
        "target": {"refId": "runs", **language.annotation()},
    }


def _panel(number: int, one: Panel, language: Language) -> dict[str, Any]:
    x, y, width, height = one.place
    legend = LEGENDS[one.measurement]
    named = [
        (ref, wanted, f"{legend}{line.says}")
        for ref, wanted, line in zip("ABC", one.wanted, one.lines, strict=False)
    ]
    points = one.drawn == "points"
    return {
        "id": number,
        "type": "timeseries",
        "title": one.title,
        "description": one.about,
        "datasource": SOURCE,
        "gridPos": {"x": x, "y": y, "w": width, "h": height},
        "fieldConfig": {
            "defaults": {
                "unit": one.unit,
                "custom": {
                    "drawStyle": one.drawn,
                    "lineWidth": 2,
                    "pointSize": 6 if points else 4,
                    "showPoints": "always" if points else "auto",
                    "fillOpacity": 0,
                    "spanNulls": BROKEN_AFTER_MS if language.wide_gaps else False,
                    "scaleDistribution": {"type": "log", "log": 10}
                    if one.scale == "log"
                    else {"type": "linear"},
                },
                **({"min": one.low} if one.low is not None else {}),
                **({"max": one.high} if one.high is not None else {}),
            },
            "overrides": [
                {
                    "matcher": {"id": "byFrameRefID", "options": ref},
                    "properties": [{"id": "displayName", "value": name}],
                }
                for ref, _, legend in named
                if (name := language.display_name(legend)) is not None
            ],
        },
        "options": {
            "legend": {
                "displayMode": "table",
                "placement": "bottom",
                "showLegend": True,
                "calcs": ["median", "max"],
            },
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
        "targets": [
            {"refId": ref, "datasource": SOURCE, **language.target(wanted, legend)}
            for ref, wanted, legend in named
        ],
    }


def main() -> None:
    """Print the dashboard."""
    sys.stdout.write(json.dumps(dashboard(LANGUAGES[sys.argv[1]]), indent=1) + "\n")


if __name__ == "__main__":
    main()
