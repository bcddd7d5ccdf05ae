"""What the root of cgroup version 2 hands on to the lab's hosts, and what it takes back."""

from __future__ import annotations

from pathlib import Path

import pytest

from weighbridge.topologies.lab.cgroup import Cgroups


@pytest.fixture
def v1(tmp_path: Path) -> Cgroups:
    (tmp_path / "v1" / "memory").mkdir(parents=True)
    return Cgroups(tmp_path / "v1")


@pytest.fixture
def v2(tmp_path: Path) -> Cgroups:
    (tmp_path / "v2").mkdir()
    (tmp_path / "v2" / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    return Cgroups(tmp_path / "v2")


def test_only_controllers_that_were_not_handed_on_before_are_taken_back_with_the_last_deployment(
    v1: Cgroups, v2: Cgroups
) -> None:
    control = v2.mount / "cgroup.subtree_control"
    control.write_text("memory pids\n")
    before = v2.handed_on()
    assert before == {"memory", "pids"}
    control.write_text("cpu memory pids\n")
    (v2.mount / "weighbridge").mkdir()
    assert v2.handed_on() is None
    v2.take_back(before)
    assert control.read_text() == "cpu memory pids\n"  # another deployment is still there
    (v2.mount / "weighbridge").rmdir()
    v2.take_back(before)
    assert control.read_text() == "-cpu"
    assert v1.handed_on() is None


def test_what_looks_like_a_root_hands_controllers_on_only_without_processes(
    v1: Cgroups, v2: Cgroups
) -> None:
    (v2.mount / "cgroup.procs").write_text("1\n7\n")
    assert v1.hands_on()
    assert v2.hands_on()  # the machine's own root has no type
    (v2.mount / "cgroup.type").write_text("domain threaded\n")
    assert not v2.hands_on()
    (v2.mount / "cgroup.procs").write_text("")
    assert v2.hands_on()
