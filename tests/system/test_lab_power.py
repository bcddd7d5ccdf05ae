"""Hosts of the lab lose power one by one, and get it back."""

from __future__ import annotations

import errno
import sys
from pathlib import Path

import pytest

from small_lab import labelled, raised
from weighbridge.common.errors import UsageError
from weighbridge.common.host import Host, Service
from weighbridge.topologies.lab import ending

pytestmark = pytest.mark.system

STORE = "store-1"


def answers(client: Host, address: str) -> bool:
    """Whether a host refuses a connection to a port on which nothing listens."""
    place = f"({address!r}, 9)"
    text = f"from socket import *; s = socket(); s.settimeout(5); print(s.connect_ex({place}))"
    return int(client.run([sys.executable, "-c", text]).stdout) == errno.ECONNREFUSED


def test_a_host_has_its_disks_its_address_and_its_limits_when_its_power_is_back(
    tmp_path: Path,
) -> None:
    with raised(labelled("power"), tmp_path / "deployment", tmp_path / "state") as hosts:
        client, store = hosts.hosts["client-1"], hosts.hosts[STORE]
        hosts.limit()
        before = hosts.facts()[f"limits {STORE}"]
        text = "mkfs.xfs -q -f -K /dev/wb0; mount /dev/wb0 /mnt; echo kept >/mnt/file; sync"
        store.run(["sh", "-ec", text])
        store.start([Service("sleeper", ("sleep", "1000"))])
        assert answers(client, store.address)
        hosts.power_off([STORE])
        assert not answers(client, store.address)
        assert not store.is_up()
        assert not store.alive("sleeper")
        hosts.power_on([STORE])
        assert store.is_up()
        assert not store.alive("sleeper")
        store.run(["sh", "-ec", "mount /dev/wb0 /mnt"])
        assert store.run(["cat", "/mnt/file"]).stdout == "kept\n"
        assert answers(client, store.address)
        assert hosts.facts()[f"limits {STORE}"] == before
        for name in ("client-1", "store-9"):
            with pytest.raises(UsageError, match=name):
                hosts.power_off([name])
        with pytest.raises(UsageError, match="this suite cannot cut"):
            hosts.power_cuts()
        # What is without power at the end leaves nothing either.
        hosts.power_off([STORE])
    assert not ending.find_leftovers(state=tmp_path / "state")
