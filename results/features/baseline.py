"""A stored baseline: what the hosts of a hardware file can do vs what the file promises."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from weighbridge.common.csv_text import csv_lines
from weighbridge.common.record import Record
from weighbridge.results.judge.host_equality import BOUNDS, FREE_BOUND, show
from weighbridge.results.numbers import UNKNOWN, all_of, grouped, show_share, upper
from weighbridge.results.run import Kind, Unit
from weighbridge.results.show.chart import Chart, Panel, layer
from weighbridge.results.show.scales import names_encoding

Group = Literal["cpu", "disk", "disks", "network", "fabric"]

TITLES: Final[dict[Group, str]] = {
    "cpu": "CPU",
    "disk": "Each disk alone",
    "disks": "Disks at once",
    "network": "The network, pair by pair",
    "fabric": "The network, all hosts at once",
}
COLUMNS: Final = (
    *("host", "group", "what", "value", "unit", "promised", "share_of_promised"),
    *("operation", "pick", "request_bytes", "sender", "receiver"),
)


class HostFigure(Record):
    """One figure of one host; higher is better. Equals have the same `job`, `group`, `like`."""

    host: str
    kind: Kind
    group: Group
    what: str
    job: str
    like: str = ""
    value: Annotated[float, Field(gt=0)]
    unit: Unit
    promised: Annotated[float, Field(gt=0)] | None = None
    operation: Literal["read", "write"] | None = None
    pick: Literal["sequential", "random"] | None = None
    request_bytes: int | None = None
    sender: str | None = None
    receiver: str | None = None

    @property
    def share_of_promised(self) -> float | None:
        """The figure relative to what was promised; None without a promise."""
        return None if self.promised is None else self.value / self.promised

    @property
    def bound(self) -> float:
        """The relative difference up to which figures count as equal."""
        return FREE_BOUND if self.promised is None else BOUNDS[self.kind]

    @property
    def shown(self) -> str:
        """For example `197 MB/s`."""
        return show(self.value, self.unit)

    @property
    def promise_shown(self) -> str:
        return UNKNOWN if self.promised is None else show(self.promised, self.unit)

    @property
    def place(self) -> str:
        """What it is of, in a sentence."""
        if self.group == "network":
            return f"the network from {self.sender} to {self.receiver}"
        return f"{self.what} on {self.host}"


class Baseline(Record):
    """`baseline.json`."""

    hardware: str
    about: str
    measured_at: str
    """UTC, ISO 8601."""
    took_s: float
    tools: dict[str, str]
    machine: dict[str, str]
    figures: Annotated[tuple[HostFigure, ...], Field(min_length=1)]


def baseline_csv(figures: Sequence[HostFigure]) -> str:
    """One line per figure; unknown values are empty."""
    lines = ([getattr(figure, name) for name in COLUMNS] for figure in figures)
    return csv_lines(COLUMNS, lines)


def oddities(figures: Sequence[HostFigure]) -> tuple[str, ...]:
    """Anomalies, a sentence each: missed promises, and equals that differ (see `host_equality`)."""
    short = [
        f"{figure.place} gave {figure.shown}, {show_share(1 - share)} less than the "
        f"{figure.promise_shown} promised"
        for figure in figures
        # What all hosts do at once has its own sentence.
        if figure.group != "fabric"
        and (share := figure.share_of_promised) is not None
        and 1 - share > figure.bound
    ]
    return (*short, *_unlike(figures), *_lopsided(figures), *_crowded(figures))


def _unlike(figures: Sequence[HostFigure]) -> Iterator[str]:
    """Those of three or more equals that differ; of two, nobody knows which is wrong."""
    alone = [figure for figure in figures if figure.group in ("cpu", "disk")]
    for equals in grouped(alone, lambda one: (one.group, one.job, one.like)).values():
        if len(equals) == 2:
            low, high = sorted(equals, key=lambda figure: figure.value)
            if 1 - low.value / high.value > low.bound:
                yield f"{low.place} gave {low.shown}, vs {high.shown} on {high.host}"
            continue
        median = statistics.median(figure.value for figure in equals)
        for figure in equals:
            apart = 1 - figure.value / median
            if abs(apart) > figure.bound:
                yield (
                    f"{figure.place} gave {figure.shown}, {show_share(abs(apart))} "
                    f"{'less' if apart > 0 else 'more'} than the median of the {len(equals)} "
                    f"({show(median, figure.unit)})"
                )


def _lopsided(figures: Sequence[HostFigure]) -> Iterator[str]:
    network = [figure for figure in figures if figure.group == "network"]
    ways = {(figure.sender, figure.receiver): figure for figure in network}
    for figure in network:
        back = ways.get((figure.receiver, figure.sender))
        if back is not None and (less := 1 - figure.value / back.value) > figure.bound:
            sends = f"{figure.sender} sends {figure.shown} to {figure.receiver}"
            yield (f"{sends}, {show_share(less)} less than the {back.shown} in the other direction")


def _crowded(figures: Sequence[HostFigure]) -> Iterator[str]:
    """What all hosts send at once, relative to their NICs' limits."""
    sent = [figure for figure in figures if figure.group == "fabric" and figure.job == "sent"]
    promises = [figure.promised for figure in sent if figure.promised is not None]
    if sent and len(promises) == len(sent):
        total, promised = sum(figure.value for figure in sent), sum(promises)
        if 1 - total / promised > BOUNDS["network"]:
            passed = f"{show(total, 'bit/s')} of the {show(promised, 'bit/s')} of their NICs"
            hosts, share = all_of(len(sent), "hosts"), show_share(total / promised)
            yield f"when {hosts} send at once, they reach {passed} ({share})"


