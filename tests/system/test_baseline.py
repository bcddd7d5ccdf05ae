"""`weighbridge baseline` on real hosts: it sees a slow disk and the limits, writes what it found,
and leaves nothing.
"""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from deployed_layouts import left_over
from suite_command import started, weighbridge
from weighbridge.results.analysis.baseline import Baseline, oddities

pytestmark = pytest.mark.system

MB = 10**6
HARDWARE = """
name: baseline-test
kind: lab
hosts:
  client-1: {memory: 512MiB, nic: 200Mbit}
  store-1:
    memory: 512MiB
    nic: 200Mbit
    disks: [{size: 1GiB, bandwidth: 60MB}, {size: 1GiB, bandwidth: 20MB}]
"""


def measured(folder: Path) -> tuple[Baseline, str]:
    (folder / "hardware.yaml").write_text(HARDWARE)
    done = weighbridge(f"baseline {folder}/hardware.yaml --sizes 1MiB --out {folder}/out")
    assert done.returncode == 0, done.stdout + done.stderr
    (written,) = (folder / "out").iterdir()
    assert {path.name for path in written.iterdir()} == {"baseline.json", "baseline.csv", "charts"}
    assert (written / "charts" / "baseline.png").stat().st_size > 10_000
    return Baseline.model_validate_json((written / "baseline.json").read_bytes()), done.stdout


def test_a_baseline_sees_the_limits_of_each_disk_of_both_at_once_and_of_the_network(
    tmp_path: Path,
) -> None:
    baseline, printed = measured(tmp_path)
    found = {(one.host, one.what): one for one in baseline.figures}
    slow, fast = (
        found["store-1", "disk wb1 random write of 1 MiB"],
        found["store-1", "disk wb0 random write of 1 MiB"],
    )
    assert slow.value < 30 * MB
    assert fast.value < 75 * MB
    assert found["store-1", "2 disks at once sequential read of 1 MiB"].promised == 80 * MB
    assert found["store-1", "2 disks at once sequential read of 1 MiB"].value < 100 * MB
    for one in baseline.figures:
        if one.group in ("network", "fabric"):
            assert one.promised == 200 * MB
            assert one.value < 1.15 * 200 * MB
    assert {one.what for one in baseline.figures if one.group == "fabric"} == {
        "sent while all hosts send to 1",
        "received while all hosts send to 1",
    }
    assert "disk wb1 sequential write of 1 MiB" in printed
    assert all(sentence in printed for sentence in oddities(baseline.figures))
    assert left_over() == []


def test_a_baseline_that_is_interrupted_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "hardware.yaml").write_text(HARDWARE)
    line = f"baseline {tmp_path}/hardware.yaml --out {tmp_path}/out"
    with started(line, subprocess.PIPE) as process:
        assert process.stdout is not None
        for text in process.stdout:
            if text.startswith("disk wb0"):
                process.send_signal(signal.SIGINT)
        assert process.wait(60) == 128 + signal.SIGINT
    assert left_over() == []
    assert not (tmp_path / "out").exists()
