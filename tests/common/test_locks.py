import os
import stat
from pathlib import Path

import pytest

from weighbridge.common.locks import open_lock


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_that_is_locked_can_be_opened_by_nobody_else(tmp_path: Path) -> None:
    os.close(open_lock(tmp_path / "lock"))
    assert mode(tmp_path / "lock") == 0o600


def test_one_that_others_could_open_is_closed_to_them_and_keeps_what_it_says(
    tmp_path: Path,
) -> None:
    (tmp_path / "lock").write_text("process 1")
    (tmp_path / "lock").chmod(0o644)
    os.close(open_lock(tmp_path / "lock"))
    assert mode(tmp_path / "lock") == 0o600
    assert (tmp_path / "lock").read_text() == "process 1"


def test_a_link_to_elsewhere_is_no_lock(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("")
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="is a link"):
        open_lock(tmp_path / "lock")
