"""`rados bench` in an existing pool of a real Ceph below its RGW, over a real sshd on the gateway's
host, by a user who is not root and a Ceph user with no rights but on that pool.

The cluster runs on lab hosts; the command runs in the network of their client and knows nothing of
them but an address, a key and a layout. What is in the pool, which pools there are, and which files
are new on the host is asked with the administrator's key, past sshd.
"""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from deployed_layouts import deployed, endpoint
from machines import IMAGE
from small_lab import within
from suite_command import heard, in_network_of, measured, started, weighbridge
from weighbridge.common.host import Service
from weighbridge.gateways.rgw.rgw import Rgw
from weighbridge.topologies.deployment import Deployment

pytestmark = pytest.mark.system

USER = "ops"
POOL = "bench"
CAPS = {
    "client.bench": ("mon", "allow r", "osd", f"allow rw pool={POOL}"),
    "client.reader": ("mon", "allow r", "osd", f"allow r pool={POOL}"),
}
SUITE = """
name: trial
settle: 0s
about: Reads and writes, as short as they can be
api: [s3]
layers: [rados, rbd, osd]
rados: {{instances: 2}}
workloads:
  - name: get
    objects: {{size: 64KiB, containers: 2, per_container: 20}}
    operations: {{read: 1}}
    workers: [4]
    runtime: {runtime}
    warmup: 1s
  - name: put
    objects: {{size: 64KiB, containers: 2, per_container: 20}}
    operations: {{write: 1}}
    workers: [4]
    runtime: {runtime}
    warmup: 0s
"""
LAYOUT = """
name: mine
about: An RGW that already runs
gateway: existing
release: any
place: {{}}
settings:
  s3: {{url: "{url}", credentials: environment}}
  ceph: {{host: gateway-1, pool: {pool}, user: {user}, keyring: /etc/ceph/ceph.{user}.keyring}}
"""
HARDWARE = """
name: cluster
kind: existing
hosts: {{client-1: {{}}}}
ssh: {{user: ops, key: {ssh}/key, known_hosts: {ssh}/known}}
observed:
  gateway-1: {{ssh: {{host: {address}}}, tier: gateway, nic: eth0}}
"""
NEW_FILES = (
    "find / -xdev \\( -path /proc -o -path /sys -o -path /run -o -path /dev -o -path "
    "/var/log/host \\) -prune -o -type f -newer /tmp/marker -print"
)


class Site:
    def __init__(self, deployment: Deployment, folder: Path) -> None:
        self.folder = folder
        self.client, self.gateway = deployment.client, deployment.hosts["gateway-1"]
        self.s3 = endpoint(deployment, "s3")
        self._open_sshd()
        self.ceph("osd", "pool", "create", POOL, "16", "16")
        self.ceph("osd", "pool", "application", "enable", POOL, "rados")
        self.run_there("rados", "--pool", POOL, "create", "benchmark_data_precious")
        for user, caps in CAPS.items():
            path = f"/etc/ceph/ceph.{user}.keyring"
            self.ceph("auth", "get-or-create", user, *caps, "-o", path)
            self.run_there("chown", USER, path)
        self.run_there("touch", "/tmp/marker")

    def _open_sshd(self) -> None:
        ssh = self.folder / "ssh"
        ssh.mkdir()
        key = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(ssh / "key"))
        subprocess.run(key, check=True)
        self.run_there("useradd", "--create-home", "--shell", "/bin/sh", USER)
        home = f"/home/{USER}/.ssh/authorized_keys"
        self.gateway.put(home, (ssh / "key.pub").read_text(), mode=0o600, owner=USER)
        self.run_there("chown", USER, f"/home/{USER}/.ssh")
        self.run_there("mkdir", "-p", "/run/sshd")
        self.run_there("ssh-keygen", "-A")
        self.gateway.start([Service("sshd", ("/usr/sbin/sshd", "-D", "-e"))])
        public = self.run_there("cat", "/etc/ssh/ssh_host_ed25519_key.pub").split()
        (ssh / "known").write_text(f"{self.gateway.address} {public[0]} {public[1]}\n")

    def run_there(self, *argv: str) -> str:
        return self.gateway.run(argv, timeout_s=120).stdout

    def ceph(self, *words: str) -> str:
        return self.run_there("ceph", *words)

    @property
    def objects(self) -> list[str]:
        """Everything in the pool, in all namespaces, as an administrator sees it."""
        listed = self.run_there("rados", "--pool", POOL, "ls", "--all").splitlines()
        return sorted(line.strip() for line in listed)

    @property
    def pools(self) -> str:
        """All pools with their settings, without what counts changes elsewhere."""
        found = json.loads(self.ceph("osd", "pool", "ls", "detail", "--format", "json"))
        kept = ("pool_name", "size", "pg_num", "crush_rule", "quota_max_bytes", "flags_names")
        return json.dumps([{key: one[key] for key in kept} for one in found])

    @property
    def benches(self) -> list[str]:
        """Processes of `rados` or of its parent on the gateway's host."""
        text = "ps -e -o args= | grep -E 'rados .* bench |ParallelCommands' | grep -v grep || true"
        return self.run_there("sh", "-c", text).splitlines()

    def compare(self, name: str, *, runtime: str = "3s", **layout: str) -> str:
        """The words that measure the gateway and the pool, in a folder of its own."""
        folder = self.folder / name
        folder.mkdir()
        text = LAYOUT.format(**{"url": self.s3.url, "pool": POOL, "user": "client.bench", **layout})
        (folder / "mine.yaml").write_text(text)
        (folder / "trial.yaml").write_text(SUITE.format(runtime=runtime))
        ssh, address = self.folder / "ssh", self.gateway.address
        (folder / "cluster.yaml").write_text(HARDWARE.format(ssh=ssh, address=address))
        files = f"--suite {folder}/trial.yaml --layouts {folder}/mine.yaml"
        return f"compare {files} --hardware {folder}/cluster.yaml --out {folder}/runs --no-charts"

    @property
    def environment(self) -> dict[str, str]:
        return {
            "WEIGHBRIDGE_HOME": str(self.folder / "home"),
            "WEIGHBRIDGE_STATE": str(self.folder / "state"),
            "AWS_ACCESS_KEY_ID": self.s3.user,
            "AWS_SECRET_ACCESS_KEY": self.s3.key.get_secret_value(),
        }

    def done(self, words: str) -> subprocess.CompletedProcess[str]:
        return weighbridge(words, within=in_network_of(self.client), env=self.environment)

    @contextmanager
    def benching(self, name: str) -> Iterator[subprocess.Popen[str]]:
        process = started(
            self.compare(name, runtime="20s"),
            subprocess.PIPE,
            within=in_network_of(self.client),
            env=self.environment,
        )
        try:
            heard(process, "step 3/4")
            assert within(60, lambda: any(" 20 rand " in one for one in self.benches))
            yield process
        finally:
            process.kill()
            process.communicate()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("pool")
    with pytest.MonkeyPatch.context() as patch:
        # Its packages are those of the cluster and sshd.
        patch.setattr(Rgw, "image", IMAGE)
        with deployed("rgw-beast", folder, once=True) as deployment:
            yield Site(deployment, folder)


