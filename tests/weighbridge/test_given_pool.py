"""`compare --layers rados` on a cluster that already runs: a null target, and a host of its cluster
over ssh whose Ceph keeps objects as files.
"""

from __future__ import annotations

import csv
import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fake_ceph import FakeCeph, detail
from ssh_server import Server
from tests.weighbridge import command_line
from tests.weighbridge.command_line import DELAY_MS, existing, null_target, read_until, s3_at, trial
from tests.weighbridge.sent_runs import until
from weighbridge.results.run.store import RunStore

pytestmark = pytest.mark.long

HARDWARE = """
name: cluster
kind: existing
hosts: {{client-1: {{}}}}
ssh: {{user: somebody, key: {folder}/key, known_hosts: {folder}/known}}
observed:
  gateway-1: {{ssh: {{host: 127.0.0.1, port: {port}}}, tier: gateway, nic: lo}}
"""


TEN_OBJECTS = "{size: 4KiB, containers: 2, per_container: 5}"


class Cluster:
    """The gateway, the host with Ceph's programs, and the command that measures them."""

    def __init__(self, folder: Path, server: Server, target: str) -> None:
        self.folder, self.server, self.target = folder, server, target
        self.ceph = FakeCeph(folder / "ceph")
        self.ceph.put("theirs", "precious")
        server.profile = f"export PATH={self.ceph.bin}:$PATH"
        self.environment = command_line.environment(folder, **command_line.keys())

    def words(self, *words: str, host: str = "gateway-1", pool: str = "bench") -> list[str]:
        ceph = f"{{host: {host}, pool: {pool}, user: client.bench}}"
        for name, text in (
            ("cluster", HARDWARE.format(folder=self.folder, port=self.server.port)),
            ("trial", trial("s3", more="layers: [rados, rbd, osd]\n", objects=TEN_OBJECTS)),
            ("mine", existing("mine", s3=s3_at(self.target), ceph=ceph)),
        ):
            (self.folder / f"{name}.yaml").write_text(text)
        return [*(words or self.compare), "--hardware", str(self.folder / "cluster.yaml")]

    @property
    def compare(self) -> tuple[str, ...]:
        layout, suite = str(self.folder / "mine.yaml"), str(self.folder / "trial.yaml")
        out = str(self.folder / "runs")
        return ("compare", "--suite", suite, "--layouts", layout, "--out", out, "--no-charts")

    def run(self, *words: str, **changes: str) -> subprocess.CompletedProcess[str]:
        return command_line.run(*self.words(*words, **changes), env=self.environment)

    def resume(self) -> subprocess.CompletedProcess[str]:
        return command_line.run("resume", "--no-charts", self.run_folder, env=self.environment)

    @contextmanager
    def benching(self) -> Iterator[subprocess.Popen[str]]:
        """The command, while `rados bench` runs, which takes long."""
        self.ceph.say("hang", 600)
        with command_line.started(*self.words(), env=self.environment) as process:
            read_until(process.stdout, "step 2/2")
            until(lambda: any(" bench 1 rand " in call for call in self.ceph.calls))
            yield process

    @property
    def run_folder(self) -> Path:
        (found,) = (self.folder / "runs").iterdir()
        return found

    @property
    def left(self) -> list[str]:
        """What is in the pool besides what was there before."""
        assert "theirs/precious" in self.ceph.objects
        return [one for one in self.ceph.objects if one != "theirs/precious"]


def stairs(folder: Path) -> list[dict[str, str]]:
    """RADOS and the gateway, as in the staircase of a run."""
    lines = (folder / "derived" / "staircase.csv").read_text().splitlines()
    return [one for one in csv.DictReader(lines) if one["level"] in ("rados", "gateway")]


@pytest.fixture
def cluster(server: Server, tmp_path: Path) -> Iterator[Cluster]:
    with null_target("--delay-ms", str(DELAY_MS)) as url:
        yield Cluster(tmp_path, server, url)


def test_rados_is_a_layer_below_the_gateway_and_the_pool_keeps_what_it_had(
    cluster: Cluster,
) -> None:
    done = cluster.run()
    assert done.returncode == 0, done.stdout + done.stderr
    store = RunStore.open(cluster.run_folder)
    (layer,) = (step for step in store.steps() if step.key.layer == "rados")
    assert layer.measurement is not None, layer.notes
    assert layer.measurement.driver == "rados-bench"
    rados, gateway = stairs(store.folder)
    assert "pool bench: 3 replicas, 32 placement groups, CRUSH rule 0" in rados["note"]
    assert (gateway["below"], bool(gateway["share_of_below"])) == ("rados", True)
    plan = json.loads((store.folder / "plan.resolved.json").read_text())
    assert plan["left_out"]["mine"] == [
        "layer rbd: no pools, images or file systems are made in a cluster that already runs",
        "layer osd: the OSDs' own benchmark is not run on a cluster that already runs",
    ]
    (facts,) = (one.facts for one in store.manifest.sheets if one.title == "layer rados")
    assert facts["pool: pools of gateways"] == "default.rgw.buckets.data"
    assert cluster.left == []
    assert cluster.server.all_ended()


