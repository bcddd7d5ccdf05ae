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


def test_running_daemons_pass(tmp_path: Path) -> None:
    daemon.check(hosts(tmp_path)[2])


def test_the_first_dead_daemon_and_all_others_are_named_with_their_hosts(
    tmp_path: Path,
) -> None:
    first, second, daemons = hosts(tmp_path)
    second.dead = {"container-server"}
    with pytest.raises(ServiceFailed) as one:
        daemon.check(daemons)
    assert (one.value.host, one.value.service, one.value.what) == (
        "store-2",
        "container-server",
        "died",
    )
    first.dead, second.dead = (
        {"account-server"},
        {"account-server", "container-server", "object-server"},
    )
    with pytest.raises(ServiceFailed) as all_of_them:
        daemon.check(daemons)
    assert (
        all_of_them.value.what
        == "died; so did account-server, container-server and object-server on store-2"
    )
    assert str(all_of_them.value).startswith("store-1: account-server: died; so did")


def test_a_daemon_that_died_with_its_host_is_reported_so(tmp_path: Path) -> None:
    _, second, daemons = hosts(tmp_path)
    second.gone = True
    with pytest.raises(ServiceFailed) as gone:
        daemon.check(daemons)
    what = (
        "died with its host, where nothing is running; so did container-server and "
        "object-server on store-2"
    )
    assert gone.value.what == what