def test_rados_is_measured_below_the_gateway_and_nothing_is_left_or_changed(site: Site) -> None:
    before = site.objects, site.pools
    assert site.objects == ["benchmark_data_precious"]
    done = site.done(site.compare("run"))
    store = measured(done, site.folder / "run" / "runs")
    run = store.folder
    below = [step for step in store.steps() if step.key.layer == "rados"]
    assert [step.key.workload for step in below] == ["get", "put"]
    for step in below:
        assert step.measurement is not None, step.notes
        (tally,) = step.measurement.tallies
        assert tally.count > 4
        assert tally.bytes == tally.count * 65536
    stairs = (run / "derived" / "staircase.csv").read_text()
    assert "pool bench: 1 replica, 16 placement groups, CRUSH rule 0; from gateway-1" in stairs
    assert " of RADOS" in " ".join(done.stdout.split())
    assert (site.objects, site.pools) == before
    assert site.benches == []
    written = site.run_there("sh", "-c", f"{NEW_FILES} || true").splitlines()
    assert [path for path in written if not path.startswith(("/var/lib/ceph", "/var/log"))] == []


@pytest.mark.test_all
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_run_that_is_asked_to_end_leaves_nothing(site: Site, number: signal.Signals) -> None:
    before = site.objects
    with site.benching(f"run-{number.name}") as process:
        assert len(site.objects) > len(before)
        process.send_signal(number)
        said = process.communicate(timeout=120)[0]
    assert process.returncode == 128 + number, said
    assert "all that was started is ended" in said
    assert (site.objects, site.benches) == (before, [])


@pytest.mark.test_all
def test_programs_end_with_a_killed_run_and_clean_sweeps_what_it_left_and_nothing_else(
    site: Site,
) -> None:
    before = site.objects
    with site.benching("killed") as process:
        process.kill()
    assert within(60, lambda: site.benches == [])
    assert len(site.objects) > len(before)
    folder = site.folder / "killed"
    sweep = f"clean {folder}/mine.yaml --hardware {folder}/cluster.yaml --delete"
    done = site.done(sweep)
    assert "a run may still be using it" in done.stdout, done.stdout + done.stderr
    assert len(site.objects) > len(before)
    done = site.done(f"{sweep} --older-than 1ms")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "deleted, with " in done.stdout
    assert site.objects == before


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        ({"pool": "benhc"}, "gateway-1: pool benhc: the cluster has no such pool"),
        *(
            pytest.param({"user": user}, f"{user} cannot use it: rados create: ", marks=more)
            for user, more in (("client.reader", ()), ("client.nobody", pytest.mark.test_all))
        ),
    ],
)
def test_what_is_wrong_is_refused_before_anything_is_measured(
    site: Site, layout: dict[str, str], words: str
) -> None:
    before = site.objects, site.pools
    name = "-".join(layout.values())
    done = site.done(site.compare(name, **layout))
    assert done.returncode == 2, done.stdout + done.stderr
    assert words in " ".join(done.stderr.split())
    assert not (site.folder / name / "runs").exists()
    assert (site.objects, site.pools) == before


@pytest.mark.test_all
def test_a_pool_with_a_quota_is_refused(site: Site) -> None:
    site.ceph("osd", "pool", "set-quota", POOL, "max_objects", "1000")
    try:
        done = site.done(site.compare("quota"))
    finally:
        site.ceph("osd", "pool", "set-quota", POOL, "max_objects", "0")
    assert done.returncode == 2, done.stdout
    assert "it has a quota (1,000 objects)" in " ".join(done.stderr.split())
