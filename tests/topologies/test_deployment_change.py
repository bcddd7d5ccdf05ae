"""Changing a running deployment, and checking configurations of many layouts on shared hosts."""

from collections.abc import Collection, Mapping
from pathlib import Path

import pytest

from stub_run import Run, StubGateway
from weighbridge.common.errors import (
    CommandFailed,
    MissingPrerequisite,
    ServiceFailed,
    TargetError,
    UsageError,
)
from weighbridge.common.host import Host
from weighbridge.common.structure import Scope
from weighbridge.gateways.gateway import Gateway, RunningGateway, Say
from weighbridge.topologies.deployment import deploy
from weighbridge.topologies.fake import FakeHosts, FakeKind
from weighbridge.topologies.hosts import LIMITED, Limited
from weighbridge.topologies.loader import Planned
from weighbridge.topologies.preflight import preflight, preflight_all


class Changeable(StubGateway):
    """Records what is asked of it, and fails with `error` when it is changed."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__()
        self.error = error

    def bring_up(self, hosts: Mapping[str, Host], client: Host, say: Say) -> RunningGateway:
        running = super().bring_up(hosts, client, say)

        def change(gateway: Gateway, scope: Scope, say: Say) -> tuple[str, ...]:
            self.did.append(f"change by {scope}")
            if self.error is not None:
                raise self.error
            return ("gateway-1: stub restarted",)

        running.change = change  # type: ignore[method-assign]
        return running


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Whether limits were put `on` or `off`, in order."""
    done: list[str] = []

    def limit(self: FakeHosts, what: Collection[Limited] = LIMITED) -> None:
        done.append("on")

    def unlimit(self: FakeHosts, what: Collection[Limited] = LIMITED) -> None:
        done.append("off")

    monkeypatch.setattr(FakeHosts, "limit", limit)
    monkeypatch.setattr(FakeHosts, "unlimit", unlimit)
    return done


def with_gateway(planned: Planned, gateway: Gateway) -> Planned:
    return Planned(planned.layout, gateway, planned.text)


def test_a_change_is_made_without_limits_and_updates_the_layout(
    run: Run, limits: list[str]
) -> None:
    gateway = Changeable()
    with deploy(
        with_gateway(run.planned[0], gateway), run.hardware, run.place, lambda text: None
    ) as deployment:
        assert deployment.change(run.planned[1], "restart", print) == ("gateway-1: stub restarted",)
        assert gateway.did[-1] == "change by restart"
        assert deployment.layout.name == "swift-b"
    assert limits == ["on", "off", "on"]


@pytest.mark.parametrize(
    "error",
    [UsageError("cannot"), CommandFailed("gateway-1", ["stub"], 1, "no"), KeyboardInterrupt()],
)
def test_after_a_failed_change_limits_are_on_and_the_layout_is_unchanged(
    run: Run, limits: list[str], error: Exception
) -> None:
    with deploy(
        with_gateway(run.planned[0], Changeable(error)), run.hardware, run.place, lambda text: None
    ) as deployment:
        with pytest.raises(type(error)):
            deployment.change(run.planned[1], "restart", print)
        assert limits == ["on", "off", "on"]
        assert deployment.layout.name == "rgw-a"


def test_limits_are_on_again_when_only_some_could_be_removed(
    run: Run, limits: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(self: FakeHosts, what: Collection[Limited] = LIMITED) -> None:
        limits.append("half off")
        raise TargetError("store-1: no such cgroup")

    gateway = Changeable()
    with deploy(
        with_gateway(run.planned[0], gateway), run.hardware, run.place, lambda text: None
    ) as deployment:
        monkeypatch.setattr(FakeHosts, "unlimit", half)
        with pytest.raises(TargetError, match="no such cgroup"):
            deployment.change(run.planned[1], "restart", print)
    assert limits == ["on", "half off", "on"]
    assert "change by restart" not in gateway.did


def test_the_error_of_a_service_that_a_change_ended_names_its_kept_log(
    run: Run, tmp_path: Path
) -> None:
    gateway = Changeable()
    kept = tmp_path / "kept"
    planned = with_gateway(run.planned[0], gateway)
    with deploy(planned, run.hardware, run.place, lambda text: None, logs=kept) as deployment:
        host = deployment.hosts["gateway-1"]
        host.log("stub.out").write_text("no such mode")
        gateway.error = ServiceFailed(
            host.name, "stub", "died", log=str(host.log("stub.out")), tail=["no such mode"]
        )
        with pytest.raises(ServiceFailed, match="stub: died") as error:
            deployment.change(run.planned[1], "restart", print)
    assert Path(error.value.log) == kept / "gateway-1" / "stub.out"
    assert Path(error.value.log).read_text() == "no such mode"


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The labels of deployments whose hosts were started."""
    labels: list[str] = []

    class Counted(FakeHosts):
        def __init__(self, deployment: str, *rest: object) -> None:
            labels.append(deployment)
            super().__init__(deployment, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(FakeKind, "made", Counted)
    return labels


def test_layouts_that_differ_in_settings_share_hosts_and_each_gets_its_own_refusal(
    run: Run, started: list[str]
) -> None:
    first, second = run.planned
    run.gateways["swift-b"].unknown_option = "mode"
    assert preflight_all([first, second], run.hardware, run.place, lambda text: None) == {
        "swift-b": "no option 'mode'"
    }
    assert [gateway.did for gateway in run.gateways.values()] == [["preflight"], ["preflight"]]
    assert len(started) == 1
    assert not list(run.place.deployments.iterdir())


def test_a_layout_of_another_release_is_checked_on_other_hosts(
    run: Run, started: list[str]
) -> None:
    first, second = run.planned
    other = Planned(second.layout.model_copy(update={"release": "2"}), second.gateway, "")
    assert preflight_all([first, other], run.hardware, run.place, lambda text: None) == {}
    assert len(started) == 2


def test_without_layouts_no_hosts_are_started(run: Run, started: list[str]) -> None:
    assert preflight_all([], run.hardware, run.place, lambda text: None) == {}
    assert started == []


def test_a_lack_of_this_machine_is_not_blamed_on_a_layout(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacks(*_: object) -> None:
        raise MissingPrerequisite("the responder was not built", advice="make setup")

    monkeypatch.setattr(run.gateways["rgw-a"], "preflight", lacks)
    with pytest.raises(MissingPrerequisite, match="make setup"):
        preflight_all(run.planned, run.hardware, run.place, lambda text: None)
    assert not list(run.place.deployments.iterdir())


def test_preflight_raises_the_refusal_and_tears_its_hosts_down(run: Run) -> None:
    run.gateways["rgw-a"].unknown_option = "mode"
    with pytest.raises(UsageError, match="no option 'mode'"):
        preflight(run.planned[0], run.hardware, run.place, lambda text: None)
    assert not list(run.place.deployments.iterdir())
