from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from fake_run import WORKLOADS, fake_run
from made_up import fake_measurement
from weighbridge.cli.compare import exit_code
from weighbridge.command import weighbridge
from weighbridge.results import derive
from weighbridge.results.charts.pictures import RenderingError
from weighbridge.results.record.step import StepKey, StepResult
from weighbridge.results.record.telemetry import Attested
from weighbridge.run import Ran

KEY = StepKey(layout="rgw-a", api="swift", workload="small", workers=4, repeat=0)
GOOD = StepResult(key=KEY, measurement=fake_measurement(workload="small"), valid=True, order=0)
LOST = StepResult(key=KEY, measurement=None, valid=False, notes=("the gateway has died",), order=1)


def test_a_run_without_a_step_or_a_power_cut_does_not_exit_with_0() -> None:
    def code(*steps: StepResult, comparable: bool = True, uncut: tuple[str, ...] = ()) -> int:
        derived: Any = SimpleNamespace(comparable=comparable)
        return exit_code(Ran(derived, steps, uncut))

    assert code(GOOD) == 0
    assert code(GOOD, LOST) == 3
    assert code(GOOD, uncut=("rgw-a",)) == 3
    assert code(GOOD, comparable=False) == 4


def test_charts_that_cannot_be_drawn_keep_table_and_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = fake_run(tmp_path, workloads=[WORKLOADS[0].model_copy(update={"workers": (1, 4)})])
    ran = Ran(derive(store.folder, pictures=False), store.steps())

    def fails(*_: object) -> None:
        raise RenderingError("a process that draws charts ended early")

    monkeypatch.setattr("weighbridge.run.run", lambda *_, **__: ran)
    monkeypatch.setattr("weighbridge.run.resume", lambda *_, **__: ran)
    monkeypatch.setattr("weighbridge.results_output.write_charts", fails)
    for arguments in (["resume", str(store.folder)], ["compare", "--out", str(tmp_path / "runs")]):
        done = CliRunner().invoke(weighbridge, arguments, standalone_mode=False)
        assert (done.exception, done.return_value) == (None, 0)
        table, sorry = map(done.output.index, ("small-read", "the charts could not be drawn ("))
        assert 0 < table < sorry


@pytest.mark.parametrize(("apart", "repeats", "code"), [(False, 5, 0), (False, 1, 0), (True, 5, 4)])
def test_a_comparison_without_comparable_cells_exits_with_4_and_a_provisional_one_with_0(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, apart: bool, repeats: int, code: int
) -> None:
    workload = WORKLOADS[0].model_copy(update={"workers": (1, 4)})
    store = fake_run(tmp_path, workloads=[workload], repeats=repeats)
    if apart:
        one = {"repeat": 0, "host": "gateway-1", "kind": "cpu", "what": "CPU", "unit": "events/s"}
        gave = {"rgw-beast": 1395.0, "swift": 245.0}
        store.attest(
            [
                Attested.model_validate({**one, "layout": name, "value": value})
                for name, value in gave.items()
            ]
        )

    ran = Ran(derive(store.folder, pictures=False), store.steps())
    monkeypatch.setattr("weighbridge.run.run", lambda *_, **__: ran)
    monkeypatch.setattr("weighbridge.run.resume", lambda *_, **__: ran)
    # Resuming a complete run, too.
    for words in (["resume", str(store.folder)], ["compare", "--out", str(tmp_path / "runs")]):
        done = CliRunner().invoke(weighbridge, [*words, "--no-charts"], standalone_mode=False)
        assert (done.exception, done.return_value) == (None, code)
        assert ("rovisional: " in done.output) == (repeats == 1)
