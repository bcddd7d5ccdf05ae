from pathlib import Path

import pytest

from tests.gateways.stub_host import StubHost
from weighbridge.common.errors import ServiceFailed
from weighbridge.common.host import Service
from weighbridge.gateways import daemon
from weighbridge.gateways.daemon import Daemon


class Going(StubHost):
    """A host that can disappear."""

    gone = False

    def is_up(self) -> bool:
        return not self.gone

    def alive(self, service: str) -> bool:
        return not self.gone and super().alive(service)


def hosts(folder: Path) -> tuple[Going, Going, list[Daemon]]:
    first, second = (
        Going(name, "10.0.0.1", folder, [], lambda *_: "", {}) for name in ("store-1", "store-2")
    )
    names = [
        (first, "account-server"),
        (second, "account-server"),
        (second, "container-server"),
        (second, "object-server"),
    ]
    return first, second, [Daemon(host, Service(name, (name,))) for host, name in names]


def test_the_first_dead_daemon_and_all_others_are_named_with_their_hosts(tmp_path: Path) -> None:
    first, second, daemons = hosts(tmp_path)
    daemon.check(daemons)
    second.dead = {"container-server"}
    with pytest.raises(ServiceFailed, match=r"^store-2: container-server: died(\n|$)"):
        daemon.check(daemons)
    first.dead = {"account-server"}
    second.dead = {"account-server", "container-server", "object-server"}
    others = "so did account-server, container-server and object-server on store-2"
    with pytest.raises(ServiceFailed, match=f"^store-1: account-server: died; {others}"):
        daemon.check(daemons)


def test_a_daemon_that_died_with_its_host_is_reported_so(tmp_path: Path) -> None:
    _, second, daemons = hosts(tmp_path)
    second.gone = True
    with pytest.raises(ServiceFailed, match=r"died with its host.*; so did container-server and "):
        daemon.check(daemons)