@pytest.mark.test_all
def test_a_pool_unlike_the_gateways_has_no_shares_and_the_report_says_why(cluster: Cluster) -> None:
    cluster.ceph.say("pools", [detail(size=2), detail("default.rgw.buckets.data")])
    done = cluster.run()
    assert "not below (pool bench has 2 replicas, and default.rgw.buckets.data" in " ".join(
        done.stdout.split()
    )
    derived = cluster.run_folder / "derived"
    _, gateway = stairs(cluster.run_folder)
    assert (gateway["below"], gateway["share_of_below"]) == ("", "")
    assert "pool bench has 2 replicas" in (derived / "report.html").read_text()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"host": "gateway-2"}, "no host 'gateway-2' among those that are `observed`"),
        ({"pool": "benhc"}, "gateway-1: pool benhc: the cluster has no such pool"),
    ],
)
def test_what_is_wrong_is_refused_before_anything_is_measured(
    cluster: Cluster, changes: dict[str, str], words: str
) -> None:
    done = cluster.run(**changes)
    assert done.returncode == 2, done.stdout
    assert words in done.stderr
    assert not (cluster.folder / "runs").exists()
    assert cluster.left == []


@pytest.mark.test_all
@pytest.mark.parametrize(
    ("number", "denied"),
    [pytest.param(signal.SIGINT, False, marks=pytest.mark.test_all), (signal.SIGTERM, True)],
)
def test_a_run_that_is_asked_to_end_ends_its_bench_and_names_what_it_cannot_delete(
    cluster: Cluster, number: signal.Signals, denied: bool
) -> None:
    with cluster.benching() as process:
        if denied:
            cluster.ceph.say("denied", "error: (1) Operation not permitted")
        process.send_signal(number)
        said = " ".join(process.communicate(timeout=120)[0].split())
    assert process.returncode == 128 + number, said
    namespaces = {one.split("/")[0] for one in cluster.left}
    assert len(namespaces) == denied
    for one in namespaces:
        assert (
            f"objects that may be left: pool bench, namespace {one}, by gateway-1; all else that "
            "was started is ended" in said
        )
    assert cluster.server.all_ended()


def test_clean_deletes_what_runs_left_in_the_pool_and_nothing_else(cluster: Cluster) -> None:
    ours = ("benchmark_data_gateway-1_1_object0", "wb-0123abcd-small")
    for name in ours:
        cluster.ceph.put("wb-0123abcd", name)
    cluster.ceph.put("wb-89abcdef", ours[0])
    cluster.ceph.put("wb-89abcdef", "somebody's")
    layout = str(cluster.folder / "mine.yaml")
    listed = cluster.run("clean", layout)
    assert listed.returncode == 0, listed.stderr
    assert listed.stdout.count("a run may still be using it") == 1
    old = ("--older-than", "1ms")
    assert "2 namespaces, 1 can be deleted, 1 kept" in cluster.run("clean", layout, *old).stdout
    assert len(cluster.left) == 4
    done = cluster.run("clean", layout, "--delete", *old)
    assert done.returncode == 0, done.stderr
    assert "namespace wb-0123abcd: 2 objects" in done.stdout
    assert "deleted, with 2 objects" in done.stdout
    assert 'this suite did not make ("somebody\'s")' in done.stdout
    assert cluster.left == [f"wb-89abcdef/{ours[0]}", "wb-89abcdef/somebody's"]
    assert cluster.server.all_ended()


@pytest.mark.test_all
def test_clean_goes_on_where_one_namespace_cannot_be_deleted_and_names_it(cluster: Cluster) -> None:
    for namespace in ("wb-0123abcd", "wb-89abcdef"):
        cluster.ceph.put(namespace, "wb-0123abcd-small")
    cluster.ceph.say("stuck", "wb-0123abcd")
    layout = str(cluster.folder / "mine.yaml")
    done = cluster.run("clean", layout, "--delete", "--older-than", "1ms")
    assert done.returncode == 3, done.stdout
    assert "2 namespaces, 1 objects deleted, 0 kept" in done.stdout
    assert "pool bench, namespace wb-0123abcd, by gateway-1" in " ".join(done.stderr.split())
    assert cluster.left == ["wb-0123abcd/wb-0123abcd-small"]


def test_clean_goes_on_where_a_pool_does_not_answer_and_says_so(cluster: Cluster) -> None:
    cluster.ceph.say("denied", "error: (1) Operation not permitted")
    done = cluster.run("clean", str(cluster.folder / "mine.yaml"))
    assert done.returncode == 3, done.stdout
    assert "no run has left a bucket there" in done.stdout
    assert "gateway-1: rados ls --all: error: (1) Operation not permitted" in done.stderr
