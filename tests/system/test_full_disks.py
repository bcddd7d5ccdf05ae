"""Disks that fill up: under a run folder, which loses nothing that was complete, and under an OSD,
which no longer answers.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from deployed_layouts import unlimited
from suite_command import COMMAND, ended, heard, started, trial, valid_steps
from weighbridge.environment import place
from weighbridge.results.run.store import RunStore
from weighbridge.topologies.lab import ending
from weighbridge.topologies.loader import shipped_hardware, shipped_layouts

pytestmark = [pytest.mark.system, pytest.mark.long]

KEY = "a-planted-secret"
SUITE = trial("[swift, s3]", "{read: 50, write: 50}", "1s")
LAYOUT = """
name: plain
about: A null target that already runs
gateway: existing
release: any
place: {{}}
settings:
  s3: {{url: "{url}", credentials: environment}}
  swift: {{auth_url: "{url}/auth/v1.0", storage_url: "{url}/v1/AUTH_test"}}
"""
# A busy mgr tells the mon of full OSDs some seconds late.
FILL = trial("[s3]", "{write: 100}", "45s", size="4MB", per_container=1, workers=8)
IMPATIENT = """
import sys
from functools import partial
from weighbridge import run
from weighbridge.command import main
from weighbridge.drivers.locust.kind import LocustModule
impatient = LocustModule(module=("tests.weighbridge.impatient_locust", "3"))
run.Doing = partial(run.Doing, settings={"locust": impatient})
main()
"""


class Disk:
    """A file system of its own, which can be filled to its last byte and made larger."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"

    def fill(self) -> None:
        fill = ["dd", "if=/dev/zero", f"of={self._ballast}", "bs=64k"]
        full = subprocess.run(fill, capture_output=True, check=False)
        assert full.returncode != 0

    def clear(self) -> None:
        self._ballast.unlink()

    def resize(self, size: str) -> None:
        subprocess.run(["mount", "-o", f"remount,size={size}", str(self.folder)], check=True)


@contextmanager
def disk(folder: Path, size: str) -> Iterator[Disk]:
    folder.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "weighbridge-test", str(folder)], check=True
    )
    try:
        yield Disk(folder)
    finally:
        subprocess.run(["umount", str(folder)], check=True)


class Site:
    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        (folder / "trial.yaml").write_text(SUITE)
        (folder / "plain.yaml").write_text(LAYOUT.format(url=url))
        self.environment = {
            "WEIGHBRIDGE_HOME": str(folder / "home"),
            "WEIGHBRIDGE_STATE": str(folder / "state"), "COLUMNS": "300",
            "AWS_ACCESS_KEY_ID": "weigh:er", "AWS_SECRET_ACCESS_KEY": KEY, "ST_USER": "weigh:er",
            "ST_KEY": KEY,
        }  # fmt: skip

    def start(self, words: str) -> subprocess.Popen[str]:
        return started(words, subprocess.PIPE, env=self.environment)

    def compare(self, out: Path) -> subprocess.Popen[str]:
        files = f"--suite {self.folder}/trial.yaml --layouts {self.folder}/plain.yaml --out {out}"
        return self.start(f"compare --hardware this-machine --no-charts {files}")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    argv = [*COMMAND, "null-target", "--port", "0", "--user", "weigh:er"]
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, text=True, env={**os.environ, "WEIGHBRIDGE_NULL_KEY": KEY}
    ) as process:
        assert process.stdout is not None
        try:
            yield Site(tmp_path, json.loads(process.stdout.readline())["listening"])
        finally:
            process.terminate()


def test_a_run_that_has_no_room_to_begin_says_so_before_anything_is_started(
    tmp_path: Path, site: Site
) -> None:
    with disk(tmp_path / "disk", "16k") as full:
        full.fill()
        code, said = ended(site.compare(full.folder / "runs"))
    assert code in (2, 3), said
    assert str(full.folder / "runs") in said
    assert "No space left on device" in said
    assert "starting " not in said


