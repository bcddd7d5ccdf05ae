"""The null target on local fake hosts: its start, and changes while it runs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from weighbridge.common.errors import ServiceFailed, UsageError
from weighbridge.common.host import Host
from weighbridge.common.structure import Scope
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


def test_a_null_target_restarts_with_other_options_on_the_same_port_and_key(
    hosts: dict[str, Host],
) -> None:
    running = null().bring_up(hosts, hosts["client-1"], print)
    before = running.endpoints
    assert running.change(null(delay_ms=20), "restart", print) == (
        "null target: restarted, its objects are lost",
    )
    assert running.endpoints == before
    assert running.facts["delay"] == "20 ms before each answer"
    assert running.facts["verified"].startswith("16 operations")
    checks = verify(hosts["client-1"], before, stores_bodies=False)
    assert min(check.took_ms for check in checks) >= 20
    running.check()


def test_a_null_target_serves_both_apis_and_an_unchanged_one_is_left_alone(
    hosts: dict[str, Host],
) -> None:
    given = {"threads": 2, "delay_ms": 2, "delay_spread": 0.5}
    planned = null(**given)
    running = planned.bring_up(hosts, hosts["client-1"], print)
    assert tuple(one.api for one in running.endpoints) == planned.apis()
    assert running.facts["delay"] == "1 to 3 ms, drawn by the seed, before each answer"
    key = running.endpoints[0].key.get_secret_value()
    lines = [_command_line(path) for path in Path("/proc").glob("[0-9]*/cmdline")]
    assert not [line for line in lines if key.encode() in line]
    assert any(b"null-target" in line for line in lines)
    assert running.change(null(**given), "nothing", print) == ("null target: no change needed",)


def _command_line(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""  # it ended meanwhile


def test_one_that_is_meant_to_fail_is_not_verified_and_can_be_changed_back(
    hosts: dict[str, Host],
) -> None:
    running = null(fail_share=1).bring_up(hosts, hosts["client-1"], print)
    assert running.facts["verified"] == "no: it is meant to fail or to stall"
    running.change(null(), "buckets", print)
    assert running.facts["verified"].startswith("16 operations")
    running.change(null(fail_share=1), "buckets", print)
    assert running.facts["verified"] == "no: it is meant to fail or to stall"


def test_one_that_fails_to_start_is_an_error_and_can_be_changed_back(
    hosts: dict[str, Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    running = null().bring_up(hosts, hosts["client-1"], print)
    broken = null(seed=1)
    monkeypatch.setattr(broken, "arguments", lambda _: ("no-such-verb",))
    with pytest.raises(ServiceFailed, match="null-target: died"):
        running.change(broken, "restart", print)
    with pytest.raises(ServiceFailed, match="null-target: died"):
        running.check()
    running.change(null(), "restart", print)
    running.check()


def test_another_port_or_less_than_a_restart_is_refused_while_it_keeps_running(
    hosts: dict[str, Host],
) -> None:
    running = null().bring_up(hosts, hosts["client-1"], print)
    refused: list[tuple[Null, Scope]] = [
        (null(port=8081), "restart"),
        (null(seed=1), "nothing"),
        (null(seed=1), "reload"),
    ]
    for changed, scope in refused:
        with pytest.raises(UsageError, match="null target"):
            running.change(changed, scope, print)
    running.check()


def test_every_setting_of_the_null_target_but_its_port_loses_its_objects() -> None:
    assert {key: Null.scope(key) for key in ("delay_ms", "seed", "port", "nonsense")} == {
        "delay_ms": "buckets",
        "seed": "buckets",
        "port": "cluster",
        "nonsense": "cluster",
    }
