import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from weighbridge.common.errors import UsageError
from weighbridge.results.record.store import FILE, lock_run_folder

HOLDER = """
import sys
from pathlib import Path
from weighbridge.results.record.store import lock_run_folder
with lock_run_folder(Path(sys.argv[1])):
    print("holds", flush=True)
    sys.stdin.read()
"""


def test_no_other_user_can_open_the_lock_file(tmp_path: Path) -> None:
    with lock_run_folder(tmp_path):
        assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600


def test_a_second_process_is_refused_with_the_pid_of_the_first_until_that_is_killed(
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "holds\n"
        with (
            pytest.raises(
                UsageError, match=f"process {first.pid}, since .* is writing to this run"
            ),
            lock_run_folder(tmp_path),
        ):
            pass
        first.kill()
        first.wait()
    with lock_run_folder(tmp_path) as before:
        assert [one.pid for one in before] == [first.pid]


def test_earlier_holders_are_reported(tmp_path: Path) -> None:
    for times in range(3):
        with lock_run_folder(tmp_path) as before:
            assert [one.pid for one in before] == [os.getpid()] * times


def test_a_torn_line_of_a_holder_is_ignored(tmp_path: Path) -> None:
    with lock_run_folder(tmp_path):
        pass
    path = tmp_path / FILE
    path.write_bytes(path.read_bytes() + b'{"pid": 12, "si\n')
    with lock_run_folder(tmp_path) as before:
        assert len(before) == 1
    with lock_run_folder(tmp_path) as before:
        assert len(before) == 2
