"""`compare --perf` on a real Ceph: the daemons' stacks and a disk's table, or the reason why
there is none; nothing is left.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from deployed_layouts import left_over
from small_lab import read
from suite_command import measured, trial, weighbridge
from weighbridge.conductor.profiling import able
from weighbridge.results.run.profile import read_profiles

pytestmark = pytest.mark.system

SUITE = trial("[swift]", "{write: 1}", "5s", size="64KB", per_container=10, workers=4)


def test_a_step_is_profiled_or_the_report_says_why_not(tmp_path: Path) -> None:
    suite = tmp_path / "suite.yaml"
    suite.write_text(SUITE)
    done = weighbridge(
        f"compare --suite {suite} --layouts rgw-beast --hardware lab-cpu --no-attest --no-charts "
        f"--perf small:4 --out {tmp_path}/runs",
        timeout_s=300,
    )
    # Beside other tests nothing may be ranked; a profile is made all the same.
    store = measured(done, tmp_path / "runs")
    folder = store.folder
    texts = [event.text for event in store.events() if event.kind == "profile"]
    report = (folder / "derived" / "report.html").read_text()
    allowed = able()
    if allowed.event is None and not allowed.blocks:
        assert texts == list(allowed.remarks)
        return
    (found,) = read_profiles(folder)
    assert 'id="profile"' in report
    assert set(allowed.remarks) <= set(texts)
    if allowed.event is not None:
        assert found.event == allowed.event
        (stacks,) = (one.read_text() for one in folder.glob("profile/*/stacks.folded"))
        assert "\nstorage;ceph-osd;" in f"\n{stacks}"
        # Names are found although the programs are in the hosts' own roots.
        assert "::" in stacks
    if allowed.blocks:
        assert found.disk is not None
        assert [one.requests > 0 for one in found.disk.ways if one.way == "write"] == [True]
    lines = [read(path) for path in Path("/proc").glob("[0-9]*/cmdline")]
    assert not [line for line in lines if str(folder).encode() in line]
    assert left_over() == []
