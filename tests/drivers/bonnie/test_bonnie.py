"""bonnie++ on a stub CephFS, and any output of it."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.drivers.rados.conftest import StubMachine, file_system, one_kind
from tests.mutation import Dice, cases, tried, wrong_text
from weighbridge.common.errors import DriverError
from weighbridge.drivers.bonnie.driver import BonnieCephFs, tally_of
from weighbridge.drivers.bonnie.kind import KIND
from weighbridge.drivers.protocol import Cleanup, Prepare, Step
from weighbridge.drivers.rados import RadosCluster
from weighbridge.results.run.step import Tally
from weighbridge.suites import Workload

# bonnie++ 2.00a, -s 200:64k:16 -r 0 -n 0 -f -D -u root -q; its rates of blocks are made up: this
# file was read and written in less than half a second each.
LINE = (
    "1.98,2.00a,weighbridge,1,1795465391,200M,,16,5,,,20480,9,161647,50,,,40960,12,+++++,+++,,,,,,"
    ",,,,,,,,,,,,4327us,51098us,,4075us,69us,,,,,,\n"
)
FAST = LINE.replace("20480,9", "+++++,+++")
BLOCK, FILE = 64 * 2**10, 64 * 2**20


def tally(said: str, operation: str = "write") -> tuple[Tally, float]:
    which = "write" if operation == "write" else "read"
    return tally_of(said, which, name="weighbridge", block_bytes=BLOCK, file_bytes=FILE)


def workload(**changed: object) -> Workload:
    objects = {"size": "64KiB", "per_container": 1024}
    usual = {"objects": objects, "pick": "sequential", "workers": [1], "runtime": "8s"}
    return one_kind(**{**usual, **changed})


def test_blocks_written_and_read_are_told_apart() -> None:
    written, seconds = tally(LINE)
    assert (written.count, written.bytes, written.sum_us) == (1024, FILE, None)
    assert seconds == pytest.approx(64 / 20)  # 20 MiB a second
    assert tally(LINE, "read")[1] == pytest.approx(64 / 40)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("", "no single result line"),
        (LINE + LINE, "no single result line"),
        (LINE.replace("weighbridge", "other"), "no single result line"),
        (LINE.replace("1.98", "2.00"), "no single result line"),
        (",".join(LINE.split(",")[:20]), "no single result line"),
        (FAST, "less than half a second to write"),
        (LINE.replace("20480", "-5"), "'-5' is not a number of KiB"),
        (LINE.replace("20480", "0"), "'0' is not a number of KiB"),
        (LINE.replace("20480", "1e9"), "is not a number of KiB"),
        (LINE.replace("20480", ""), "is not a number of KiB"),
    ],
)
def test_other_output_is_refused_with_what_it_said(said: str, words: str) -> None:
    with pytest.raises(DriverError, match=words):
        tally(said)


@cases
def test_any_output_of_bonnie_is_a_tally_or_a_driver_error(dice: Dice) -> None:
    text = wrong_text(dice, LINE)
    found = tried(lambda: tally(text), DriverError, saying="bonnie++")
    if found is None:
        return
    one, seconds = found
    assert 0 < seconds < math.inf
    assert Tally.model_validate_json(one.model_dump_json()) == one


def test_one_run_of_bonnie_is_measured_by_the_part_that_the_workload_names(
    machine: StubMachine, cluster: RadosCluster, tmp_path: Path
) -> None:
    machine.script("bonnie++", f"cat <<'END'\n{LINE}END")
    machine.answers["fs dump"] = file_system("wb-1-bonnie-fs")
    with BonnieCephFs(cluster, machine, prefix="wb-1", log=tmp_path / "log", pg_num=16) as driver:
        driver.prepare(Prepare(workload=workload()))
        uncached = "start ceph-fuse -f --client-oc=false --fuse-disable-pagecache=true "
        assert any(one.startswith(uncached) for one in machine.asked)
        made = driver.step(Step(workload=workload(), workers=1)).measurement
        driver.cleanup(Cleanup(workload=workload(), what="all"))
        assert machine.pools == {}
    assert (made.api, made.driver, made.load) == ("cephfs", "bonnie", None)
    assert made.window_s == pytest.approx(1.6)
    (call,) = (call for call in machine.calls if call.startswith("bonnie++"))
    assert call == (
        "bonnie++ -d /run/wb-1-bonnie-fs -s 64:65536:1:1 -r 0 -n 0 -f -D -u root -q -m weighbridge"
    )


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"objects": {"size": "3KiB", "per_container": 1024}}, "a power of two"),
        ({"objects": {"size": "2MiB", "per_container": 4}}, "a power of two"),
        ({"objects": {"size": "64KiB", "per_container": 5}}, "files of whole MiB"),
        ({"workers": [4]}, "one request outstanding"),
    ],
)
def test_what_bonnie_cannot_do_is_refused_in_words(changed: dict[str, object], words: str) -> None:
    (said,) = KIND.unfit(workload(**changed), "cephfs")
    assert words in said
    assert KIND.unfit(workload(), "cephfs") == ()
    (said,) = KIND.unfit(workload(), "rbd")
    assert "needs a file system, which rbd does not have" in said
