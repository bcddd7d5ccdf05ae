from __future__ import annotations

from pathlib import Path

import pytest

from weighbridge.common.errors import MissingMeans
from weighbridge.topologies.lab import tools


def image(root: Path, triplet: str, loader: str) -> Path:
    for path in ("usr/bin/fio", f"lib/{triplet}/{loader}", f"lib/{triplet}/libdl.so.2"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()
    return root


@pytest.mark.parametrize(
    ("triplet", "loader"),
    [
        ("x86_64-linux-gnu", "ld-linux-x86-64.so.2"),
        ("aarch64-linux-gnu", "ld-linux-aarch64.so.1"),
        ("arm-linux-gnueabihf", "ld-linux-armhf.so.3"),
        ("s390x-linux-gnu", "ld64.so.1"),
    ],
)
def test_a_tool_runs_with_the_loader_and_libraries_of_its_image(
    tmp_path: Path, triplet: str, loader: str
) -> None:
    argv = tools.argv(image(tmp_path, triplet, loader), "fio")
    assert argv[0] == f"{tools.INSIDE}/lib/{triplet}/{loader}"
    assert argv[-1] == f"{tools.INSIDE}/usr/bin/fio"
    folders = argv[argv.index("--library-path") + 1].split(":")
    assert f"{tools.INSIDE}/lib/{triplet}" in folders
    assert all(folder.startswith(f"{tools.INSIDE}/") for folder in folders)


def test_an_image_without_the_tool_or_a_loader_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingMeans, match="no program iperf3"):
        tools.argv(image(tmp_path, "x86_64-linux-gnu", "ld-linux-x86-64.so.2"), "iperf3")
    (tmp_path / "lib/x86_64-linux-gnu/ld-linux-x86-64.so.2").unlink()
    with pytest.raises(MissingMeans, match="no loader"):
        tools.argv(tmp_path, "fio")
