"""COSBench's drivers on several clients: fake hosts, and a fake java."""

from __future__ import annotations

import os
import signal
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.drivers.cosbench.test_installation import home, wait_until_gone
from weighbridge.common.errors import DriverError
from weighbridge.drivers.cosbench.remote_drivers import RemoteDrivers
from weighbridge.topologies.fake import FakeHost

pytestmark = pytest.mark.long  # starts programs in every test

__all__ = ["home"]


@pytest.fixture
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[FakeHost]]:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    net = f"127.{os.getpid() >> 8 & 0x7F}.{os.getpid() & 0xFF}"
    made = [
        FakeHost(f"client-{number}", f"{net}.{20 + number}", tmp_path / f"client-{number}")
        for number in (2, 3)
    ]
    yield made
    for host in made:
        host.close()


def jvms(folder: Path) -> list[int]:
    """Process ids of the fake JVMs on other clients, from the files they write."""
    return [
        int(path.read_text())
        for path in (folder / "tmp").glob("weighbridge-cosbench-*/cosbench/driver.pid")
    ]


def check_until_it_fails(drivers: RemoteDrivers) -> None:
    deadline_s = time.monotonic() + 30
    while time.monotonic() < deadline_s:
        drivers.check()
        time.sleep(0.05)


def test_each_other_client_has_a_driver_that_ends_with_the_rest(
    home: Path, hosts: list[FakeHost], tmp_path: Path
) -> None:
    with RemoteDrivers(hosts, tmp_path / "driver.log") as drivers:
        urls = drivers.start(str(home))
        assert [url.split(":")[1] for url in urls] == [f"//{host.address}" for host in hosts]
        for url in urls:
            with urllib.request.urlopen(f"{url}/index.html", timeout=10) as answer:
                assert answer.read() == b"driver"
        started = jvms(tmp_path)
        assert len(started) == 2
        drivers.check()
    wait_until_gone(started)
    assert not list((tmp_path / "tmp").iterdir())


def test_a_driver_that_does_not_start_is_reported_with_its_client(
    home: Path, hosts: list[FakeHost], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_DIES", "driver")
    with (
        RemoteDrivers(hosts, tmp_path / "driver.log") as drivers,
        pytest.raises(
            DriverError,
            match=r"client-[23]: COSBench's driver ended with exit status 3\n(.*\n)*.*made up",
        ),
    ):
        drivers.start(str(home))


def test_a_driver_that_dies_later_is_noticed(
    home: Path, hosts: list[FakeHost], tmp_path: Path
) -> None:
    with RemoteDrivers(hosts, tmp_path / "driver.log") as drivers:
        drivers.start(str(home))
        os.kill(jvms(tmp_path)[0], signal.SIGKILL)
        with pytest.raises(
            DriverError, match=r"client-[23]: COSBench's driver ended with exit status 3"
        ):
            check_until_it_fails(drivers)
