from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from weighbridge.topologies.hardware import Disk, Hardware, HostSpec
from weighbridge.topologies.lab import requirements as lab
from weighbridge.topologies.lab.cgroup import Cgroups
from weighbridge.topologies.lab.requirements import HostRequirement, exhausted, lab_requirements

SMALL = Hardware(
    name="small",
    kind="lab",
    hosts={"client-1": HostSpec(memory=2**26), "store-1": HostSpec(disks=(Disk(size=2**30),))},
)
VAST = Hardware(name="vast", kind="lab", hosts={"client-1": HostSpec(memory=2**42)})


def named(found: tuple[HostRequirement, ...], part: str) -> HostRequirement:
    return next(one for one in found if part in one.name)


def test_a_missing_tool_is_named_with_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "runc").write_text("#!/bin/sh\n")
    (tmp_path / "runc").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = lab_requirements(SMALL, home=tmp_path)
    assert named(found, "runc").found
    missing = named(found, "tc")
    assert not missing.found
    assert missing.remedy == "apt install iproute2"


@pytest.mark.parametrize(("user", "found"), [(0, True), (1000, False)])
def test_root_is_required(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: int, found: bool
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: user)
    assert named(lab_requirements(SMALL, home=tmp_path), "root").found is found


def test_hardware_needs_its_memory_and_loop_devices_only_for_disks(tmp_path: Path) -> None:
    small, vast = (lab_requirements(one, home=tmp_path) for one in (SMALL, VAST))
    assert not named(vast, "of memory").found
    assert "4096.0 GiB of memory" in named(vast, "of memory").name
    assert named(small, "of memory").found
    assert any(one.name == "loop devices" for one in small)
    assert not any(one.name == "loop devices" for one in vast)


@pytest.mark.parametrize("known", [True, False])
def test_a_delay_needs_a_kernel_with_netem_which_is_named_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    far = Hardware.model_validate(
        {"name": "far", "kind": "lab", "hosts": {"client-1": {"nic": {"delay": "200us"}}}}
    )
    monkeypatch.setattr(lab, "can_delay", lambda: known)
    needed = named(lab_requirements(far, home=tmp_path), "netem")
    assert (needed.found, "modprobe sch_netem" in needed.remedy) == (known, True)
    assert not any("netem" in one.name for one in lab_requirements(SMALL, home=tmp_path))


def test_cpus_of_hosts_own_must_be_among_those_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1, 3})
    for cpuset, found in (("0-1", True), ("3", True), ("1-2", False), ("64", False)):
        hosts = {"client-1": HostSpec(cpuset=cpuset)}
        asked = Hardware(name="own", kind="lab", hosts=hosts)
        needed = named(lab_requirements(asked, home=tmp_path), f"CPUs {cpuset} (")
        assert (needed.found, "0-1,3" in needed.name) == (found, True)
        assert "client-1" in needed.why
        named(lab_requirements(asked, home=tmp_path), "cpuset")
    assert not any("CPUs" in one.name for one in lab_requirements(SMALL, home=tmp_path))
    assert not any("cpuset" in one.name for one in lab_requirements(SMALL, home=tmp_path))


def test_an_overlay_cannot_be_on_an_overlay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lab, "_file_system", lambda path: "overlay")
    assert not named(lab_requirements(SMALL, home=tmp_path), "file system").found
    monkeypatch.setattr(lab, "_file_system", lambda path: "ext4")
    assert named(lab_requirements(SMALL, home=tmp_path), "file system").found


def test_disk_space_is_checked_where_the_folder_will_be(tmp_path: Path) -> None:
    found = lab_requirements(SMALL, home=tmp_path / "not/there/yet")
    assert str(tmp_path) in named(found, "of disk").name


def test_every_requirement_says_why_and_how(tmp_path: Path) -> None:
    found = lab_requirements(SMALL, home=tmp_path)
    assert found
    assert [one for one in found if not (one.name and one.why and one.remedy)] == []


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


def test_a_container_with_processes_in_its_root_cgroup_is_told_to_move_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hands_on(*, found: bool) -> list[HostRequirement]:
        monkeypatch.setattr(Cgroups, "hands_on", lambda _: found)
        return [one for one in lab_requirements(SMALL, home=tmp_path) if "hands on" in one.name]

    assert hands_on(found=True) == []
    (missing,) = hands_on(found=False)
    assert not missing.found
    assert "mkdir /sys/fs/cgroup/init" in missing.remedy
