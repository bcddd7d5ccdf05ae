"""dd on images and files of a stub cluster: its commands, its windows, and what is left."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.drivers.dd.test_result import WRITTEN
from tests.drivers.rados.conftest import StubMachine, file_system, one_kind
from weighbridge.common.errors import DriverError
from weighbridge.drivers.dd.driver import DdCephFs, DdRbd
from weighbridge.drivers.dd.kind import KIND
from weighbridge.drivers.protocol import Cleanup, DriverFailure, Prepare, Step
from weighbridge.drivers.rados import RadosCluster, host_commands
from weighbridge.suites import Workload

SIZE = 64 * 4 * 2**20


def workload(operation: str = "write", **changed: object) -> Workload:
    objects = {"size": "4MiB", "per_container": 64}
    usual = {"objects": objects, "pick": "sequential", "workers": [1], "runtime": "30s"}
    return one_kind(operation, **{**usual, **changed})


@pytest.fixture(autouse=True)
def tools(machine: StubMachine) -> None:
    machine.script("env", f"cat >&2 <<'END'\n{WRITTEN}END")
    machine.script("rbd", "echo elapsed: 1")
    machine.answers["fs dump"] = file_system("wb-1-dd-fs")
    machine.printed["stat"] = f"{SIZE}\n"


def test_an_image_is_a_file_of_rbd_fuse_while_it_is_measured_and_nothing_is_left(
    machine: StubMachine, cluster: RadosCluster, tmp_path: Path
) -> None:
    with DdRbd(cluster, prefix="wb-1", log=tmp_path / "log", pg_num=16) as driver:
        driver.prepare(Prepare(workload=workload()))
        assert machine.pools == {"wb-1-dd": 16}
        (mount,) = machine.daemons
        assert mount.poll() is None
        made = driver.step(Step(workload=workload(), workers=1)).measurement
        driver.step(Step(workload=workload("read"), workers=1))
        assert driver.cleanup(Cleanup(workload=workload(), what="all")).deleted == 1
    assert mount.poll() is not None
    assert machine.pools == {}
    assert "start rbd-fuse -p wb-1-dd -f -o big_writes /run/wb-1-dd" in machine.asked
    assert (made.api, made.driver, made.window_s, made.load) == ("rbd", "dd", 23.2027, None)
    assert "its blocks were copied after 23.2 s" in made.notes
    write, read = (call for call in machine.calls if call.startswith("env"))
    assert write == (
        "env LC_ALL=C dd if=/dev/zero of=/run/wb-1-dd/some oflag=direct conv=notrunc,nocreat "
        "bs=4194304 count=64"
    )
    assert read == (
        "env LC_ALL=C dd if=/run/wb-1-dd/some of=/dev/null iflag=direct bs=4194304 count=64"
    )


def test_a_dd_that_takes_longer_than_the_runtime_is_interrupted_and_still_counts(
    machine: StubMachine, cluster: RadosCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said, ready = tmp_path / "said", tmp_path / "ready"
    said.write_text(WRITTEN)
    endless = "while :; do sleep 0.1; done"
    machine.script("env", f"trap 'cat {said} >&2; exit 130' INT\ntouch {ready}\n{endless}")
    # The runtime is over as soon as it can be interrupted.
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + (6 if ready.exists() else 0))
    monkeypatch.setattr(host_commands, "time", clock)
    with DdRbd(cluster, prefix="wb-1", log=tmp_path / "log") as driver:
        short = workload(runtime="5s")
        driver.prepare(Prepare(workload=short))
        made = driver.step(Step(workload=short, workers=1)).measurement
    assert made.tallies[0].count == 64


def test_an_rbd_fuse_that_has_ended_fails_the_next_step(
    machine: StubMachine, cluster: RadosCluster, tmp_path: Path
) -> None:
    with DdRbd(cluster, prefix="wb-1", log=tmp_path / "log") as driver:
        driver.prepare(Prepare(workload=workload()))
        machine.daemons[-1].kill()
        machine.daemons[-1].wait()
        with pytest.raises(DriverFailure, match="gateway-1: rbd-fuse has ended"):
            driver.step(Step(workload=workload(), workers=1))
    assert machine.pools == {}


def test_a_file_of_cephfs_is_written_completely_before_it_is_measured(
    machine: StubMachine, cluster: RadosCluster, tmp_path: Path
) -> None:
    with DdCephFs(cluster, machine, prefix="wb-1", log=tmp_path / "log", pg_num=16) as driver:
        with pytest.raises(DriverError, match="some was not prepared"):
            driver.step(Step(workload=workload(), workers=1))
        assert driver.prepare(Prepare(workload=workload())).bytes == SIZE
        made = driver.step(Step(workload=workload(), workers=1)).measurement
        driver.cleanup(Cleanup(workload=workload(), what="all"))
        assert machine.pools == {}
    assert all(daemon.poll() is not None for daemon in machine.daemons)
    assert (made.api, made.tallies[0].count) == ("cephfs", 64)
    machine.printed["stat"] = "17\n"
    with (
        DdCephFs(cluster, machine, prefix="wb-1", log=tmp_path / "log") as driver,
        pytest.raises(DriverFailure, match="has 17 bytes instead of 268435456"),
    ):
        driver.prepare(Prepare(workload=workload()))
    assert machine.pools == {}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"workers": [1, 2]}, "one request outstanding"),
        ({"warmup": "1s"}, "no warm-up"),
        ({"pick": "uniform"}, "in their order"),
        ({"operations": {"read": 1, "write": 1}}, "either reads or writes, not read and write"),
        ({"objects": {"size": {"uniform": ["1KiB", "2KiB"]}}}, "blocks of one size"),
        ({"objects": {"size": "2GiB", "per_container": 1}}, "no more than 1 GiB at once"),
        ({"rate_per_s": 5}, "not at a rate"),
    ],
)
def test_what_dd_cannot_do_is_refused_in_words(changed: dict[str, object], words: str) -> None:
    (said,) = KIND.unfit(workload(**changed), "rbd")
    assert words in said
    assert KIND.unfit(workload(), "rbd") == ()
