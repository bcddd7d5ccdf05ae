from __future__ import annotations

import os
import subprocess

import pytest

from weighbridge.topologies.lab.means import exhausted


@pytest.mark.parametrize(
    ("output", "advice"),
    [
        ("unshare: unshare failed: No space left on device", "lsns"),
        (
            "runc run failed: mkdir /sys/fs/cgroup/weighbridge/a/b: No space left on device",
            "cgroup.max.descendants",
        ),
        ("runc run failed: fork/exec /proc/self/exe: cannot allocate memory", "ran out of memory"),
        ("mount: /x: No such file or directory", ""),
    ],
)
def test_an_exhausted_resource_is_reported_with_advice(output: str, advice: str) -> None:
    assert advice in exhausted(output)
    assert bool(exhausted(output)) == bool(advice)


def test_the_kernels_message_about_exhausted_namespaces_is_recognised() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to set limits in a user namespace")
    script = "echo 0 > /proc/sys/user/max_mnt_namespaces && exec unshare --mount true"
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "sh", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env={"LC_ALL": "C"},
    )
    assert done.returncode != 0
    assert "lsns" in exhausted(done.stderr)
