"""Progress of a run: a live table with rates and time left, or plain lines without a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, Self

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn
from rich.table import Table

from weighbridge.common.quantities import show_bytes
from weighbridge.conductor.influx_writer import InfluxWriter
from weighbridge.conductor.step_runner import Display
from weighbridge.conductor.time_estimate import show_duration
from weighbridge.drivers.protocol import Progress as DriverProgress
from weighbridge.results.figures.reading import percentile, summed
from weighbridge.results.figures.validity import enough_samples
from weighbridge.results.numbers import show_figure, show_ms
from weighbridge.results.run import Histogram, RunStore, StepKey, StepResult, Tally
from weighbridge.results.run.step import driver_label
from weighbridge.results.show.influx import InfluxServer
from weighbridge.results.show.terminal import print_line
from weighbridge.suites import DEFAULT_DRIVER


class Steps(Protocol):
    """What a display needs to know of a plan, or of the course of a tuning."""

    @property
    def steps(self) -> int:
        """How many steps are measured in all, or at most."""


class TimeLeft(Protocol):
    """An estimate of the time left."""

    def left_s(self) -> float:
        """Seconds that are probably left."""


class PlainDisplay:
    """A line for each event, for logs and pipes."""

    def __init__(self, plan: Steps, console: Console, estimate: TimeLeft) -> None:
        self._console = console
        self._plan = plan
        self._estimate = estimate

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """There is nothing to close."""

    def say(self, text: str) -> None:
        """Print the line with the time of day."""
        print_line(self._console, f"{time.strftime('%H:%M:%S')}  {text}")

    def begins(self, key: StepKey, number: int) -> None:
        self.say(f"step {number}/{self._plan.steps}  {step_name(key)}")

    def progress(self, progress: DriverProgress) -> None:
        """Only what has ended gets a line."""

    def ended(self, result: StepResult) -> None:
        rate, bandwidth, p90, longest, errors = _numbers(result)
        text = f"{rate} op/s, {bandwidth} MB/s, p90 {p90} ms, max {longest} ms, {errors} errors"
        text += "" if result.valid else f"; NOT VALID: {'; '.join(result.notes)}"
        self.say(f"    {text}  ({show_duration(self._estimate.left_s())} left)")


class LiveDisplay:
    """A table of the last results above a bar with current step, rates and time left."""

    ROWS = 12

    def __init__(self, plan: Steps, console: Console, estimate: TimeLeft) -> None:
        self._plan = plan
        self._estimate = estimate
        self._rows: list[StepResult] = []
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[rates]}"),
            TextColumn("{task.fields[left]} left"),
            console=console,
            expand=True,
        )
        self._task: TaskID = self._bar.add_task(
            "starting", total=None, rates="", left=show_duration(self._estimate.left_s())
        )
        self._live = Live(console=console, refresh_per_second=4, get_renderable=self._view)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.update(self._task, visible=False)
        self._live.stop()

    def say(self, text: str) -> None:
        """Show the line beside the bar."""
        self._bar.update(
            self._task,
            description=escape(text),
            total=None,
            rates="",
            left=show_duration(self._estimate.left_s()),
        )

    def begins(self, key: StepKey, number: int) -> None:
        self.say(f"step {number}/{self._plan.steps}  {step_name(key)}")

    def progress(self, progress: DriverProgress) -> None:
        """Move the bar and show the rates of the last second."""
        rates = (
            f"{progress.phase}  {show_figure(progress.operations_per_s)} op/s  "
            f"{show_bytes(round(progress.bytes_per_s))}/s"
        )
        if progress.errors:
            rates += f"  [red]{progress.errors} errors[/]"
        left = show_duration(self._estimate.left_s())
        self._bar.update(
            self._task, completed=progress.done, total=progress.total, rates=rates, left=left
        )

    def ended(self, result: StepResult) -> None:
        self._rows.append(result)

    def _view(self) -> Group:
        table = Table("layout", "workload", expand=True, header_style="bold", box=None)
        for name in ("workers", "op/s", "MB/s", "p90 ms", "max ms", "errors"):
            table.add_column(name, justify="right")
        table.add_column("")
        for result in self._rows[-self.ROWS :]:
            key = result.key
            numbers = _numbers(result)
            mark = "" if result.valid else "[yellow]not valid[/]"
            table.add_row(key.layout, key.workload, str(key.workers), *numbers, mark)
        return Group(table, self._bar)


def display_for(plan: Steps, console: Console, estimate: TimeLeft) -> PlainDisplay | LiveDisplay:
    """A live display on a terminal, plain lines elsewhere."""
    if console.is_terminal:
        return LiveDisplay(plan, console, estimate)
    return PlainDisplay(plan, console, estimate)


def step_name(key: StepKey) -> str:
    """A step in words."""
    name = f"{key.layout} {key.api} {key.workload} x{key.workers}"
    if key.layer is None and key.driver != DEFAULT_DRIVER:
        name += f" by {driver_label(key.driver)}"
    if key.layer == "gateway":
        name += " behind its front"
    if key.rate_per_s is not None:
        name += f" at {key.rate_per_s:g}/s"
    return f"{name} repeat {key.repeat + 1}" if key.repeat else name


def _numbers(result: StepResult) -> tuple[str, str, str, str, str]:
    """op/s, MB/s, p90 ms, max ms and errors of a step over all operations; a dash if unknown."""
    measurement = result.measurement
    if measurement is None:
        return ("-", "-", "-", "-", "-")
    tallies = [tally for tally in measurement.complete if tally.count]
    errors = sum(tally.failed for tally in measurement.complete)
    if not tallies:
        return ("0", "0", "-", "-", f"{errors:,}")
    count = sum(tally.count for tally in tallies)
    moved = sum(tally.bytes for tally in tallies)
    return (
        show_figure(count / measurement.window_s),
        show_figure(moved / measurement.window_s / 1e6),
        _p90(tallies) if enough_samples(count, 90) else "-",
        _longest(tallies),
        f"{errors:,}",
    )


def _p90(tallies: Sequence[Tally]) -> str:
    """In ms over all operations, or the bin it lies in; a dash if the driver reports neither."""
    known = [tally.latency for tally in tallies if tally.latency is not None]
    if len(known) == len(tallies):
        merged = Histogram.merged(map(Histogram.decode, known))
        return show_ms(merged.percentile_us(90) / 1e3)
    return _bin(tallies, 90)


def _longest(tallies: Sequence[Tally]) -> str:
    """The slowest request in ms, or the bin it lies in; a dash if the driver reports neither."""
    known = [tally.max_us for tally in tallies if tally.max_us is not None]
    if len(known) == len(tallies):
        return show_ms(max(known) / 1e3)
    return _bin(tallies, 100)


def _bin(tallies: Sequence[Tally], percent: float) -> str:
    bins = [tally.bins for tally in tallies if tally.bins is not None]
    return str(percentile(summed(bins), percent)) if len(bins) == len(tallies) else "-"


# A display that passes everything on to another one, and steps to a writer for an InfluxDB.


class InfluxDisplay:
    """Shows everything on `shown`, and has `writer` send steps."""

    def __init__(self, shown: Display, writer: InfluxWriter) -> None:
        self._shown = shown
        self._writer = writer
        self._key: StepKey | None = None
        self.say = shown.say

    def begins(self, key: StepKey, number: int) -> None:
        """From here on, progress is of this step."""
        self._key = key
        self._shown.begins(key, number)

    def progress(self, progress: DriverProgress) -> None:
        """Sent while a step runs; preparing and cleaning up are only shown."""
        self._shown.progress(progress)
        if self._key is not None:
            self._writer.live(self._key, progress)

    def ended(self, result: StepResult) -> None:
        """The step is in the run folder, where the writer finds its telemetry."""
        self._key = None
        self._shown.ended(result)
        self._writer.step(result)


@contextmanager
def sending(
    server: InfluxServer | None, store: RunStore, say: Callable[[str], None]
) -> Iterator[Callable[[Display], Display]]:
    """Makes a display send, too, if there is a server; at the end the rest is sent or reported."""
    if server is None:
        yield lambda shown: shown
        return
    with InfluxWriter(store, server, say) as writer:
        yield lambda shown: InfluxDisplay(shown, writer)
