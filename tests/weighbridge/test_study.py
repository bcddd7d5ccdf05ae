"""Studies as runs: their plans, what is refused before anything starts, and one complete run."""

from __future__ import annotations

import csv
import json
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from swiftclient.client import Connection

from tests.drivers.cosbench.recorded_controller import UNKNOWN_STORAGE, Take, recorded_controller
from tests.weighbridge import command_line
from tests.weighbridge.command_line import KEY, existing, null_target, swift_at
from weighbridge.common.document import DocumentError
from weighbridge.common.errors import UsageError
from weighbridge.prepared_study import DEPLOYMENT_S, prepare
from weighbridge.results.features.study import study_of
from weighbridge.results.run.store import RunStore
from weighbridge.suites.studies import loader

pytestmark = pytest.mark.long

STUDIES = list(loader.shipped())

NULLS = """
name: nulls
about: Two null targets, one of which waits
source: {author: Nobody, title: Nothing, date: 2014}
variants:
  - {name: waits, layout: "null:delay_ms=20", factors: {delay: "20"}}
  - {name: does-not, layout: "null", factors: {delay: "0"}}
compares:
  - {factor: delay, baseline: "20", against: ["0"]}
tables:
  - title: Everything
    down: [workload, workers]
    across: [variant]
    cells: {throughput_ops_s: op/s}
conclusions:
  - id: waiting-costs
    says: Not to wait is faster.
    checks:
      - expect: better
        of: {variants: [does-not], workloads: [small-read], workers: [2]}
        than: {variants: [waits]}
published:
  - file: ceph-osd-backends-2016-rados-bench
    title: Something else altogether
    rules:
      - when: {mode: read, object_size: 4KB}
        beside: {variant: waits, workload: small-read, workers: 2}
    figures: [{column: iops, title: IOPS, ours: throughput_ops_s}]
scales:
  lab:
    about: [There is no store at all.]
    hardware: loopback
    suite:
      name: nulls
      about: Reads of next to nothing
      workloads:
        - name: small-read
          objects: {size: 4KiB, per_container: 4}
          operations: {read: 1}
          workers: [2]
          runtime: 1s
          warmup: 1s
"""


weighbridge = partial(command_line.weighbridge, COLUMNS="200")


@pytest.mark.parametrize("name", STUDIES)
def test_each_study_that_ships_is_planned_completely_for_two_cores_and_fourteen_minutes(
    name: str,
) -> None:
    chosen = prepare(name)
    assert [layout.name for layout in chosen.plan.layouts] == [
        variant.name
        for variant in chosen.study.variants
        if variant.name in (chosen.scale.variants or [variant.name])
    ]
    assert chosen.plan.steps > 0
    assert chosen.least_s == chosen.plan.seconds + DEPLOYMENT_S * len(chosen.planned)
    assert chosen.least_s <= 14 * 60
    for one in chosen.planned:
        names = {*one.gateway.needs(), *chosen.plan.hardware.clients}
        assert sum(chosen.plan.hardware.hosts[host].cpus or 0 for host in names) <= 2.0


def test_variants_are_what_their_names_say() -> None:
    planned = {one.layout.name: one for one in prepare("argonaut-vs-bobtail-2012").planned}
    assert planned["ceph-14-btrfs"].layout.release == "ceph-14"
    assert planned["ceph-14-btrfs"].layout.settings["osd"]["filestore"]["filesystem"] == "btrfs"
    assert planned["ceph-16-bluestore"].layout.settings["osd"]["objectstore"] == "bluestore"
    scaled = {one.layout.name: one.gateway.needs() for one in prepare("ornl-2013").planned}
    assert "s4-o11" not in scaled  # at full scale only
    assert {name: sum(need.disks for need in needs.values()) for name, needs in scaled.items()} == {
        "s1-o1": 1, "s1-o2": 2, "s1-o3": 3, "s2-o3": 6, "s3-o3": 9, "s4-o3": 12,
    }  # fmt: skip


def test_a_variant_may_differ_only_in_how_rados_bench_is_run() -> None:
    passes = prepare("ceph-benchmarks-2012").plan.passes
    groups = {
        name: one[0].rados.pg_num if one[0].rados else None
        for name, one in passes.items()
        if name.startswith("r3-o3")
    }
    assert groups == {"r3-o3": None, "r3-o3-pg64": 64, "r3-o3-pg128": 128, "r3-o3-pg256": 256}


