"""The conductor killed in the real lab while hosts come and go, where it has least in hand;
`resume` then finds what it left.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from deaths import soon_nothing_left
from suite_command import measured, printed, started, trial, weighbridge
from weighbridge.environment import place
from weighbridge.results.record.store import RunStore

pytestmark = pytest.mark.system

SUITE = trial("[swift]", "{read: 1}", "1s")
Seen = Callable[[str], bool]


def _hosts_come(printed: str) -> bool:
    """The run's own hosts, after those on which its files were checked: claimed a moment before the
    first of them is started.
    """
    return "starting null" in printed and any((place().state / "claims").glob("*.json"))


def _hosts_go(printed: str) -> bool:
    return "stopping null" in printed


@pytest.mark.parametrize(
    ("seen", "number", "whole"),
    [
        (_hosts_come, signal.SIGKILL, 0),
        pytest.param(_hosts_go, signal.SIGKILL, 1, marks=pytest.mark.test_all),
        (_hosts_go, signal.SIGTERM, 1),
    ],
)
def test_what_was_left_is_torn_down_and_only_what_is_missing_is_measured(
    tmp_path: Path, seen: Seen, number: int, whole: int
) -> None:
    (tmp_path / "killed.yaml").write_text(SUITE)
    words = f"--no-attest --no-charts --suite {tmp_path}/killed.yaml --layouts null:delay_ms=5"
    output = tmp_path / "output"
    with output.open("w") as file:
        run = started(f"compare {words} --out {tmp_path}/runs", file)
    printed(run, output, seen)
    run.send_signal(number)
    code = run.wait(timeout=300)
    (folder,) = (tmp_path / "runs").iterdir()
    steps = folder / "steps.jsonl"
    lines = steps.read_bytes() if steps.exists() else b""
    assert lines.count(b"\n") == whole
    if number == signal.SIGTERM:
        assert code == 128 + number
        soon_nothing_left(RunStore.open(folder))
        return
    assert weighbridge(f"report --no-charts {folder}").returncode in (0, 4)
    store = measured(weighbridge(f"resume --no-charts {folder}"), tmp_path / "runs")
    assert steps.read_bytes().startswith(lines)
    assert [step.order for step in store.steps()] == [0]
    assert store.steps()[0].measurement is not None
    assert store.manifest.state == "done"
    soon_nothing_left(store)
