import os
import subprocess
import sys
from pathlib import Path

import pytest

from ground.errors import UsageError
from results.hold import FILE, holding

HOLDER = """
import sys
from pathlib import Path
from results.hold import holding
with holding(Path(sys.argv[1])):
    print("holds", flush=True)
    sys.stdin.read()
"""


def test_a_second_process_is_refused_by_the_first_ones_number_until_that_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "holds\n"
        with pytest.raises(UsageError, match=f"process {first.pid}, since .* is writing to this run"), holding(tmp_path):
            pass
        first.kill()
        first.wait()
    with holding(tmp_path) as before:
        assert before is not None
        assert before.pid == first.pid


def test_whoever_held_a_folder_before_is_told_and_nobody_where_nobody_did(tmp_path: Path) -> None:
    with holding(tmp_path) as before:
        assert before is None
    with holding(tmp_path) as before:
        assert before is not None
        assert before.pid == os.getpid()


def test_a_file_of_the_holder_that_was_torn_names_nobody_and_is_written_anew(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('{"pid":')
    with holding(tmp_path) as before:
        assert before is None
    with holding(tmp_path) as before:
        assert before is not None