def test_rados_is_measured_below_gateways_that_use_it() -> None:
    plan = prepare("swift-vs-rgw-read-2014").plan
    layers = {
        name: [(one.api, one.layer) for one in passes] for name, passes in plan.passes.items()
    }
    assert (
        layers["rgw-civetweb"]
        == layers["rgw-apache-fastcgi"]
        == [("swift", None), ("rados", "rados")]
    )
    assert layers["swift"] == [("swift", None)]
    own = [one.name for one in plan.suite.workloads if one.name.startswith("rados-")]
    assert own == ["rados-1m", "rados-4m", "rados-10m"]


def test_the_full_scale_of_2014_needs_large_hardware() -> None:
    with pytest.raises(
        UsageError, match="is large enough for study swift-vs-rgw-read-2014 at scale full"
    ):
        prepare("swift-vs-rgw-read-2014", "full")
    with pytest.raises(UsageError) as error:
        prepare("swift-vs-rgw-read-2014", "full", hardware="lab-cpu")
    said = str(error.value)
    assert "disks: ten disks on each storage host (Hardware, T2): store-1 has 1; store-2" in said
    assert "mtu: frames of 9000 bytes (General Configuration, 2): the MTU is 1500" in said
    assert "--despite disks,nic,mtu,sysctl" in error.value.advice
    accepted = prepare(
        "swift-vs-rgw-read-2014",
        "full",
        hardware="lab-cpu",
        repeats=1,
        despite=["disks", "nic", "mtu", "sysctl"],
    )
    assert accepted.least_s > 8 * 3600
    assert len(accepted.lacking) == 4
    assert accepted.lacking[2] == (
        "frames of 9000 bytes (General Configuration, 2): the MTU is 1500"
    )
    with pytest.raises(UsageError, match=r"nothing named 'mtuu' \(did you mean 'mtu'"):
        prepare("swift-vs-rgw-read-2014", "full", hardware="lab-cpu", despite=["mtuu"])


def large(name: str) -> str:
    """Hardware with all that the hosts of a study had."""
    modern = name == "rgw-at-scale-2025"
    nic, clients = ("100Gbit", 8) if modern else ("40Gbit", 1)
    disks = (
        ["{size: 1TB, model: nvme}"] * 24 if modern else ["{size: 1TB, model: spinning-7200}"] * 10
    )
    disks += [] if modern else ["{size: 1TB, model: sata-ssd}"]
    names = [f"client-{n}" for n in range(1, clients + 1)]
    return "\n".join(
        [
            "name: large",
            "kind: lab",
            "network: {mtu: 9000}",
            f"clients: [{', '.join(names)}]",
            "hosts:",
            *(f"  {one}: {{nic: {nic}}}" for one in (*names, "gateway-1")),
            *(f"  store-{n}: {{nic: {nic}, disks: [{', '.join(disks)}]}}" for n in range(1, 6)),
        ]
    )


@pytest.mark.parametrize("name", STUDIES)
def test_each_study_is_planned_at_full_scale_on_hosts_that_have_what_its_own_had(
    name: str, tmp_path: Path
) -> None:
    path = tmp_path / "large.yaml"
    path.write_text(large(name))
    despite = ["sysctl"] if name == "swift-vs-rgw-read-2014" else []  # only real hosts have them
    chosen = prepare(name, "full", hardware=str(path), despite=despite)
    wanted = chosen.scale.variants or tuple(one.name for one in chosen.study.variants)
    assert tuple(one.layout.name for one in chosen.planned) == wanted
    assert chosen.plan.steps > 0
    for one in chosen.scale.beside:
        for variant in one.variants:
            assert (one.api, one.driver) in [
                (way.api, way.driver) for way in chosen.plan.passes[variant]
            ]


