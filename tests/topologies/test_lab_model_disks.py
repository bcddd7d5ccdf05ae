from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from weighbridge.common.errors import TargetError
from weighbridge.topologies.lab.model_disks import ModelDisks

Running = Callable[[str], ModelDisks]

# In place of the program: each order is answered by the same line.
SAYS = "import sys\nfor _ in sys.stdin: print(sys.argv[1], flush=True)"
DISK = '"name": "a", "writes": 3, "flushes": 1, "unflushed_blocks": 2'


@pytest.fixture
def saying(tmp_path: Path) -> Iterator[Running]:
    started: list[ModelDisks] = []
    log = tmp_path / "log"
    log.touch()

    def start(line: str) -> ModelDisks:
        argv = [sys.executable, "-c", SAYS, line]
        process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        started.append(ModelDisks(process, tmp_path, log))
        return started[-1]

    yield start
    for one in started:
        one.kill()


def test_a_mark_says_what_each_disk_was_given(saying: Running) -> None:
    mark = saying(f'{{"marked": {{"number": 4, "disks": [{{{DISK}}}]}}}}').mark()
    assert mark.number == 4
    (disk,) = mark.disks
    assert (disk.name, disk.writes, disk.flushes, disk.unflushed_blocks) == ("a", 3, 1, 2)


def test_restored_disks_say_what_was_kept(saying: Running) -> None:
    line = f'{{"restored": {{"disks": [{{{DISK}, "kept_blocks": 1}}]}}}}'
    (disk,) = saying(line).restore(4, keep=0.5, seed=1)
    assert (disk.unflushed_blocks, disk.kept_blocks) == (2, 1)


@pytest.mark.parametrize(
    ("line", "match"),
    [
        ('{"error": "2 descriptors of disks are open"}', "2 descriptors of disks are open"),
        (f'{{"restored": {{"disks": [{{{DISK}}}]}}}}', "an unknown answer: .*kept_blocks"),
        ('{"restored": {"disks": [{}]}}', "an unknown answer"),
        ('{"cut": true}', "{'cut': True}"),
    ],
)
def test_an_answer_that_is_not_of_the_order_is_an_error(
    saying: Running, line: str, match: str
) -> None:
    with pytest.raises(TargetError, match=f"(?s)vdisk: {match}"):
        saying(line).restore(1, keep=0, seed=0)
