"""`compare --find` as a command, on pretended hosts with a driver of made-up figures."""

from __future__ import annotations

import csv
import io
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.weighbridge.killed_runs import LAYOUTS, compared_stubs
from weighbridge.command import main
from weighbridge.results.analysis.find.searches import MOST_STEPS
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.record.step import StepResult
from weighbridge.results.record.store import RunStore

Cli = Callable[..., tuple[int, str, str]]


LISTS = """\
  - name: lists
    objects: {size: 4KiB}
    operations: {list: 1}
    workers: [1]
    runtime: 2s
"""


@pytest.fixture
def arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """The command without a bound."""
    monkeypatch.setenv("COLUMNS", "200")
    return compared_stubs(tmp_path, monkeypatch, more="repeats: 5\n", workloads=LISTS)


def only(folder: Path) -> Path:
    (found,) = (folder / "runs").iterdir()
    return found


@pytest.mark.parametrize(
    ("bound", "hint"),
    [
        (("p900<=50ms",), "did you mean 'p90'?"),
        (("p90<=50",), "is not a quantity"),
        (("p90<50ms",), "is not <="),
        (("throughput<=5ms",), "is not a latency"),
        (("p90<=50ms", "--driver", "cosbench"), "not at a rate"),
    ],
)
def test_a_wrong_bound_and_a_driver_without_rates_are_refused_before_anything_starts(
    tmp_path: Path, arguments: tuple[str, ...], run_cli: Cli, bound: tuple[str, ...], hint: str
) -> None:
    code, _, err = run_cli(*arguments, "--find", *bound)
    assert code == 2
    assert hint in err
    assert not (tmp_path / "runs").exists()


def test_the_answer_is_a_sentence_a_table_and_a_bar_in_terminal_and_report(
    tmp_path: Path, arguments: tuple[str, ...], run_cli: Cli
) -> None:
    code, out, err = run_cli(*arguments, "--find", "p90<=20ms")
    assert (code, err) == (0, "")
    assert "no rate is searched for lists" in out
    sentence = next(line for line in out.splitlines() if line.startswith("4 KiB reads within"))
    assert sentence.startswith("4 KiB reads within p90 <= 20 ms over 4 connections: rgw-a serves ")
    assert ", swift-b " in sentence
    assert "provisional: few repeats" in sentence
    assert "The closed loop before each search:" in out
    store = RunStore.open(only(tmp_path))
    assert {step.key.repeat for step in store.steps()} == {0}
    assert {step.key.workload for step in store.steps()} == {"small"}
    report = (store.derived / "report.html").read_text()
    assert "The highest rates within p90 &lt;= 20 ms" in report
    assert sentence.rstrip(".") in report.replace("&lt;", "<")
    assert 'id="highest-rates"' in report
    again = run_cli("report", "--no-charts", store.folder)[1]
    assert sentence in again
    assert run_cli("resume", "--no-charts", store.folder)[1].startswith(
        f"{store.folder}: every step is measured"
    )
    exported = ("export", store.folder, "--to", "csv", "--table", "steps", "--out", "-")
    lines = list(csv.DictReader(io.StringIO(run_cli(*exported)[1])))
    rates = [line["rate_per_s"] for line in lines if line["layout"] == "rgw-a"]
    assert rates[0] == ""
    assert all(float(rate) > 0 for rate in rates[1:])
    assert len(lines) == len(store.steps())


@pytest.mark.parametrize("at", [1, 3, 9])
def test_a_killed_search_is_resumed_by_the_command_and_nothing_is_measured_twice(
    tmp_path: Path, arguments: tuple[str, ...], run_cli: Cli, at: int
) -> None:
    child = os.fork()
    if not child:
        real, left = RunStore.append, [at]

        def append(store: RunStore, step: StepResult) -> None:
            real(store, step)
            left[0] -= step.key.rate_per_s is not None
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)

        RunStore.append = append  # type: ignore[method-assign]  # in this process alone
        sys.argv = ["weighbridge", *arguments, "--find", "p90<=20ms"]
        try:
            main()
        finally:
            os._exit(70)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    folder = only(tmp_path)
    before = (folder / "steps.jsonl").read_bytes()
    assert run_cli("report", "--no-charts", folder)[0] == 0
    found = RunData(folder).found
    assert found is not None
    assert "the search is not finished" in found.sentences[0]
    code, out, _ = run_cli("resume", "--no-charts", folder)
    assert code == 0
    assert (folder / "steps.jsonl").read_bytes().startswith(before)
    steps = RunStore.open(folder).steps()
    assert len({step.key for step in steps}) == len(steps)
    assert [step.order for step in steps] == list(range(len(steps)))
    assert "not over" not in out
    for layout in LAYOUTS:
        numbers = [step.key.search_step for step in steps if step.key.layout == layout]
        # The pretended gateways are faster or slower by their ports, which a resumed run changes.
        assert numbers == [None, *range(1, len(numbers))]
        assert 2 < len(numbers) <= MOST_STEPS
