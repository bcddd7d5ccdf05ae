"""A published study's own tools on a real Ceph: as little as shows that the whole way is gone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from deployed_layouts import left_over
from suite_command import measured, weighbridge
from weighbridge.environment import place
from weighbridge.suites.studies import loader

pytestmark = [pytest.mark.system, pytest.mark.long]


def shortened(study: str, folder: Path, *changes: tuple[str, str]) -> Path:
    text = loader.find(study).read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = folder / "short.yaml"
    path.write_text(text)
    return path


DD_ON_RBD = (
    "      - {driver: dd, api: rbd, workloads: [dd-huge, dd-common], variants: [r2-o3, "
    "r2-o3-journal, r2-o5-journal]}\n"
)
ONE_OF_EACH = (
    (DD_ON_RBD, ""),
    ("workloads: [dd-huge, dd-common], variants", "workloads: [dd-common], variants"),
    ("workloads: [bonnie-write, bonnie-read], variants", "workloads: [bonnie-write], variants"),
)
ON_CEPHFS = {("dd", "cephfs", "dd-common"), ("bonnie", "cephfs", "bonnie-write")}
OTHERS = {
    ("dd", "rbd", "dd-huge"),
    ("dd", "rbd", "dd-common"),
    ("dd", "cephfs", "dd-huge"),
    ("bonnie", "cephfs", "bonnie-read"),
}


@pytest.mark.parametrize(
    ("changes", "tools"),
    [
        pytest.param(ONE_OF_EACH, ON_CEPHFS, id="one of each"),
        pytest.param((), ON_CEPHFS | OTHERS, id="all", marks=pytest.mark.test_all),
    ],
)
def test_a_studys_own_tools_are_measured_on_a_cluster_with_journals_on_the_faster_disk(
    tmp_path: Path, changes: Sequence[tuple[str, str]], tools: set[tuple[str, str, str]]
) -> None:
    path = shortened(
        "ceph-benchmarks-2012",
        tmp_path,
        ("runtime: 5s, warmup: 1s", "runtime: 1s, warmup: 0s"),
        ("size: 4MiB, per_container: 16", "size: 4MiB, per_container: 4"),
        ("size: 64MiB, per_container: 1", "size: 8MiB, per_container: 1"),
        ("size: 4MiB, per_container: 64", "size: 4MiB, per_container: 16"),
        ("size: 64KiB, per_container: 1536", "size: 64KiB, per_container: 256"),
        *changes,
    )
    done = weighbridge(
        f"study {path} --variants r2-o3-journal --no-attest --out {tmp_path}/runs", timeout_s=1800
    )
    store = measured(done, tmp_path / "runs")
    steps = {
        (step.key.driver, str(step.key.api), step.key.workload): step for step in store.steps()
    }
    assert {key for key in steps if key[0] != "rados"} == tools
    for key in tools:
        made = steps[key].measurement
        assert made is not None, steps[key].notes
        assert made.tallies[0].count > 0
        assert made.window_s > 0
    # FileStore writes its journal first: the SSD, which nothing else is on, wrote as well.
    facts = {
        sheet.layout: sheet.facts for sheet in store.manifest.sheets if sheet.title == "deployment"
    }
    assert "journals on a disk of their own" in facts["r2-o3-journal"]["object store"]
    assert left_over() == [], place()
