"""What `weighbridge baseline` refuses before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from weighbridge.cli.baseline import command, sizes_of
from weighbridge.common.errors import UsageError


def test_sizes_are_parsed_each_once() -> None:
    assert sizes_of("4KiB, 64KB,1MB,4096") == (4096, 64_000, 1_000_000)


@pytest.mark.parametrize(
    ("hardware", "sizes", "why"),
    [
        ("lab-cp", "4KiB", "lab-cpu"),
        ("loopback", "4KiB", "are fake"),
        ("this-machine", "4KiB", "none are started"),
        ("lab-cpu", "4KiB,big", "'big' is not a quantity"),
        ("lab-cpu", "0", "'0' is not an object size"),
        ("lab-cpu", "", "names no size"),
        ("lab-cpu", " , ", "names no size"),
    ],
)
def test_bad_input_is_refused_and_makes_no_folder(
    tmp_path: Path, hardware: str, sizes: str, why: str
) -> None:
    asked = [hardware, "--sizes", sizes, "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(command, asked, standalone_mode=False)
    assert isinstance(done.exception, UsageError)
    assert why in str(done.exception)
    assert not (tmp_path / "out").exists()
