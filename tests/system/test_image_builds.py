"""Root images built for real: whole, or without a trace."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from small_lab import read, within
from weighbridge.gateways.gateway import RootImage
from weighbridge.topologies.images import ensure, half_built

pytestmark = pytest.mark.system

TINY = RootImage(name="labtest-tiny", suite="bookworm", packages=())
CONDUCTOR = """
import sys
from pathlib import Path
from weighbridge.gateways.gateway import RootImage
from weighbridge.topologies import images

images.SAY_EVERY_S = 0.0
image = RootImage.model_validate_json(sys.argv[1])
images.ensure(image, lambda line: print(line, flush=True), store=Path(sys.argv[2]))
"""


@pytest.mark.test_all
def test_a_build_that_is_killed_leaves_no_process_and_no_mount_and_the_next_is_complete(
    tmp_path: Path,
) -> None:
    argv = [sys.executable, "-c", CONDUCTOR, TINY.model_dump_json(), str(tmp_path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as conductor:
        assert conductor.stdout is not None
        # From here on /proc, /sys and devices of this machine are mounted in the image.
        assert any("inside the chroot" in line for line in conductor.stdout)
        assert _processes(tmp_path)
        assert half_built(tmp_path) == ()
        conductor.kill()
    # The last of them lets go of the lock as it ends.
    within(60, lambda: not _processes(tmp_path) and bool(half_built(tmp_path)))
    assert _processes(tmp_path) == []
    assert str(tmp_path) not in Path("/proc/self/mountinfo").read_text()
    assert len(half_built(tmp_path)) == 1
    root = ensure(TINY, lambda line: None, store=tmp_path)
    assert half_built(tmp_path) == ()
    assert (root / "sbin/mkfs.xfs").exists()
    assert not (root / "etc/resolv.conf").exists()
    assert not (root / "etc/hostname").exists()
    assert "xfsprogs=" in root.with_name(f"{root.name}.packages").read_text()


def _processes(folder: Path) -> list[str]:
    lines = [read(path) for path in Path("/proc").glob("[0-9]*/cmdline")]
    return [
        line.decode(errors="replace")
        for line in lines
        if b"mmdebstrap" in line and str(folder).encode() in line
    ]