def test_published_parameters_are_in_the_layouts_of_the_variants_that_they_are_of() -> None:
    despite = ["disks", "nic", "mtu", "sysctl"]
    found = prepare("swift-vs-rgw-read-2014", "full", hardware="lab-cpu", despite=despite)
    settings = {one.layout.name: one.layout.settings for one in found.planned}
    assert settings["rgw-civetweb"]["radosgw"]["threads"] == 128
    assert "threads" not in settings["rgw-apache-fastcgi"]["radosgw"]
    assert settings["rgw-apache-fastcgi"]["apache"]["mpm"]["server_limit"] == 4096
    assert settings["rgw-civetweb"]["pools"]["data_pg_num"] == 4096
    assert settings["swift"]["proxy"]["workers"] == 40
    assert settings["swift"]["background"] is True
    lab = {one.layout.name: one.layout.settings for one in prepare(found.study.name).planned}
    assert "data_pg_num" not in lab["rgw-civetweb"]["pools"]


def test_a_study_is_replayed_by_the_drivers_that_are_named() -> None:
    passes = prepare("swift-vs-rgw-read-2014", driver="locust,cosbench").plan.passes["swift"]
    assert [one.driver for one in passes] == ["locust", "cosbench"]
    with pytest.raises(UsageError, match="no driver 'locusts'"):
        prepare("swift-vs-rgw-read-2014", driver="locusts")


def test_a_studys_own_tools_are_measured_beside_the_variants_that_it_names() -> None:
    passes = prepare("ceph-benchmarks-2012").plan.passes
    tools = {
        name: [(one.driver, one.api, one.layer) for one in ways if one.driver != "rados"]
        for name, ways in passes.items()
    }
    assert tools["r2-o3"] == [
        ("dd", "rbd", "rbd"),
        ("dd", "cephfs", "cephfs"),
        ("bonnie", "cephfs", "cephfs"),
    ]
    assert tools["r3-o3"] == []


def test_variants_and_repeats_can_be_chosen() -> None:
    chosen = prepare("ceph-osd-backends-2016", only=["xfs", "memstore"], repeats=5)
    assert [one.layout.name for one in chosen.planned] == ["xfs", "memstore"]
    assert len(chosen.plan.visits) == 10
    with pytest.raises(UsageError, match=r"no variant 'memstor' \(did you mean 'memstore'"):
        prepare("ceph-osd-backends-2016", only=["memstor"])


def test_hardware_that_lacks_disks_is_refused_with_every_variant_that_needs_more() -> None:
    with pytest.raises(DocumentError) as error:
        prepare("ornl-2013", hardware="lab-cpu")
    said = str(error.value)
    assert (
        "variant s1-o2: mon, osd needs 2 disk(s); host 'store-1' of hardware 'lab-cpu' has 1"
        in said
    )
    assert "variant s4-o3: hardware 'lab-cpu' has no host 'store-4'" in said
    assert "variant s1-o1" not in said


@pytest.mark.parametrize(
    ("changes", "faults"),
    [
        (
            {"null:delay_ms=20": "null:dellay_ms=20", 'layout: "null"': 'layout: "nul"'},
            (
                "variant waits: unknown key 'dellay_ms' (did you mean 'delay_ms'?)",
                "nulls.yaml:7:30: no layout 'nul' (did you mean 'null'?)",
            ),
        ),
        (
            {
                "cells: {throughput_ops_s": "cells: {throughput",
                "ours: throughput_ops_s": "ours: p90_us",
                "      - expect: better": "      - metric: p95\n        expect: better",
            },
            (
                "nulls.yaml:14:13: no metric 'throughput' (did you mean 'throughput_ops_s'?)",
                "nulls.yaml:19:17: no metric 'p95' (did you mean 'p99'?)",
                "nulls.yaml:29:49: no metric 'p90_us' (did you mean 'p90_ms'?)",
            ),
        ),
    ],
)
def test_the_faults_of_all_variants_and_all_unknown_metrics_are_reported_at_once(
    tmp_path: Path, changes: dict[str, str], faults: tuple[str, ...]
) -> None:
    text = NULLS
    for old, new in changes.items():
        text = text.replace(old, new)
    path = tmp_path / "nulls.yaml"
    path.write_text(text)
    with pytest.raises(DocumentError) as error:
        prepare(str(path))
    assert [fault for fault in faults if fault not in str(error.value)] == []
    path.write_text(NULLS)
    with pytest.raises(UsageError, match="study nulls has no scale full"):
        prepare(str(path), "full")


