import os
import stat
from pathlib import Path

import pytest

from weighbridge.common.safe_files import open_lock


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_only_its_user_can_open_a_lock_file(tmp_path: Path) -> None:
    os.close(open_lock(tmp_path / "lock"))
    assert mode(tmp_path / "lock") == 0o600


def test_a_lock_file_that_is_there_keeps_its_content(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("process 1")
    os.close(open_lock(tmp_path / "lock"))
    assert (tmp_path / "lock").read_text() == "process 1"


def test_a_link_is_refused_as_a_lock_file(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("")
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="is a link"):
        open_lock(tmp_path / "lock")
