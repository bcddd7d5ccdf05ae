"""A host of the lab with CPUs of its own runs on them alone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from small_lab import labelled, python, raised
from weighbridge.common.host import Host
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.lab import LabHosts
from weighbridge.topologies.lab.cgroup import Cgroups

pytestmark = pytest.mark.system

OWN = Hardware.model_validate(
    {
        "name": "lab-own",
        "kind": "lab",
        "hosts": {
            "client-1": {"memory": "256MiB"},
            "gateway-1": {"memory": "256MiB", "cpuset": "0"},
        },
    }
)
BURN = """
import os, time
end, ran_on = time.monotonic() + 1, set()
for _ in range(3):
    if not os.fork():
        break
while time.monotonic() < end:
    ran_on.add(int(open("/proc/self/stat").read().rpartition(")")[2].split()[36]))
print(*sorted(ran_on), flush=True)
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabHosts]:
    home = tmp_path_factory.mktemp("own")
    with raised(labelled("own"), home / "deployment", home / "state", hardware=OWN) as hosts:
        hosts.limit()
        yield hosts


def _affinity(host: Host) -> str:
    return python(host, "import os; print(*os.sched_getaffinity(0))").strip()


def test_its_programs_run_on_these_cpus_alone_however_many_they_are(own: LabHosts) -> None:
    gateway = own.hosts["gateway-1"]
    before, started = gateway.counters(), time.monotonic()
    ran_on = python(gateway, BURN).split()
    took_s, after = time.monotonic() - started, gateway.counters()
    assert set(ran_on) == {"0"}
    assert before.cpu_s is not None
    assert after.cpu_s is not None
    assert after.cpu_s - before.cpu_s <= took_s + 0.05
    assert _affinity(gateway) == "0"
    assert len(_affinity(own.hosts["client-1"]).split()) > 1


def test_the_facts_have_the_cpus_as_the_kernel_has_them(own: LabHosts) -> None:
    facts = own.facts()
    assert "cpuset.cpus 0;" in facts["limits gateway-1"]
    assert "cpuset" not in facts["limits client-1"]


def test_nothing_is_left_of_its_cgroups_in_any_hierarchy(tmp_path: Path) -> None:
    label = labelled("own-ends")
    with raised(label, tmp_path / "deployment", tmp_path / "state", hardware=OWN):
        assert Cgroups().folders(f"/weighbridge/{label}")
    assert not Cgroups().folders(f"/weighbridge/{label}")
