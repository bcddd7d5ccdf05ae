"""The languages in which Grafana asks an InfluxDB for what runs sent: InfluxQL, Flux and SQL.

What surrounds a query is Grafana's, and is its data source's in each language: `$timeFilter`,
`v.timeRangeStart` and `v.defaultBucket`, `$__timeFilter`, and `${variable:FORMAT}` for the values
that are chosen.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar, Final

from weighbridge.common.record import Record
from weighbridge.results.influx.points import RUN_TAGS, TAGS

CHOSEN: Final = ("run", "layout", "workload", "workers", "operation")
"""The tags of which the dashboard chooses values."""


class Wanted(Record):
    """A field of one measurement, of gateways only: not of layers below or beside them."""

    measurement: str
    field: str
    valid: bool = False
    """Of valid steps only."""
    optional: bool = False
    """Whether a database may well have no run with it."""

    @property
    def chosen(self) -> tuple[str, ...]:
        """The tags that are chosen and that the measurement has."""
        return tuple(tag for tag in CHOSEN if tag in TAGS[self.measurement])

    @property
    def identity(self) -> tuple[str, ...]:
        """The tags that tell its series apart: a run has one suite, a gateway no layer."""
        return tuple(tag for tag in TAGS[self.measurement] if tag not in ("suite", "layer"))


class Language(ABC):
    """A query language of Grafana's data source for InfluxDB."""

    name: ClassVar[str]
    called: ClassVar[str]
    wide_gaps: ClassVar[bool] = False
    """Whether series come in one table, with gaps where only others have a value."""

    @abstractmethod
    def target(self, wanted: Wanted, legend: str) -> dict[str, Any]:
        """The query of a panel; `legend` names tags as `{tag}`."""

    @abstractmethod
    def values(self, tag: str, measurement: str, within: str) -> str:
        """The query for a tag's values; `within`: only of those chosen of another tag."""

    @abstractmethod
    def annotation(self) -> dict[str, Any]:
        """The query for the beginnings of runs, each with its name as text and its suite as tag."""

    def display_name(self, legend: str) -> str | None:
        """The name of a series as a field option; None where the query names it."""
        return legend.replace("{", "${__field.labels.")

    def hidden(self, wanted: Iterable[Wanted]) -> dict[str, str]:
        """Variables that nobody sees, with their queries, for what is wanted."""
        return {}

    def all_of(self, tag: str) -> str | None:
        """What stands for all values of a variable; None: all that are listed."""
        return None if tag == "layout" else ".*"  # A/A controls are not among those listed


class InfluxQL(Language):
    """InfluxDB 1, and 2 and 3 with their compatible interface."""

    name = "influxql"
    called = "InfluxQL"

    def target(self, wanted: Wanted, legend: str) -> dict[str, Any]:
        """An alias names the series."""
        where = [f'"{tag}" =~ /^${tag}$/' for tag in wanted.chosen]
        where += ["\"layer\" = ''", *(['"valid" = 1'] if wanted.valid else []), "$timeFilter"]
        by = ", ".join(f'"{tag}"' for tag in (*wanted.identity, "layer"))
        return {
            "rawQuery": True,
            "query": f'SELECT "{wanted.field}" FROM "{wanted.measurement}" '  # noqa: S608 - names of ours
            f"WHERE {' AND '.join(where)} GROUP BY {by}",
            "alias": legend.replace("{", "$tag_").replace("}", ""),
            "resultFormat": "time_series",
        }

    def values(self, tag: str, measurement: str, within: str) -> str:
        where = f' WHERE "{within}" =~ /^${within}$/' if within else ""
        return f'SHOW TAG VALUES FROM "{measurement}" WITH KEY = "{tag}"{where}'

    def annotation(self) -> dict[str, Any]:
        """The column `run` is the text."""
        return {
            "query": 'SELECT "layouts", "run", "suite" FROM "weighbridge_run" '
            'WHERE "run" =~ /^$run$/ AND $timeFilter',
            "rawQuery": True,
            # As Grafana writes it where it has read one of older versions: without these, marks
            # have no text.
            "queryType": "tags",
            "fromAnnotations": True,
            "textEditor": True,
            "textColumn": "run",
            "tagsColumn": "suite",
            "titleColumn": "",
            "timeEndColumn": "",
        }

    def display_name(self, legend: str) -> str | None:
        """None: the alias is the name."""
        return None