def test_the_list_names_every_study_with_its_least_time(tmp_path: Path) -> None:
    done = weighbridge("study", "--list", folder=tmp_path, code=0)
    for name in STUDIES:
        (line,) = [line for line in done.stdout.splitlines() if f" {name} " in line]
        assert prepare(name).least in line


def test_a_dry_run_prints_the_plan_and_starts_nothing(tmp_path: Path) -> None:
    words = ("study", "argonaut-vs-bobtail-2012", "--dry-run", "--out", tmp_path / "runs")
    done = weighbridge(*words, folder=tmp_path, code=0)
    counted = "12 deployments, 216 steps, at least"
    for word in ("ceph-14-btrfs", "Ceph 16.2", "write-4k", "16 256", counted):
        assert word in done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ornl-2031"], "did you mean 'ornl-2013'"),
        ([], "the NAME of a study is missing"),
        (["ornl-2013", "--scale", "fall"], "fall"),
        (["swift-vs-rgw-read-2014", "--scale", "full"], "Use --hardware FILE"),
        (["ornl-2013", "--hardware", "lab-cp"], "did you mean 'lab-cpu'"),
    ],
)
def test_bad_usage_is_refused_with_exit_code_2(
    tmp_path: Path, arguments: list[str], words: str
) -> None:
    done = weighbridge("study", *arguments, folder=tmp_path, code=2)
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_study_runs_to_its_report_which_can_be_made_again(tmp_path: Path) -> None:
    (tmp_path / "nulls.yaml").write_text(NULLS)
    words = ("study", tmp_path / "nulls.yaml", "--out", tmp_path / "runs")
    done = weighbridge(*words, folder=tmp_path, code=0)
    (run,) = (tmp_path / "runs").iterdir()
    assert study_of(run) is not None
    assert [
        layout["name"] for layout in json.loads((run / "plan.resolved.json").read_text())["layouts"]
    ] == ["waits", "does-not"]
    (cell,) = csv.DictReader((run / "derived" / "charts" / "recap.csv").read_text().splitlines())
    assert (cell["baseline"], cell["level"], cell["verdict"]) == ("20", "0", "provisional")
    assert float(cell["change_percent"]) > 0
    (table, published, concluded) = sorted((run / "derived" / "study").iterdir(), reverse=True)
    (held,) = csv.DictReader(concluded.read_text().splitlines())
    assert (held["The study"], held["This run"]) == ("Not to wait is faster.", "cannot tell")
    assert "• cannot tell: Not to wait is faster. (its one cell says nothing: " in done.stdout
    (line,) = csv.DictReader(table.read_text().splitlines())
    assert float(line["does-not op/s"]) > float(line["waits op/s"]) > 0
    assert [row["beside"] for row in csv.DictReader(published.read_text().splitlines())].count(
        "waits, small-read, 2 workers"
    ) == 1
    assert "There is no store at all." in done.stdout
    again = weighbridge("report", str(run), folder=tmp_path, code=0)
    assert "Something else altogether" in again.stdout


ROOT = Path(__file__).parents[2]


SUITE = """
name: trial
about: What was recorded
api: [swift]
cache: none
workloads:
  - name: mixed
    objects: {size: 64kB, containers: 2, per_container: 50}
    operations: {read: 80, write: 20}
    workers: [2]
    runtime: 12s
    warmup: 2s
"""
ENDS = {
    "strange": (UNKNOWN_STORAGE, "unrecognized storage type: nosuch"),
    "stopped": (
        Take("jdk8/w36-cancel-me", ["s2-main-b"], "CANCELLED"),
        "ended as CANCELLED: somebody cancelled it",
    ),
    "refused": (
        Take("jdk8/w43-swift-fail-404", ["s1-m"], "FAILED"),
        "write of stage s1-main never succeeded",
    ),
}
"""Workloads that end badly: what was recorded, and what is said of it."""


def cosbench_weighbridge(*arguments: str) -> subprocess.CompletedProcess[str]:
    return command_line.run(*arguments, env=os.environ, cwd=ROOT)