ROW_PX: Final = 26
MAX_BARS: Final = 40
"""Of a group: of more, the lowest are drawn, since those are of interest."""
ROOM: Final = 1.5


def baseline_chart(baseline: Baseline) -> Chart:
    """The chart of a baseline; its title is the first irregularity."""
    odd = oddities(baseline.figures)
    finding = f"The hosts of {baseline.hardware} are equal and reach what is promised"
    if odd:
        finding = upper(odd[0])
    if len(odd) > 1:
        finding += f"; {len(odd) - 1} more {'things are' if len(odd) > 2 else 'thing is'} odd"
    groups = [
        (group, [figure for figure in baseline.figures if figure.group == group])
        for group in TITLES
    ]
    return Chart(
        key="baseline",
        title="What hosts can do",
        finding=finding,
        caption=f"What the hosts of {baseline.hardware} can do without a gateway. Vertical line: "
        "what the hardware file promises.",
        panels=tuple(_panel(group, figures) for group, figures in groups if figures),
    )


def _panel(group: Group, figures: Sequence[HostFigure]) -> Panel:
    shown = sorted(sorted(figures, key=lambda figure: figure.value)[:MAX_BARS], key=figures.index)
    left = f" (the lowest {len(shown)} of {len(figures)})" if len(shown) < len(figures) else ""
    rows = [_row(figure, drawn=figure in shown) for figure in figures]
    names = [row["_name"] for row in rows if row["_name"]]
    end = max(row["_end"] for row in rows)
    colour = {
        "field": "group",
        "type": "nominal",
        "scale": {"domain": [*TITLES], "range": "ordinal"},
        "legend": None,
    }
    where = "isValid(datum._name)"
    promised = layer("tick", "", f"{where} && datum.promised", x="promised")
    promised["mark"] |= {"thickness": 3, "color": "$ink"}
    scale = {"domain": [0, end * ROOM], "nice": False}
    return Panel(
        key=group,
        title=f"{TITLES[group]}{left}",
        rows=rows,
        spec={
            "encoding": {
                "x": {"type": "quantitative", "scale": scale, "axis": None},
                "y": {**names_encoding(names), "field": "_name"},
            },
            "layer": [
                layer("bar", "", where, x="value", x2={"datum": 0}, color=colour),
                promised,
                layer("text", "figure", where, x="_end", text="_text"),
            ],
        },
        height=ROW_PX * len(names),
    )


def _row(figure: HostFigure, *, drawn: bool) -> dict[str, Any]:
    between = figure.group == "network"
    name = f"{figure.sender} to {figure.receiver}" if between else f"{figure.host}: {figure.what}"
    share = figure.share_of_promised
    text = figure.shown if share is None else f"{figure.shown}, {show_share(share)}"
    return {
        **figure.model_dump(),
        "_name": name if drawn else None,
        "_end": max(figure.value, figure.promised or 0),
        "_text": text,
    }
