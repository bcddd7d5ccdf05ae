import io
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from rich.console import Console

from made_up import fake_measurement
from stub_run import Run
from weighbridge.conductor.time_estimate import TimeEstimate
from weighbridge.drivers.protocol import Progress
from weighbridge.results.record.step import StepKey, StepResult
from weighbridge.screen.display import LiveDisplay, PlainDisplay, display_for

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
        display.progress(
            Progress(
                phase="measure", done=1, total=5, operations_per_s=100, bytes_per_s=1e8, errors=2
            )
        )
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
    with plain(run) as (display, text):
        display.begins(KEY, 1)
        display.ended(GOOD)
    first, second = text.getvalue().splitlines()
    assert first.endswith("step 1/6  rgw-a swift small x4")
    assert "    400 op/s, 400 MB/s, p90 15.2 ms, max 44.5 ms" in second
    assert " left)" in second


def test_a_rate_below_one_a_second_is_not_shown_as_none(run: Run) -> None:
    assert GOOD.measurement is not None
    rare = GOOD.measurement.model_copy(update={"window_s": 160_000.0})
    with plain(run) as (display, text):
        display.ended(GOOD.model_copy(update={"measurement": rare}))
    assert "    0.0500 op/s, 0.0500 MB/s, " in text.getvalue()


def test_bins_and_missing_percentiles_are_shown_as_such(run: Run) -> None:
    key = KEY.model_copy(update={"driver": "cosbench"})
    measured = fake_measurement(
        workload="small", mean_ms=14.5, spread=0.001, operations={"read": 1, "write": 1}, bins=True
    )
    bench = measured.model_copy(
        update={
            "tallies": tuple(
                tally.model_copy(update={"bins": None, "max_us": 90_000})
                for tally in measured.tallies
            )
        }
    )
    with plain(run) as (display, text):
        for measurement in (measured, bench):
            display.begins(key, 1)
            display.ended(StepResult(key=key, measurement=measurement, valid=True, order=0))
    first, second, _, fourth = text.getvalue().splitlines()
    assert first.endswith("rgw-a swift small x4 by COSBench")
    assert "p90 (10, 20] ms, max (10, 20] ms" in second
    assert "p90 - ms, max 90.0 ms" in fourth
