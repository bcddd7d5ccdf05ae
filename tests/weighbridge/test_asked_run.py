"""`compare --capabilities`: the answers are in the run folder and in the report."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.weighbridge import command_line
from weighbridge.results.record.store import RunStore

pytestmark = pytest.mark.long  # runs a complete comparison as a program

SUITE = """
name: trial
about: A trial
api: [s3]
workloads:
  - name: small
    objects: {size: 4KiB, containers: 1, per_container: 8}
    operations: {read: 100}
    workers: [2]
    runtime: 1s
    warmup: 0s
"""


def test_a_run_asks_its_layout_and_reports_what_it_answered(tmp_path: Path) -> None:
    (tmp_path / "trial.yaml").write_text(SUITE)
    done = command_line.weighbridge(
        *("compare", "--suite", tmp_path / "trial.yaml", "--layouts", "null:delay_ms=40"),
        *("--hardware", "loopback", "--repeats", "1", "--no-charts", "--capabilities"),
        *("--out", tmp_path / "runs"),
        folder=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (run,) = (tmp_path / "runs").iterdir()
    (sheet,) = (one for one in RunStore.open(run).manifest.sheets if one.title == "capabilities")
    assert sheet.layout == "null-delay-ms-40"
    assert sheet.facts["s3: objects: DELETE"] == "works"
    # The null target takes copies and keeps no metadata.
    assert sheet.facts["s3: objects: Copy"].startswith("wrong: 200: x-amz-meta-colour: None")
    assert "swift: access: POST form" not in sheet.facts
    page = (run / "derived" / "report.html").read_text()
    assert "<caption>capabilities</caption>" in page
    assert "refused: 501 NotImplemented" in page
