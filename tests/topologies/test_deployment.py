import contextlib
import errno
import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import cast

import pytest

from stub_run import Run, StubGateway
from weighbridge.common import undisturbed
from weighbridge.common.errors import CommandFailed, ServiceFailed, TargetError
from weighbridge.common.host import Host, Service
from weighbridge.conductor.interruption import Interrupted, interruptible
from weighbridge.gateways.gateway import Say, Standing
from weighbridge.results.record.store import StoreError
from weighbridge.topologies import deployment as deployment_module
from weighbridge.topologies.conducting import Conducted
from weighbridge.topologies.deployment import conducted, deploy, standing
from weighbridge.topologies.fake import FakeHost


class Doomed(StubGateway):
    """Its service says why it ends, and the gateway says so with the service's log."""

    def bring_up(self, hosts: dict[str, Host], client: Host, say: Say) -> Standing:
        host = hosts["gateway-1"]
        host.start([Service("doomed", ("sh", "-c", "echo no more room"))])
        while host.alive("doomed"):
            pass
        raise ServiceFailed(
            host.name,
            "doomed",
            "ended",
            log=str(host.log("doomed.out")),
            tail=host.tail("doomed.out"),
        )


@pytest.mark.parametrize("named", [True, False])
def test_the_log_of_a_service_that_failed_is_kept_where_the_error_says(
    run: Run, tmp_path: Path, named: bool
) -> None:
    planned = run.planned[0]
    object.__setattr__(planned, "gateway", Doomed())
    with pytest.raises(ServiceFailed, match="no more room") as error:
        deploy(
            planned,
            run.hardware,
            run.place,
            lambda text: None,
            logs=tmp_path / "kept" if named else None,
        )
    assert Path(error.value.log).read_text() == "no more room\n"
    assert str(tmp_path / ("kept" if named else "home/logs")) in str(error.value)
    assert not list(run.place.deployments.iterdir())


def test_what_stands_is_written_down_for_root_alone_and_gone_when_it_is_taken_away(
    run: Run,
) -> None:
    with deploy(run.planned[0], run.hardware, run.place, lambda text: None) as deployment:
        (stands,) = standing(run.place)
        assert (stands.label, stands.layout) == (deployment.label, "rgw-a")
        assert stands.endpoints[0].key.get_secret_value() == "planted-secret"
        record = run.place.deployments / deployment.label / "deployment.json"
        assert record.stat().st_mode & 0o077 == 0
    assert standing(run.place) == ()


