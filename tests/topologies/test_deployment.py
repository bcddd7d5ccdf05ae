import contextlib
import errno
import os
import signal
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from types import FrameType
from typing import cast

import pytest

from stub_run import Run, StubGateway
from weighbridge.common import cleanup
from weighbridge.common.errors import (
    CommandFailed,
    MissingPrerequisite,
    ServiceFailed,
    TargetError,
    UsageError,
)
from weighbridge.common.host import Host, Service
from weighbridge.common.structure import Scope
from weighbridge.conductor.interruption import Interrupted, interruptible
from weighbridge.gateways.gateway import Gateway, RunningGateway, Say
from weighbridge.results.run.reading import StoreError
from weighbridge.topologies import deployment as deployment_module
from weighbridge.topologies.deployment import (
    deploy,
    deployment_owners,
    preflight,
    preflight_all,
    running_deployments,
)
from weighbridge.topologies.fake import FakeHost, FakeHosts, FakeKind
from weighbridge.topologies.hosts import LIMITED, DeploymentOwner, Limited
from weighbridge.topologies.loader import Planned


class Doomed(StubGateway):
    """Its service prints why it ends, and the gateway's error quotes that."""

    def bring_up(self, hosts: dict[str, Host], client: Host, say: Say) -> RunningGateway:
        host = hosts["gateway-1"]
        host.start([Service("doomed", ("sh", "-c", "echo no more room"))])
        while host.alive("doomed"):
            pass
        log, tail = str(host.log("doomed.out")), host.log_tail("doomed.out")
        raise ServiceFailed(host.name, "doomed", "ended", log=log, tail=tail)


@pytest.mark.parametrize("named", [True, False])
def test_the_log_of_a_failed_service_is_kept_where_the_error_says(
    run: Run, tmp_path: Path, named: bool
) -> None:
    with pytest.raises(ServiceFailed, match="no more room") as error:
        run.deployed(Doomed(), logs=tmp_path / "kept" if named else None)
    assert Path(error.value.log).read_text() == "no more room\n"
    assert str(tmp_path / ("kept" if named else "home/logs")) in str(error.value)
    assert not list(run.place.deployments.iterdir())


def test_a_running_deployment_has_a_record_only_root_can_read_until_it_is_torn_down(
    run: Run,
) -> None:
    with run.deployed() as deployment:
        (found,) = running_deployments(run.place)
        assert (found.label, found.layout) == (deployment.label, "rgw-a")
        assert found.endpoints[0].key.get_secret_value() == "planted-secret"
        record = run.place.deployments / deployment.label / "deployment.json"
        assert record.stat().st_mode & 0o077 == 0
    assert running_deployments(run.place) == ()