def test_a_disk_that_fills_up_in_a_step_costs_that_step_alone_and_is_gone_on_with(
    tmp_path: Path, site: Site
) -> None:
    with disk(tmp_path / "disk", "24m") as full:
        process = site.compare(full.folder / "runs")
        heard(process, "step 2/2")
        full.fill()
        code, rest = ended(process)
        (run,) = (full.folder / "runs").iterdir()
        assert code == 3, rest
        assert str(run) in rest
        assert "the disk is full" in rest
        assert "Make room" in rest
        assert f"weighbridge resume {run}" in rest
        (first,) = RunStore.open(run).steps()
        full.clear()
        code, said = ended(site.start(f"resume --no-charts {run}"))
        valid_steps(code, said, RunStore.open(run))
        assert "step 1/2" not in said
        steps = list(RunStore.open(run).latest().values())
        assert steps[0] == first
        assert [(step.key.api, step.measurement is not None) for step in steps] == [
            ("swift", True),
            ("s3", True),
        ]


@pytest.mark.test_all
def test_a_disk_too_small_for_the_report_keeps_every_step_and_the_report_is_made_later(
    tmp_path: Path, site: Site
) -> None:
    with disk(tmp_path / "disk", "400k") as small:
        code, said = ended(site.compare(small.folder / "runs"))
        (run,) = (small.folder / "runs").iterdir()
        assert code == 3, said
        assert str(run / "derived") in said
        assert "the disk is full" in said
        steps = RunStore.open(run).latest().values()
        assert [step.measurement is not None for step in steps] == [True, True]
        assert not (run / "derived" / "report.html").exists()
        small.resize("24m")
        code, said = ended(site.start(f"report --no-charts {run}"))
        assert code == 0, said
        assert (run / "derived" / "report.html").is_file()


@pytest.mark.test_all
def test_a_cluster_that_fills_up_ends_its_step_with_that_reason_and_is_torn_down(
    tmp_path: Path,
) -> None:
    layout = (
        shipped_layouts()["rgw-beast"]
        .read_text()
        .replace("osd: [store-1, store-2, store-3]", "osd: [store-1]")
    )
    pools = (
        "{replicas: 1, min_size: 1, failure_domain: osd, data_pg_num: 8, index_pg_num: 8, "
        "other_pg_num: 8}"
    )
    layout = re.sub(r"pools: \{.*\}", f"pools: {pools}", layout)
    ratios = (
        "mon_osd_nearfull_ratio: 0.05, mon_osd_backfillfull_ratio: 0.055, mon_osd_full_ratio: 0.06"
    )
    (tmp_path / "rgw-beast.yaml").write_text(f"{layout}  options: {{mon: {{{ratios}}}}}\n")
    # Far larger than what is written until the cluster knows that it is full: an OSD whose disk has
    # no block left dies of it.
    hardware = unlimited(shipped_hardware()["lab-cpu"].read_text()).replace(
        "size: 20GiB", "size: 8GiB"
    )
    (tmp_path / "lab-cpu.yaml").write_text(hardware)
    (tmp_path / "fill.yaml").write_text(FILL)
    asked = "--suite fill.yaml --layouts rgw-beast.yaml --hardware lab-cpu.yaml --out runs"
    root = Path(__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, "-c", IMPATIENT, "compare", "--no-charts", "--no-attest", *asked.split()],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(root), "COLUMNS": "300"},
    )  # fmt: skip
    code, said = ended(process)
    assert code in (3, 4), said
    (run,) = (tmp_path / "runs").iterdir()
    (step,) = RunStore.open(run).latest().values()
    assert step.measurement is not None, step.notes
    assert not step.valid
    assert set().union(*(one.errors for one in step.measurement.tallies)) <= {
        "timeout",
        "unfinished",
    }
    assert (
        "osd.0 on store-1 is full: the cluster accepts no more writes or deletes" in step.notes[0]
    )
    assert "larger disks" in said or "larger disks" in (run / "events.jsonl").read_text()
    where = place()
    assert ending.find_leftovers(home=where.home, state=where.state) == ()
