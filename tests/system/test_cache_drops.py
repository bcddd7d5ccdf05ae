"""Caches are really dropped: what a lab host has read comes from its disk again, by the kernel's
own count of reads.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from stub_run import StubGateway
from weighbridge.common.host import Host
from weighbridge.conductor.step_runner import dropping
from weighbridge.suites import Every
from weighbridge.topologies.deployment import Deployment, StateFolders, deploy
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.loader import Layout, Planned

pytestmark = [pytest.mark.system, pytest.mark.alone]

MIB = 2**20
FILE_BYTES = 16 * MIB
HARDWARE = Hardware.model_validate(
    {
        "name": "cache-test",
        "kind": "lab",
        "hosts": {
            "client-1": {"memory": "512MiB"},
            "gateway-1": {"memory": "512MiB", "disks": [{"size": "512MiB"}]},
        },
    }
)
MAKE = (
    "mkfs.xfs -q -f /dev/wb0; mkdir -p /run/m; mount -t xfs /dev/wb0 /run/m; head -c "
    f"{FILE_BYTES} /dev/urandom >/run/m/f; sync"
)


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    home = tmp_path_factory.mktemp("caches")
    planned = Planned(
        Layout(name="stub", about="", gateway="stub", release="1", place={}), StubGateway(), ""
    )
    with deploy(
        planned, HARDWARE, StateFolders(home=home, state=home / "state"), lambda _: None
    ) as deployment:
        yield deployment


@pytest.fixture(scope="module")
def host(deployment: Deployment) -> Host:
    """A host with a file of FILE_BYTES on its disk, which has been read."""
    found = deployment.hosts["gateway-1"]
    found.run(["sh", "-ec", MAKE])
    found.run(["cat", "/run/m/f"])
    return found


def bytes_read(host: Host) -> int:
    """What the kernel has read from the host's disk to read the file once more."""
    before = host.counters().disk_read_bytes
    host.run(["sh", "-c", "cat /run/m/f >/dev/null"])
    after = host.counters().disk_read_bytes
    assert before is not None
    assert after is not None
    return after - before


def test_what_was_read_comes_from_the_disk_again_when_a_deployments_caches_were_dropped(
    deployment: Deployment, host: Host
) -> None:
    bytes_read(host)
    assert bytes_read(host) < MIB, "it is in the page cache"
    dropped = deployment.drop_caches()
    assert bytes_read(host) >= FILE_BYTES
    assert any("page cache" in words for words in dropped)


def test_caches_that_are_dropped_every_second_are_dropped_again_and_again(
    deployment: Deployment, host: Host
) -> None:
    def drop() -> None:
        deployment.drop_caches()

    from_disk = 0
    deadline = time.monotonic() + 60
    with dropping(Every(every=1.0), drop):
        while from_disk < 4 and time.monotonic() < deadline:
            from_disk += bytes_read(host) >= FILE_BYTES
    assert from_disk == 4