def test_a_record_is_never_found_half_written(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    write_text, fsync = Path.write_text, os.fsync

    def look() -> None:
        seen.append(len(running_deployments(run.place)))
        assert len(deployment_owners(run.place)) == len(
            list(run.place.deployments.glob("*/conductor.json"))
        )

    def halfway(path: Path, text: str, *rest: object) -> int:
        write_text(path, text[: len(text) // 2])
        look()
        return write_text(path, text)

    def at_sync(descriptor: int) -> None:
        look()
        fsync(descriptor)

    monkeypatch.setattr(Path, "write_text", halfway)
    monkeypatch.setattr(os, "fsync", at_sync)
    with run.deployed():
        assert len(running_deployments(run.place)) == 1
    assert set(seen) == {0}


def test_an_invalid_record_is_an_error_that_names_its_file(run: Run) -> None:
    with run.deployed() as deployment:
        record = run.place.deployments / deployment.label / "deployment.json"
        for content in (record.read_bytes()[:40], b"", b"[]"):
            record.write_bytes(content)
            why = r"deployment\.json: is not a valid record.*\n.*weighbridge down"
            with pytest.raises(TargetError, match=why):
                running_deployments(run.place)


def test_a_failure_to_keep_logs_is_said_and_does_not_hide_the_original_error(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "logs").write_text("no folder can be made here")
    messages: list[str] = []
    deployment = deploy(
        run.planned[0], run.hardware, run.place, messages.append, logs=tmp_path / "logs"
    )
    deployment.hosts["gateway-1"].log("stub.out").write_text("hello")
    with pytest.raises(StoreError, match="the disk is full"), deployment:
        raise StoreError(tmp_path / "steps.jsonl", OSError(errno.ENOSPC, "No space left on device"))
    assert f"{tmp_path}/logs: the logs of gateway-1 cannot be kept: File exists" in messages
    assert not list(run.place.deployments.iterdir())


def test_logs_are_kept_and_those_that_cannot_be_are_listed_and_cost_no_other(
    run: Run, tmp_path: Path
) -> None:
    """Links are followed on neither side, and pipes not waited for."""
    for name in ("shadow", "victim", "etc/key"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("mine")
    kept = tmp_path / "logs"
    (kept / "gateway-1" / "other.out" / "other.out").mkdir(parents=True)
    (kept / "gateway-1" / "over.out").symlink_to(tmp_path / "victim")
    with run.deployed(logs=kept) as deployment:
        logs = deployment.hosts["gateway-1"].log("")
        for name in ("stub.out", "other.out", "over.out"):
            (logs / name).write_text("hello")
        (logs / "stolen").symlink_to(tmp_path / "shadow")
        (logs / "folder").symlink_to(tmp_path / "etc")
        (logs / "inner").mkdir()
        os.mkfifo(logs / "inner" / "pipe")
    files = {path for path in kept.rglob("*") if path.is_file() and not path.is_symlink()}
    assert files == {kept / "gateway-1" / "stub.out", kept / "gateway-1.not-copied.txt"}
    assert (kept / "gateway-1" / "stub.out").read_text() == "hello"
    assert sorted((kept / "gateway-1.not-copied.txt").read_text().splitlines()) == [
        "folder: is a link, which is not followed",
        "inner/pipe: is a pipe",
        "other.out: Is a directory",
        "over.out: is a link, which is not followed",
        "stolen: is a link, which is not followed",
    ]
    assert (tmp_path / "victim").read_text() == "mine"


def test_the_tail_of_a_log_is_read_without_links_and_without_the_stack_of_a_crash(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "shadow").write_text("root:secret")
    frames = "".join(f" {number}: (librados::IoCtx::close()+0x6e) [0x7f]\n" for number in range(30))
    dump = f"ERROR: failed to bind: Address already in use\n*** Caught signal (Abort) **\n{frames}"
    with run.deployed() as deployment:
        host = deployment.hosts["gateway-1"]
        assert host.log_tail("none") == []
        host.log("osd.out").symlink_to(tmp_path / "shadow")
        (line,) = host.log_tail("osd.out")
        assert line.endswith("osd.out: is a link, which is not followed")
        with pytest.raises(TargetError, match="is a link"):
            host.read_log("osd.out")
        host.log("osd.out").unlink()
        host.log("osd.out").write_text("one\ntwo\nthree\n")
        assert host.log_tail("osd.out", 2) == ["two", "three"]
        assert host.read_log("osd.out", 4) == b"two\nthree\n"
        host.log("radosgw.out").write_text(dump)
        assert host.log_tail("radosgw.out") == dump.splitlines()[:2]


def test_a_deployment_whose_record_cannot_be_written_is_torn_down(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Host] = []

    class Recorded(StubGateway):
        def bring_up(self, hosts: dict[str, Host], client: Host, say: Say) -> RunningGateway:
            started.append(hosts["gateway-1"])
            return super().bring_up(hosts, client, say)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("weighbridge.topologies.deployment._write", full)
    with pytest.raises(OSError, match="No space left"):
        run.deployed(Recorded())
    assert not started[0].alive("stub")
    assert not list(run.place.deployments.iterdir())


def test_fake_hosts_are_not_attested(run: Run) -> None:
    with run.deployed(attest=True) as deployment:
        assert deployment.attestation is None


def test_missing_tools_end_it_before_a_host_starts_and_say_what_they_are_for(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def offline(*_: object, **__: object) -> Path:
        raise CommandFailed("this machine", ["mmdebstrap"], 25, "E: Unable to fetch")

    monkeypatch.setattr("weighbridge.topologies.lab.bundle.ensure", offline)
    lab = run.hardware.model_copy(update={"kind": "lab"})
    with pytest.raises(CommandFailed, match=r"Unable to fetch\nattestation, .* need this image"):
        deploy(run.planned[0], lab, run.place, lambda text: None, attest=True)
    assert not run.place.deployments.exists()


def test_a_signal_during_teardown_is_delivered_when_it_is_complete(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[str] = []
    real = FakeHost.close

    def close(host: FakeHost) -> None:
        if not closed:
            os.kill(os.getpid(), signal.SIGTERM)
        real(host)
        closed.append(host.name)

    monkeypatch.setattr(FakeHost, "close", close)
    with interruptible():
        deployment = run.deployed(logs=tmp_path / "logs")
        gateway = deployment.hosts["gateway-1"]
        with pytest.raises(Interrupted):
            deployment.close()
    assert closed == ["client-1", "gateway-1"]
    assert not gateway.alive("stub")
    assert (tmp_path / "logs" / "gateway-1").is_dir()
    assert not list(run.place.deployments.iterdir())


def test_the_owner_of_a_deployment_is_recorded_first(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[DeploymentOwner] = []
    real = FakeHost.__init__

    def made(host: FakeHost, name: str, address: str, folder: Path) -> None:
        seen.extend(deployment_owners(run.place))
        real(host, name, address, folder)

    monkeypatch.setattr(FakeHost, "__init__", made)
    with run.deployed() as deployment:
        assert {(one.deployment, one.pid) for one in seen} == {(deployment.label, os.getpid())}
    assert deployment_owners(run.place) == ()


def ended_but_for_a_signal(run: Run, at: int) -> int:
    """Tear a deployment down with a signal at the start of the `at`-th function that is called (0:
    none); returns how many were called.
    """
    files = (cleanup.__file__, deployment_module.__file__, contextlib.__file__)
    called = 0

    def beginning(frame: FrameType, event: str, _argument: object) -> None:
        nonlocal called
        if event == "call" and frame.f_code.co_filename in files:
            called += 1
            if called == at:
                raise Interrupted(signal.SIGTERM)

    try:
        with contextlib.ExitStack() as stack:
            deployed = stack.enter_context(run.deployed())
            stack.callback(deployed.close)
            service = cast("FakeHost", deployed.hosts["gateway-1"])._services["stub"]
            sys.settrace(beginning)
            # As the run loop does; if it does not get that far, leaving the block does it.
            stack.close()
    except Interrupted:
        assert at
    else:
        assert not at
    finally:
        sys.settrace(None)
    assert service.returncode is not None, at
    assert not list(run.place.deployments.iterdir()), at
    return called


def test_a_signal_at_the_start_of_any_function_of_a_teardown_leaves_nothing(run: Run) -> None:
    functions = ended_but_for_a_signal(run, 0)
    assert functions > 8
    for at in range(1, functions + 1):
        ended_but_for_a_signal(run, at)


class Changeable(StubGateway):
    """Records what is asked of it, and fails with `error` when it is changed."""

    error: BaseException | None = None

    def bring_up(self, hosts: Mapping[str, Host], client: Host, say: Say) -> RunningGateway:
        running = super().bring_up(hosts, client, say)

        def change(gateway: Gateway, scope: Scope, say: Say) -> tuple[str, ...]:
            self.did.append(f"change by {scope}")
            if self.error is not None:
                raise self.error
            return ("gateway-1: stub restarted",)

        running.change = change  # type: ignore[method-assign]
        return running


@pytest.mark.parametrize(
    ("error", "limits"),
    [
        (None, ["on", "off", "on"]),
        (UsageError("cannot"), ["on", "off", "on"]),
        (KeyboardInterrupt(), ["on", "off", "on"]),
        (ServiceFailed("gateway-1", "stub", "died", log="stub.out", tail=[]), ["on", "off", "on"]),
        # Only some could be removed.
        (TargetError("no such cgroup"), ["on", "half off", "on"]),
    ],
)
def test_a_change_is_made_without_limits_which_are_on_again_and_the_layout_is_what_runs(
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException | None,
    limits: list[str],
) -> None:
    done: list[str] = []

    def unlimit(self: FakeHosts, what: Collection[Limited] = LIMITED) -> None:
        done.append(limits[1])
        if limits[1] == "half off":
            raise TargetError("no such cgroup")

    monkeypatch.setattr(FakeHosts, "limit", lambda *_: done.append("on"))
    monkeypatch.setattr(FakeHosts, "unlimit", unlimit)
    gateway = Changeable()
    kept = tmp_path / "kept"
    with run.deployed(gateway, logs=kept) as deployment:
        log = deployment.hosts["gateway-1"].log("stub.out")
        log.write_text("no such mode")
        gateway.error = error
        if isinstance(error, ServiceFailed):
            gateway.error = error.with_log(str(log))
        if error is None:
            changed = deployment.change(run.planned[1], "restart", print)
            assert changed == ("gateway-1: stub restarted",)
        else:
            with pytest.raises(type(error)) as raised:
                deployment.change(run.planned[1], "restart", print)
        assert deployment.layout.name == ("swift-b" if error is None else "rgw-a")
        assert done == limits
    assert ("change by restart" in gateway.did) == (limits[1] == "off")
    if isinstance(error, ServiceFailed):
        assert isinstance(raised.value, ServiceFailed)
        assert raised.value.log == str(kept / "gateway-1" / "stub.out")
        assert Path(raised.value.log).read_text() == "no such mode"


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
    run.gateways["swift-b"].unknown_option = "mode"
    refusals = preflight_all(run.planned, run.hardware, run.place, print)
    assert refusals == {"swift-b": "no option 'mode'"}
    assert [gateway.did for gateway in run.gateways.values()] == [["preflight"], ["preflight"]]
    assert len(started) == 1
    assert not list(run.place.deployments.iterdir())


def test_a_layout_of_another_release_is_checked_on_other_hosts(
    run: Run, started: list[str]
) -> None:
    first, second = run.planned
    other = Planned(second.layout.model_copy(update={"release": "2"}), second.gateway, "")
    assert preflight_all([], run.hardware, run.place, print) == {}
    assert started == []
    assert preflight_all([first, other], run.hardware, run.place, print) == {}
    assert len(started) == 2


def test_a_lack_of_this_machine_is_not_blamed_on_a_layout(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacks(*_: object) -> None:
        raise MissingPrerequisite("the responder was not built", advice="make setup")

    monkeypatch.setattr(run.gateways["rgw-a"], "preflight", lacks)
    with pytest.raises(MissingPrerequisite, match="make setup"):
        preflight_all(run.planned, run.hardware, run.place, print)
    assert not list(run.place.deployments.iterdir())


def test_preflight_raises_the_refusal_and_tears_its_hosts_down(run: Run) -> None:
    run.gateways["rgw-a"].unknown_option = "mode"
    with pytest.raises(UsageError, match="no option 'mode'"):
        preflight(run.planned[0], run.hardware, run.place, print)
    assert not list(run.place.deployments.iterdir())
