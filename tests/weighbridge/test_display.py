from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from rich.console import Console

from made_rows import present
from made_up import fake_measurement
from stub_run import Run
from weighbridge.conductor.time_estimate import TimeEstimate
from weighbridge.display import LiveDisplay, PlainDisplay, display_for
from weighbridge.drivers.protocol import Progress
from weighbridge.results.run.step import StepKey, StepResult
from weighbridge.results.show.section import Grid
from weighbridge.results.show.terminal import InertConsole, new_table, print_grid, print_line

TEXT = (
    "• rgw-beast serves 3.0× swift’s 64 kB reads at 16 workers; the noise floor is 1.2×, by a path "
    "of /srv/runs/20261127T084636Z-quick-213880ce/derived/report.html and more"
)


def printed(text: str, width: int, *, terminal: bool) -> list[str]:
    screen = io.StringIO()
    print_line(InertConsole(width=width, file=screen, force_terminal=terminal, no_color=True), text)
    return screen.getvalue().splitlines()


def test_on_a_terminal_lines_are_broken_between_words_and_go_on_below_their_text() -> None:
    lines = printed(TEXT, 40, terminal=True)
    assert len(lines) > 4
    assert [line.strip() for line in lines if len(line) > 40] == [
        "/srv/runs/20261127T084636Z-quick-213880ce/derived/report.html"
    ]
    assert all(line.startswith("  ") for line in lines[1:])
    assert " ".join(line.strip() for line in lines) == TEXT


def test_a_text_that_fits_and_elsewhere_any_line_stay_as_they_are() -> None:
    assert printed("a\n\n  indented  twice", 40, terminal=True) == ["a", "", "  indented  twice"]
    assert printed(TEXT, 40, terminal=False) == [TEXT]


HEAD = (
    "Workers",
    *(
        f"{layout} {what}"
        for layout in ("RGW-CivetWeb", "Swift-Native")
        for what in ("90 % RT, ms", "Max RT, ms", "MB/s")
    ),
    "beside",
)
LINES = tuple(
    (
        f"{n} (study: {n * 32})",
        *("59.1", "not ranked", "[bold]1,234") * 2,
        f"rgw-apache-fastcgi, {n}",
    )
    for n in (1, 16)
)


@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_tables_break_no_word_and_have_their_labels_in_each_part(width: int) -> None:
    screen = io.StringIO()
    print_grid(InertConsole(width=width, file=screen), Grid("", HEAD, LINES, range(1, 7)))
    lines = screen.getvalue().splitlines()
    assert max(len(line.rstrip()) for line in lines) <= width
    shown = screen.getvalue().split()
    parts = sum("─" in line for line in lines)
    assert (parts == 1) == (width >= 120)
    for text, count in (
        ("RGW-CivetWeb", 3),
        ("Swift-Native", 3),
        ("Workers", parts),
        ("rgw-apache-fastcgi,", 2),
        ("[bold]1,234", 4),
        ("beside", 1),
        ("(study:", 2 * parts),
    ):
        assert shown.count(text) == count, text


def test_a_table_of_labels_alone_is_one() -> None:
    screen = io.StringIO()
    print_grid(InertConsole(width=80, file=screen), Grid("", ["a", "b"], [["1", "2"]], labels=2))
    lines = [line.split() for line in screen.getvalue().splitlines()[::2]]
    assert lines == [["a", "b"], ["1", "2"]]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_tables_take_room_from_sentences_and_leave_names_whole(width: int) -> None:
    screen = io.StringIO()
    table = new_table("by the size of hosts", "why", "layouts")
    name, why = "radosgw.max_concurrent_requests", "64 per CPU, at least 1024 per daemon"
    table.add_row(name, f"{why}: gateway-1 has 0.7", "rgw-beast")
    InertConsole(width=width, file=screen).print(table)
    lines = screen.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert sum(name in line and "rgw-beast" in line for line in lines) == 1


KEY = StepKey(layout="rgw-a", api="swift", workload="small", workers=4, repeat=0)
GOOD = StepResult(key=KEY, measurement=fake_measurement(workload="small"), valid=True, order=0)
LOST = StepResult(key=KEY, measurement=None, valid=False, notes=("the driver [ended]",), order=1)


@pytest.mark.parametrize("terminal", [True, False])
def test_a_display_shows_steps_errors_and_names_with_brackets_as_they_are(
    run: Run, terminal: bool
) -> None:
    text = io.StringIO()
    console = Console(file=text, force_terminal=terminal, width=140)
    with display_for(run.plan(), console, TimeEstimate.of(run.plan())) as display:
        display.say("starting [rgw]")
        display.begins(KEY, 1)
        rates = {"operations_per_s": 100, "bytes_per_s": 1e8, "errors": 2}
        window = {"phase": "measure", "done": 1, "total": 5}
        display.progress(Progress.model_validate({**window, **rates}))
        display.ended(GOOD)
        display.begins(KEY, 2)
        display.ended(LOST)
    assert isinstance(display, LiveDisplay if terminal else PlainDisplay)
    assert "rgw-a" in text.getvalue()
    if not terminal:
        assert "starting [rgw]" in text.getvalue()
        assert "NOT VALID: the driver [ended]" in text.getvalue()
        assert "\x1b" not in text.getvalue()


@contextmanager
def plain(run: Run) -> Iterator[tuple[PlainDisplay, io.StringIO]]:
    """A display without a terminal, and what it prints."""
    text, plan = io.StringIO(), run.plan()
    with PlainDisplay(plan, Console(file=text, width=200), TimeEstimate.of(plan)) as display:
        yield display, text


def test_plain_lines_show_rate_bandwidth_p90_and_time_left(run: Run) -> None:
    rare = present(GOOD.measurement).model_copy(update={"window_s": 160_000.0})
    with plain(run) as (display, text):
        display.begins(KEY, 1)
        display.ended(GOOD)
        display.ended(GOOD.model_copy(update={"measurement": rare}))
    first, second, third = text.getvalue().splitlines()
    assert first.endswith("step 1/6  rgw-a swift small x4")
    assert "    400 op/s, 400 MB/s, p90 15.2 ms, max 44.5 ms" in second
    assert " left)" in second
    assert "    0.0500 op/s, 0.0500 MB/s, " in third


def test_bins_and_missing_percentiles_are_shown_as_such(run: Run) -> None:
    key = KEY.model_copy(update={"driver": "cosbench"})
    measured = fake_measurement(
        workload="small", mean_ms=14.5, spread=0.001, operations={"read": 1, "write": 1}, bins=True
    )
    unbinned = {"bins": None, "max_us": 90_000}
    tallies = tuple(tally.model_copy(update=unbinned) for tally in measured.tallies)
    bench = measured.model_copy(update={"tallies": tallies})
    with plain(run) as (display, text):
        for measurement in (measured, bench):
            display.begins(key, 1)
            display.ended(StepResult(key=key, measurement=measurement, valid=True, order=0))
    first, second, _, fourth = text.getvalue().splitlines()
    assert first.endswith("rgw-a swift small x4 by COSBench")
    assert "p90 (10, 20] ms, max (10, 20] ms" in second
    assert "p90 - ms, max 90.0 ms" in fourth
