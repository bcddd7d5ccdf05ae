"""Changing a null target that stands, on pretended hosts."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from weighbridge.common.errors import ServiceFailed, UsageError
from weighbridge.common.host import Host
from weighbridge.common.scope import Scope
from weighbridge.gateways.null.null import Null, NullPlacement, NullSettings
from weighbridge.gateways.verify import verify
from weighbridge.topologies.fake import FakeHost

PLACE = NullPlacement(target="gateway-1")


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[dict[str, Host]]:
    both = {
        name: FakeHost(name, f"127.78.{len(name)}.1", tmp_path / name)
        for name in ("client-1", "gateway-1")
    }
    yield dict(both)
    for host in both.values():
        host.close()


def null(**settings: object) -> Null:
    return Null("engine", PLACE, NullSettings.model_validate(settings))


def test_a_null_target_takes_other_options_on_the_same_port_with_the_same_key(
    hosts: dict[str, Host],
) -> None:
    standing = null().bring_up(hosts, hosts["client-1"], print)
    before = standing.endpoints
    assert standing.change(null(delay_ms=20), "restart", print) == (
        "null target: ended and started, what it held is forgotten",
    )
    assert standing.endpoints == before
    assert standing.facts["delay"] == "20 ms before each answer"
    assert standing.facts["verified"].startswith("16 operations")
    checks = verify(hosts["client-1"], before, stores_bodies=False)
    assert min(check.took_ms for check in checks) >= 20
    standing.check()


def test_a_null_target_that_is_as_wanted_is_left_alone(hosts: dict[str, Host]) -> None:
    standing = null(threads=2).bring_up(hosts, hosts["client-1"], print)
    assert standing.change(null(threads=2), "nothing", print) == (
        "null target: nothing is to be changed",
    )


def test_one_that_is_to_fail_comes_up_unverified_and_can_be_changed_back(
    hosts: dict[str, Host],
) -> None:
    standing = null().bring_up(hosts, hosts["client-1"], print)
    standing.change(null(fail_share=1), "buckets", print)
    assert standing.facts["verified"] == "no: it is to fail or to stall"
    standing.change(null(), "buckets", print)
    assert standing.facts["verified"].startswith("16 operations")


def test_one_that_does_not_come_up_is_an_error_and_can_be_changed_back(
    hosts: dict[str, Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    standing = null().bring_up(hosts, hosts["client-1"], print)
    broken = null(seed=1)
    monkeypatch.setattr(broken, "words", lambda _: ("no-such-verb",))
    with pytest.raises(ServiceFailed, match="null-target: died"):
        standing.change(broken, "restart", print)
    with pytest.raises(ServiceFailed, match="null-target: died"):
        standing.check()
    standing.change(null(), "restart", print)
    standing.check()


@pytest.mark.parametrize(
    ("settings", "scope"),
    [({"port": 8081}, "restart"), ({"seed": 1}, "nothing"), ({"seed": 1}, "reload")],
)
def test_another_port_or_less_than_a_restart_is_refused_and_it_goes_on(
    hosts: dict[str, Host], settings: dict[str, object], scope: Scope
) -> None:
    standing = null().bring_up(hosts, hosts["client-1"], print)
    with pytest.raises(UsageError, match="null target"):
        standing.change(null(**settings), scope, print)
    standing.check()


def test_what_the_null_target_holds_is_forgotten_with_each_setting_but_its_port() -> None:
    assert {key: Null.scope(key) for key in ("delay_ms", "seed", "port", "nonsense")} == {
        "delay_ms": "buckets",
        "seed": "buckets",
        "port": "cluster",
        "nonsense": "cluster",
    }