class Flux(Language):
    """InfluxDB 2, and 1.8 with `flux-enabled = true`."""

    name = "flux"
    called = "Flux"

    def target(self, wanted: Wanted, legend: str) -> dict[str, Any]:
        """A table per series, with tags as labels."""
        chosen = [f"r.{tag} =~ /^${{{tag}:regex}}$/" for tag in wanted.chosen]
        kept = ", ".join(
            f'"{name}"' for name in ("_time", "_value", "_measurement", "_field", *wanted.identity)
        )
        named = f'r._field == "{wanted.field}"'
        steps = [
            *_FROM,
            f'filter(fn: (r) => r._measurement == "{wanted.measurement}")',
            f'filter(fn: (r) => {named} or r._field == "valid")'
            if wanted.valid
            else f"filter(fn: (r) => {named})",
            f"filter(fn: (r) => {' and '.join(chosen)})",
            "filter(fn: (r) => not exists r.layer)",
        ]
        if wanted.valid:
            # A table without the field is empty after the filter, and goes no further.
            steps += [
                'pivot(rowKey: ["_time"], columnKey: ["_field"], valueColumn: "_value")',
                f"filter(fn: (r) => exists r.{wanted.field} and r.valid == 1)",
                f'rename(columns: {{{wanted.field}: "_value"}})',
                f'set(key: "_field", value: "{wanted.field}")',
            ]
        return {"query": _piped([*steps, f"keep(columns: [{kept}])"])}

    def values(self, tag: str, measurement: str, within: str) -> str:
        """The steps of schema.tagValues, which InfluxDB 1.8 does not have."""
        where = f" and r.{within} =~ /^${{{within}:regex}}$/" if within else ""
        return _piped(
            [
                "from(bucket: v.defaultBucket)",
                "range(start: 1970-01-01T00:00:00Z)",
                f'filter(fn: (r) => r._measurement == "{measurement}"{where})',
                f'keep(columns: ["{tag}"])',
                "group()",
                f'distinct(column: "{tag}")',
            ]
        )

    def annotation(self) -> dict[str, Any]:
        """Columns that are named as the parts of an annotation."""
        return {
            "query": _piped(
                [
                    *_FROM,
                    'filter(fn: (r) => r._measurement == "weighbridge_run")',
                    'filter(fn: (r) => r._field == "layouts")',
                    "filter(fn: (r) => r.run =~ /^${run:regex}$/)",
                    "group()",
                    'rename(columns: {run: "text", suite: "tags"})',
                    'keep(columns: ["_time", "text", "tags"])',
                ]
            )
        }


class SQL(Language):
    """InfluxDB 3.

    What was never written is no column, and a query that names it fails. So columns that may be
    missing are put in by hidden variables: as themselves, or as NULL.
    """

    name = "sql"
    called = "SQL"
    wide_gaps = True

    def target(self, wanted: Wanted, legend: str) -> dict[str, Any]:
        """A line per value, in the order of time; Grafana makes series of it."""
        field = f'"{wanted.field}"'
        if wanted.optional:
            field = f"${{{_variable(wanted.measurement, wanted.field)}:raw}}"
        where = [
            "$__timeFilter(time)",
            *(f'"{tag}" IN (${{{tag}:sqlstring}})' for tag in wanted.chosen),
            f"${{{_variable(wanted.measurement, 'layer')}:raw}} IS NULL",
            *(['"valid" = 1'] if wanted.valid else []),
            f"{field} IS NOT NULL",
        ]
        columns = ", ".join(f'"{name}"' for name in ("time", *wanted.identity))
        named = f'{field} AS "{wanted.field}"' if wanted.optional else field
        return self._query(
            f'SELECT {columns}, {named} FROM "{wanted.measurement}" '  # noqa: S608 - as above
            f'WHERE {" AND ".join(where)} ORDER BY "time"',
            "time_series",
        )

    def values(self, tag: str, measurement: str, within: str) -> str:
        where = f' WHERE "{within}" IN (${{{within}:sqlstring}})' if within else ""
        return f'SELECT DISTINCT "{tag}" FROM "{measurement}"{where}'  # noqa: S608 - as above

    def annotation(self) -> dict[str, Any]:
        """Columns that are named as the parts of an annotation."""
        query = (
            'SELECT "time", "run" AS "text", "suite" AS "tags" FROM "weighbridge_run" '
            'WHERE $__timeFilter(time) AND "run" IN (${run:sqlstring}) ORDER BY "time"'
        )
        # Grafana takes a target without `query` for one of older versions, and asks in InfluxQL.
        return {**self._query(query, "table"), "query": query}

    def hidden(self, wanted: Iterable[Wanted]) -> dict[str, str]:
        found = {}
        for one in wanted:
            kinds = {"layer": "VARCHAR", **({one.field: "DOUBLE"} if one.optional else {})}
            for column, kind in kinds.items():
                found[_variable(one.measurement, column)] = (
                    f"SELECT CASE WHEN COUNT(*) > 0 THEN '\"{column}\"' "  # noqa: S608 - as above
                    f"ELSE 'CAST(NULL AS {kind})' END AS \"expression\" "
                    f"FROM information_schema.columns "
                    f"WHERE table_name = '{one.measurement}' AND column_name = '{column}'"
                )
        return found

    def all_of(self, tag: str) -> str | None:
        """None: IN takes no pattern."""
        return None

    def _query(self, query: str, form: str) -> dict[str, Any]:
        return {
            "rawQuery": True,
            "rawSql": query,
            "format": form,
            "editorMode": "code",
            "dataset": "iox",
        }


LANGUAGES: Final = {one.name: one for one in (InfluxQL(), Flux(), SQL())}

_FROM: Final = (
    "from(bucket: v.defaultBucket)",
    "range(start: v.timeRangeStart, stop: v.timeRangeStop)",
)


def home_of(tag: str) -> str:
    """The measurement whose values of a tag are listed."""
    return "weighbridge_run" if tag in RUN_TAGS else "weighbridge_step"


def _variable(measurement: str, column: str) -> str:
    return f"{measurement.removeprefix('weighbridge_')}_{column}"


def _piped(steps: list[str]) -> str:
    return "\n  |> ".join(steps)
