"""A published study replayed on a real Ceph: of two object stores, as little as shows that the
whole way is gone.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import pytest

from deployed_layouts import left_over
from suite_command import measured, weighbridge
from weighbridge.environment import place
from weighbridge.results.record.store import RunStore
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


@pytest.mark.test_all
def test_a_study_of_object_stores_is_replayed_on_a_real_cluster_beside_what_was_published(
    tmp_path: Path,
) -> None:
    path = shortened(
        "ceph-osd-backends-2016",
        tmp_path,
        ("runtime: 6s, warmup: 1s", "runtime: 3s, warmup: 0s"),
        ("per_container: 48", "per_container: 16"),
        ("per_container: 1000", "per_container: 64"),
    )
    done = weighbridge(
        f"study {path} --variants xfs,bluestore --no-attest --out {tmp_path}/runs",
        timeout_s=1800,
        env={"COLUMNS": "200"},
    )
    # Other tests may use this machine meanwhile: then nothing of it may be ranked, and it says so.
    busy = done.returncode == 4 and "machine busy" in done.stdout
    assert done.returncode == 0 or busy, done.stdout + done.stderr
    (run,) = (tmp_path / "runs").iterdir()
    store = RunStore.open(run)
    assert [step.valid for step in store.steps()] == [True] * 12
    facts = {
        sheet.layout: sheet.facts for sheet in store.manifest.sheets if sheet.title == "deployment"
    }
    assert "FileStore on xfs" in facts["xfs"]["object store"]
    assert facts["bluestore"]["osd: osd_objectstore"] == "bluestore"
    cells = list(
        csv.DictReader((run / "derived" / "charts" / "recap.csv").read_text().splitlines())
    )
    for cell in cells:
        crowded = cell["verdict"] == "missing" and "machine busy" in cell["why"]
        assert crowded or cell["verdict"] == "provisional", cell
    assert busy or any(cell["verdict"] == "provisional" for cell in cells)
    reads = {f"read · {name}" for name in ("read-4m", "read-4k", "cached-4m", "cached-4k")}
    assert {(cell["factor"], cell["kind"]) for cell in cells} == {
        *(("backend", kind) for kind in ("write", *reads)),
        *(("workload", f"{name} · read") for name in ("XFS", "BlueStore")),
    }
    (published,) = (run / "derived" / "study").glob("published-*.csv")
    lines = list(csv.DictReader(published.read_text().splitlines()))
    assert [float(line["IOPS: published"]) for line in lines] == [19.17, 118.38, 203.124, 209.33]
    assert {line["beside"] for line in lines} == {
        f"xfs, {workload}, 16 workers"
        for workload in ("write-4m", "read-4m", "write-4k", "read-4k")
    }
    assert left_over() == [], place()


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
