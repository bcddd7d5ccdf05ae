import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from weighbridge.common.errors import CommandFailed
from weighbridge.common.host import Service
from weighbridge.topologies.fake import FakeHosts
from weighbridge.topologies.hardware import Hardware

HARDWARE = Hardware.model_validate(
    {"name": "small", "kind": "fake", "hosts": {"client-1": {}, "gateway-1": {}, "spare": {}}}
)


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[FakeHosts]:
    with FakeHosts("trial", HARDWARE, tmp_path, ["client-1", "gateway-1"]) as hosts:
        yield hosts


def test_only_requested_hosts_are_started_each_with_its_own_address(
    hosts: FakeHosts,
) -> None:
    assert list(hosts.hosts) == ["client-1", "gateway-1"]
    assert len({host.address for host in hosts.hosts.values()}) == 2
    assert all(host.address.startswith("127.") for host in hosts.hosts.values())


def test_a_command_returns_its_output_and_a_failing_one_its_status_and_output(
    hosts: FakeHosts,
) -> None:
    host = hosts.hosts["client-1"]
    assert host.run(["cat"], stdin="hello").stdout == "hello"
    with pytest.raises(CommandFailed, match="ended with 7\nno luck") as error:
        host.run(["sh", "-c", "echo no luck >&2; exit 7"])
    assert error.value.code == 7


def test_a_command_that_takes_too_long_is_killed(hosts: FakeHosts) -> None:
    with pytest.raises(CommandFailed, match="took too long"):
        hosts.hosts["client-1"].run(["sleep", "60"], timeout_s=0.2)


def test_a_service_logs_runs_and_is_stopped(hosts: FakeHosts) -> None:
    host = hosts.hosts["gateway-1"]
    host.start(
        [
            Service(
                "talker",
                (
                    sys.executable,
                    "-uc",
                    "import time, os; print(os.environ['WORD']); time.sleep(600)",
                ),
                {"WORD": "hi"},
            )
        ]
    )
    assert host.alive("talker")
    while not host.log_tail("talker.out"):
        assert host.alive("talker")
    assert host.log_tail("talker.out") == ["hi"]
    host.stop("talker")
    assert not host.alive("talker")
    host.stop("talker")


def test_closing_ends_services_and_programs_and_can_be_repeated(
    hosts: FakeHosts, tmp_path: Path
) -> None:
    host = hosts.hosts["gateway-1"]
    host.start([Service("sleeper", ("sleep", "600"))])
    program = host.spawn(["cat"], stderr=tmp_path / "cat.log")
    hosts.close()
    hosts.close()
    assert not host.alive("sleeper")
    assert program.poll() is not None


def test_a_file_is_written_below_the_hosts_folder_with_its_mode(
    hosts: FakeHosts, tmp_path: Path
) -> None:
    hosts.hosts["gateway-1"].put("/etc/secret", "x", mode=0o600)
    path = tmp_path / "gateway-1" / "root" / "etc" / "secret"
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("x", 0o600)
