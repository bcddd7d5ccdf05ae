from __future__ import annotations

import os
import subprocess

import pytest

from weighbridge.topologies.lab.means import exhausted


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("unshare: unshare failed: No space left on device", "lsns"),
        (
            (
                "runc run failed: mkdir /sys/fs/cgroup/weighbridge/a/b: no cgroup: No space left on "
                "device"
            ),
            "cgroup.max.descendants",
        ),
        ("runc run failed: fork/exec /proc/self/exe: cannot allocate memory", "no memory left"),
        ("mount: /x: No such file or directory", ""),
    ],
)
def test_what_was_used_up_is_told_with_what_to_do(said: str, advice: str) -> None:
    assert advice in exhausted(said)
    assert bool(exhausted(said)) == bool(advice)


def test_the_kernel_says_of_namespaces_that_are_used_up_what_is_understood() -> None:
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