def words(folder: Path, suite: str, controller: str, archive: Path | str) -> tuple[str, ...]:
    """A comparison by COSBench of what the folder has."""
    files = ("--suite", f"{folder}/{suite}.yaml", "--layouts", f"{folder}/mine.yaml")
    by = ("--driver", "cosbench", "--cosbench", controller, "--cosbench-archive", str(archive))
    where = ("--hardware", "this-machine", "--no-charts", "--out", f"{folder}/runs")
    return ("compare", *files, *by, *where)


@pytest.fixture
def compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., tuple[int, RunStore, str]]]:
    """Runs `weighbridge compare --driver cosbench` with more options: exit code, run and output."""
    variables = {
        "WEIGHBRIDGE_HOME": str(tmp_path / "home"),
        "WEIGHBRIDGE_STATE": str(tmp_path / "state"),
    }
    for name, value in {**variables, "ST_USER": "weigh:er", "ST_KEY": KEY}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("COSBENCH_HOME", raising=False)
    with null_target() as url:
        (tmp_path / "trial.yaml").write_text(SUITE)
        (tmp_path / "mine.yaml").write_text(existing("mine", swift=swift_at(url)))

        def compare(
            controller: str, archive: Path | str, more: Sequence[str] = ()
        ) -> tuple[int, RunStore, str]:
            done = cosbench_weighbridge(*words(tmp_path, "trial", controller, archive), *more)
            (run,) = (tmp_path / "runs").iterdir()
            swift: Any = Connection(f"{url}/auth/v1.0", "weigh:er", KEY, retries=0)
            assert swift.get_account()[1] == []
            swift.close()
            assert not [
                path
                for path in run.rglob("*")
                if path.is_file() and KEY.encode() in path.read_bytes()
            ]
            return done.returncode, RunStore.open(run), done.stdout + done.stderr

        yield compare


@pytest.fixture
def controller(tmp_path: Path) -> Iterator[Any]:
    with recorded_controller(tmp_path / "cosbench") as running:
        yield running


@pytest.mark.test_all
def test_results_of_cosbench_are_kept_beside_failures_which_exit_with_3(
    compared: Any, controller: Any, tmp_path: Path
) -> None:
    one = SUITE[SUITE.index("  - name") :]
    (tmp_path / "trial.yaml").write_text(
        SUITE + "".join(one.replace("mixed", name) for name in ENDS)
    )
    controller.by_workload = {name: take for name, (take, _) in ENDS.items()}
    code, store, output = compared(controller.url, controller.archive)
    assert code == 3, output
    good, *bad = store.steps()
    assert (good.key.driver, good.key.workload, good.valid) == ("cosbench", "mixed", True)
    assert good.measurement is not None
    assert good.measurement.driver == "cosbench"
    assert good.measurement.tallies[0].bins is not None
    assert [step.key.workload for step in bad] == list(ENDS)
    for step, (_, said) in zip(bad, ENDS.values(), strict=True):
        assert (step.measurement, step.valid) == (None, False)
        assert said in step.notes[0]
        assert said in " ".join(output.split())
    kept = [
        path.relative_to(store.folder).as_posix()
        for path in store.folder.rglob("*")
        if path.is_file()
    ]
    assert len(
        [name for name in kept if "failed" in name and name.endswith("workload.xml")]
    ) == len(ENDS)
    assert any(name.endswith("-rt-histogram.csv.gz") for name in kept)


def test_an_unreachable_controller_is_reported_and_exits_with_3(
    compared: Any, tmp_path: Path
) -> None:
    (tmp_path / "archive").mkdir()
    code, store, output = compared("http://127.0.0.1:9/controller", tmp_path / "archive")
    assert code == 3
    assert "COSBench's controller does not answer" in " ".join(output.split())
    assert {step.measurement for step in store.steps()} == {None}


def test_what_cosbench_cannot_do_is_refused_before_anything_starts(
    compared: Any, controller: Any, tmp_path: Path
) -> None:
    text = SUITE.replace("{read: 80, write: 20}", "{read: 80, head: 20}")
    (tmp_path / "other.yaml").write_text(text)
    done = cosbench_weighbridge(*words(tmp_path, "other", controller.url, tmp_path))
    assert done.returncode == 2
    assert "COSBench has no head" in done.stderr
    assert not (tmp_path / "runs").exists()