def test_at_no_moment_of_its_being_written_down_is_half_of_a_deployment_found(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    whole, synced = Path.write_text, os.fsync

    def look() -> None:
        seen.append(len(standing(run.place)))
        assert len(conducted(run.place)) == len(
            list(run.place.deployments.glob("*/conductor.json"))
        )

    def halfway(path: Path, text: str, *rest: object) -> int:
        whole(path, text[: len(text) // 2])
        look()
        return whole(path, text)

    def at_sync(descriptor: int) -> None:
        look()
        synced(descriptor)

    monkeypatch.setattr(Path, "write_text", halfway)
    monkeypatch.setattr(os, "fsync", at_sync)
    with deploy(run.planned[0], run.hardware, run.place, lambda text: None):
        assert len(standing(run.place)) == 1
    assert set(seen) == {0}


def test_a_record_of_what_stands_that_says_nothing_is_an_error_with_its_place(run: Run) -> None:
    with deploy(run.planned[0], run.hardware, run.place, lambda text: None) as deployment:
        record = run.place.deployments / deployment.label / "deployment.json"
        for content in (record.read_bytes()[:40], b"", b"[]"):
            record.write_bytes(content)
            with pytest.raises(
                TargetError,
                match=r"deployment\.json: does not say what stands.*\n.*weighbridge down",
            ):
                standing(run.place)


def test_logs_of_hosts_are_kept_where_the_run_wants_them(run: Run, tmp_path: Path) -> None:
    with deploy(
        run.planned[0], run.hardware, run.place, lambda text: None, logs=tmp_path / "logs"
    ) as deployment:
        deployment.hosts["gateway-1"].log("stub.out").write_text("hello")
    assert (tmp_path / "logs" / "gateway-1" / "stub.out").read_text() == "hello"


def test_logs_that_cannot_be_kept_are_named_and_do_not_hide_what_ended_the_deployment(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "logs").write_text("no folder can be made here")
    said: list[str] = []
    deployment = deploy(
        run.planned[0], run.hardware, run.place, said.append, logs=tmp_path / "logs"
    )
    deployment.hosts["gateway-1"].log("stub.out").write_text("hello")
    with pytest.raises(StoreError, match="the disk is full"), deployment:
        raise StoreError(tmp_path / "steps.jsonl", OSError(errno.ENOSPC, "No space left on device"))
    assert f"{tmp_path}/logs: the logs of gateway-1 cannot be kept: File exists" in said
    assert not list(run.place.deployments.iterdir())


def test_a_log_that_cannot_be_read_costs_no_other(run: Run, tmp_path: Path) -> None:
    with deploy(
        run.planned[0], run.hardware, run.place, lambda text: None, logs=tmp_path / "logs"
    ) as deployment:
        deployment.hosts["gateway-1"].log("stub.out").write_text("hello")
        (tmp_path / "logs" / "gateway-1" / "other.out" / "other.out").mkdir(
            parents=True
        )  # no file can be put here
        deployment.hosts["gateway-1"].log("other.out").write_text("hello")
    assert (tmp_path / "logs" / "gateway-1" / "stub.out").read_text() == "hello"
    assert (
        tmp_path / "logs" / "gateway-1.not-copied.txt"
    ).read_text() == "other.out: Is a directory\n"


def test_what_a_host_put_into_its_logs_beside_files_is_named_and_neither_followed_nor_waited_for(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "shadow").write_text("root:secret")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "key").write_text("secret")
    with deploy(
        run.planned[0], run.hardware, run.place, lambda text: None, logs=tmp_path / "logs"
    ) as deployment:
        logs = deployment.hosts["gateway-1"].log("")
        (logs / "stub.out").write_text("hello")
        (logs / "stolen").symlink_to(tmp_path / "shadow")
        (logs / "folder").symlink_to(tmp_path / "etc")
        (logs / "inner").mkdir()
        os.mkfifo(logs / "inner" / "pipe")
    kept = {
        str(path.relative_to(tmp_path / "logs")): path.read_text()
        for path in (tmp_path / "logs").rglob("*")
        if path.is_file()
    }
    assert kept == {
        "gateway-1/stub.out": "hello",
        "gateway-1.not-copied.txt": "folder: is a link, which is not followed\nstolen: is a link, "
        "which is not followed\n"
        "inner/pipe: is a pipe\n",
    }


def test_logs_of_a_host_are_not_kept_through_links_where_they_are_kept(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "victim").write_text("mine")
    (tmp_path / "logs" / "gateway-1").mkdir(parents=True)
    (tmp_path / "logs" / "gateway-1" / "stub.out").symlink_to(tmp_path / "victim")
    with deploy(
        run.planned[0], run.hardware, run.place, lambda text: None, logs=tmp_path / "logs"
    ) as deployment:
        deployment.hosts["gateway-1"].log("stub.out").write_text("theirs")
    assert (tmp_path / "victim").read_text() == "mine"
    assert "stub.out: is a link" in (tmp_path / "logs" / "gateway-1.not-copied.txt").read_text()


def test_the_end_of_a_log_is_not_read_through_a_link(run: Run, tmp_path: Path) -> None:
    (tmp_path / "shadow").write_text("root:secret")
    with deploy(run.planned[0], run.hardware, run.place, lambda text: None) as deployment:
        host = deployment.hosts["gateway-1"]
        assert host.tail("none") == []
        host.log("osd.out").symlink_to(tmp_path / "shadow")
        (told,) = host.tail("osd.out")
        assert told.endswith("osd.out: is a link, which is not followed")
        with pytest.raises(TargetError, match="is a link"):
            host.logged("osd.out")
        host.log("osd.out").unlink()
        host.log("osd.out").write_text("one\ntwo\nthree\n")
        assert host.tail("osd.out", 2) == ["two", "three"]
        assert host.logged("osd.out", 4) == b"two\nthree\n"


def test_a_deployment_that_cannot_be_written_down_is_taken_away_again(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Host] = []

    class Recorded(StubGateway):
        def bring_up(self, hosts: dict[str, Host], client: Host, say: Say) -> Standing:
            started.append(hosts["gateway-1"])
            return super().bring_up(hosts, client, say)

    planned = run.planned[0]
    object.__setattr__(planned, "gateway", Recorded())

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("weighbridge.topologies.deployment._write", full)
    with pytest.raises(OSError, match="No space left"):
        deploy(planned, run.hardware, run.place, lambda text: None)
    assert not started[0].alive("stub")
    assert not list(run.place.deployments.iterdir())


def test_pretended_hosts_are_not_attested(run: Run) -> None:
    with deploy(
        run.planned[0], run.hardware, run.place, lambda text: None, attest=True
    ) as deployment:
        assert deployment.attestation is None


def test_tools_that_cannot_be_had_end_it_before_a_host_stands_and_say_what_they_are_for(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def offline(*_: object, **__: object) -> Path:
        raise CommandFailed("this machine", ["mmdebstrap"], 25, "E: Unable to fetch")

    monkeypatch.setattr("weighbridge.topologies.lab.kind.ensure", offline)
    lab = run.hardware.model_copy(update={"kind": "lab"})
    with pytest.raises(
        CommandFailed,
        match=r"Unable to fetch\nthe tools .* without attestation they are not wanted",
    ):
        deploy(run.planned[0], lab, run.place, lambda text: None, attest=True)
    assert not run.place.deployments.exists()


def test_a_signal_while_it_is_taken_away_comes_when_all_of_it_is_gone(
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
        deployment = deploy(
            run.planned[0], run.hardware, run.place, lambda text: None, logs=tmp_path / "logs"
        )
        gateway = deployment.hosts["gateway-1"]
        with pytest.raises(Interrupted):
            deployment.close()
    assert closed == ["client-1", "gateway-1"]
    assert not gateway.alive("stub")
    assert (tmp_path / "logs" / "gateway-1").is_dir()
    assert not list(run.place.deployments.iterdir())


def test_whose_a_deployment_is_is_written_down_from_its_first_moment_on(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Conducted] = []
    real = FakeHost.__init__

    def made(host: FakeHost, name: str, address: str, folder: Path) -> None:
        seen.extend(conducted(run.place))
        real(host, name, address, folder)

    monkeypatch.setattr(FakeHost, "__init__", made)
    with deploy(run.planned[0], run.hardware, run.place, lambda text: None) as deployment:
        assert {(one.deployment, one.pid) for one in seen} == {(deployment.label, os.getpid())}
    assert conducted(run.place) == ()


def ended_but_for_a_signal(run: Run, at: int) -> int:
    """Take a deployment down; a signal comes at the beginning of the function that is called
    `at`-th (0: none). How many were.
    """
    files = (undisturbed.__file__, deployment_module.__file__, contextlib.__file__)
    called = 0

    def beginning(frame: FrameType, event: str, _argument: object) -> None:
        nonlocal called
        if event == "call" and frame.f_code.co_filename in files:
            called += 1
            if called == at:
                raise Interrupted(signal.SIGTERM)

    try:
        with contextlib.ExitStack() as stack:
            deployed = stack.enter_context(
                deploy(run.planned[0], run.hardware, run.place, lambda text: None)
            )
            stack.callback(deployed.close)
            service = cast("FakeHost", deployed.hosts["gateway-1"])._services["stub"]
            sys.settrace(beginning)
            # as the run loop does: should it not get that far, leaving the block does it
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


def test_a_signal_at_the_beginning_of_any_function_of_an_ending_leaves_nothing(run: Run) -> None:
    functions = ended_but_for_a_signal(run, 0)
    assert functions > 8
    for at in range(1, functions + 1):
        ended_but_for_a_signal(run, at)
