"""Real hosts without any: hardware files, claims, disks and kernel settings, wheels."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from weighbridge.common.document import DocumentError
from weighbridge.common.errors import TargetError, UsageError
from weighbridge.common.host import Completed
from weighbridge.topologies.hardware import Disk, Hardware
from weighbridge.topologies.loader import load_hardware, shipped_hardware
from weighbridge.topologies.on_host import machine
from weighbridge.topologies.ssh import claim, disks, kernel, leftovers, requirements
from weighbridge.topologies.ssh.leftovers import ClaimedDeployment

FINE: Mapping[str, Any] = {
    "fault": "",
    "path": "/dev/sdb",
    "device": "8:16",
    "size_bytes": 10**12,
    "model": "EXAMPLE",
    "rotational": True,
    "partition": False,
    "read_only": False,
    "used": [],
    "holds": [],
}
LOOKED = {
    "kernel": "6.1.0",
    "boot": "b1",
    "cpu": "a CPU",
    "cpus": 8,
    "memory_bytes": 2**35,
    "nic": "eth1",
    "mtu": 1500,
    "speed_mbit_s": 10000,
    "sysctls": {},
}


class AnsweringShell:
    """A host that gives these answers to programs, or runs them on this machine."""

    name, address = "store-1", "192.0.2.31"

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.given: list[Any] = []

    def sh(
        self, script: str, *words: str, stdin: bytes | str = b"", timeout_s: float = 60
    ) -> Completed:
        raise AssertionError(script)

    def python(
        self, source: str, *words: str, stdin: bytes | str = b"", timeout_s: float = 60
    ) -> Completed:
        self.given.append((words, json.loads(stdin)))
        return Completed(json.dumps(self.answers.pop(0)), "")

    @property
    def where(self) -> str:
        return f"{self.name} ({self.address})"

    def open(self) -> None:
        pass


class Here(AnsweringShell):
    def python(
        self, source: str, *words: str, stdin: bytes | str = b"", timeout_s: float = 60
    ) -> Completed:
        done = subprocess.run(
            [sys.executable, "-I", "-c", source, *words],
            input=stdin,
            capture_output=True,
            text=True,
            check=True,
        )
        return Completed(done.stdout, done.stderr)


def hardware(**more: object) -> Hardware:
    hosts = {"store-1": {"address": "192.0.2.31"}}
    real = {"name": "real", "kind": "ssh", "clients": ["store-1"], "hosts": hosts}
    return Hardware.model_validate({**real, **more})


BAD = """\
name: bad
kind: ssh
clients: [client-1, nobody]
hosts:
  client-1: {address: 192.0.2.1}
  store-1:
    address: 192.0.2.1
    disks: [{size: 3GiB}, {id: /dev/disk/by-id/b}, {id: /dev/disk/by-id/b}]
  store-2: {disks: [{id: /dev/disk/by-id/a}, {id: /dev/disk/by-id/a}]}
  store-3: {address: gateway}
"""


def faults_of(path: Path, text: str) -> dict[tuple[int, int], str]:
    path.write_text(text)
    with pytest.raises(DocumentError) as error:
        load_hardware(path)
    return {(fault.line, fault.column): fault.message for fault in error.value.faults}


def test_every_fault_of_a_file_for_real_hosts_is_reported_at_its_own_place(tmp_path: Path) -> None:
    found = faults_of(tmp_path / "bad.yaml", BAD.replace("gateway", "1.2.3"))
    assert "client 'nobody' is not one of the hosts" in found[3, 21]
    assert "'client-1' and 'store-1' have the same address 192.0.2.1" in found[7, 14]
    assert "needs its id" in found[8, 13]
    assert "has its own size" in found[8, 20]
    assert "has /dev/disk/by-id/b twice" in found[8, 57]
    assert "host 'store-2' needs the address" in found[9, 12]
    assert "has /dev/disk/by-id/a twice" in found[9, 51]
    assert "'1.2.3' is not an address" in found[10, 22]
    assert len(found) == 8
    text = "name: bad\nkind: ssh\nhosts:\n"
    text += "  client-1: {address: 192.0.2.1, disks: [{id: by-id/nvme-1}]}\n"
    found = faults_of(tmp_path / "bad.yaml", text)
    assert "'by-id/nvme-1' is not a device: write its path" in found[4, 47]


def test_entries_for_real_hosts_are_refused_for_lab_hosts(tmp_path: Path) -> None:
    text = "name: bad\nkind: lab\nprofile: study-2014\nnetwork: {set: true}\nhosts:\n"
    text += "  client-1: {address: 192.0.2.1, ssh: {user: x}, disks: [{id: /dev/x, wipe: true}]}\n"
    found = faults_of(tmp_path / "bad.yaml", text)
    assert {line for line, _ in found} == {3, 4, 6}
    assert sum("is only for real hosts" in message for message in found.values()) == 6
    assert any("a disk needs a size" in message for message in found.values())


def test_files_that_are_missing_or_readable_by_others_are_refused_at_their_lines(
    tmp_path: Path,
) -> None:
    key, known = tmp_path / "key", tmp_path / "known"
    text = f"name: a\nkind: ssh\nssh:\n  key: {key}\n  known_hosts: {known}\n"
    text += "hosts: {client-1: {address: 192.0.2.1}}\n"
    found = faults_of(tmp_path / "a.yaml", text)
    assert "there is no file" in found[4, 8]
    assert "there is no file" in found[5, 16]
    known.touch()
    key.touch(mode=0o644)
    assert "can be read by others" in faults_of(tmp_path / "a.yaml", text)[4, 8]
    key.chmod(0o600)
    assert load_hardware(tmp_path / "a.yaml").access.key == str(key)


def test_the_shipped_example_is_valid_and_has_the_real_defaults() -> None:
    found = load_hardware(shipped_hardware()["ssh-example"])
    assert found.kind == "ssh"
    assert found.access == hardware().access
    assert found.network == hardware().network


def test_all_faults_of_a_hosts_disks_are_reported_at_once_with_advice() -> None:
    answer = [
        {"fault": "there is no such disk; in /dev/disk/by-id there is nothing"},
        {**FINE, "device": "8:32", "used": ["sdc1 is mounted at /home"], "holds": []},
        {**FINE, "device": "8:48", "holds": ["a file system (xfs)"]},
        {**FINE, "device": "8:64", "size_bytes": 2**20, "read_only": True},
        {**FINE, "device": "8:65", "partition": True},
        FINE,
        FINE,
    ]
    specs = [Disk(id=f"/dev/disk/by-id/{name}") for name in "abcdefg"]
    _, lines = disks.look(AnsweringShell(answer), specs)
    assert len(lines) == 7
    words = ("there is no such disk", "mounted at /home", "set `wipe: true`", "is read only")
    for word in (*words, "are needed", "complete disks"):
        assert sum(word in line for line in lines) == 1, word
    assert "the same disk as /dev/disk/by-id/f" in lines[-1]


def test_data_on_a_disk_can_be_wiped_if_the_file_says_so_but_never_a_disk_in_use() -> None:
    holds = {**FINE, "holds": ["swap space"]}
    used = {**holds, "used": ["sdb is swapped to"]}
    (found,), faults = disks.look(AnsweringShell([holds]), [Disk(id="/dev/a", wipe=True)])
    assert (found.holds, faults) == ("swap space", ())
    none, (fault,) = disks.look(AnsweringShell([used]), [Disk(id="/dev/a", wipe=True)])
    assert none == ()
    assert "is in use: sdb is swapped to" in fault


def test_a_disk_that_could_not_be_cleared_is_named_with_its_host() -> None:
    disk = disks.RealDisk(id="/dev/a", path="/dev/sdb", device="8:16", size_bytes=5)
    why = r"store-1 \(192.0.2.31\): disk /dev/a: it is no longer there"
    with pytest.raises(TargetError, match=why):
        disks.clear(AnsweringShell(["/dev/a: it is no longer there"]), [disk])


def test_another_mtu_is_refused_with_host_nic_and_both_values() -> None:
    looked = kernel.KernelState.model_validate(LOOKED)
    (fault,) = kernel.faults(AnsweringShell(), hardware(network={"mtu": 9000}), looked)
    for word in ("store-1", "eth1", "1500", "9000", "set: true"):
        assert word in fault
    set_to = hardware(network={"mtu": 9000, "set": True})
    assert kernel.faults(AnsweringShell(), set_to, looked) == ()


def test_a_setting_that_a_kernel_lacks_is_refused_and_named() -> None:
    looked = kernel.KernelState.model_validate(
        {**LOOKED, "sysctls": {"net.ipv4.tcp_low_latency": None, "net.ipv4.tcp_sack": "1"}}
    )
    (fault,) = kernel.faults(AnsweringShell(), hardware(profile="study-2014"), looked)
    assert "Linux 6.1.0 has no setting net.ipv4.tcp_low_latency (of profile study-2014)" in fault
    assert "tcp_sack" not in fault


def test_only_differing_settings_are_changed_and_restored() -> None:
    wanted = hardware(
        sysctl={"net.ipv4.tcp_rmem": "4096 87380 16777216", "net.ipv4.tcp_sack": "0"},
        network={"mtu": 9000, "set": True},
    )
    sysctls = {"net.ipv4.tcp_rmem": "4096\t87380\t16777216", "net.ipv4.tcp_sack": "1"}
    looked = kernel.KernelState.model_validate({**LOOKED, "sysctls": sysctls})
    before = kernel.former(wanted, looked)
    assert (before.mtu, dict(before.sysctls)) == (1500, {"net.ipv4.tcp_sack": "1"})
    host = AnsweringShell([], [])
    kernel.apply(host, wanted, before)
    kernel.restore(host, before)
    (_, set_to), (_, put_back) = host.given
    assert (set_to["mtu"], set_to["sysctls"]) == (9000, {"net.ipv4.tcp_sack": "0"})
    assert (put_back["mtu"], put_back["nic"]) == (1500, "eth1")
    assert put_back["sysctls"] == {"net.ipv4.tcp_sack": "1"}


def test_settings_of_another_boot_are_not_restored() -> None:
    # Restoring would fail: there is no such setting.
    former = kernel.FormerSettings(boot="another", sysctls={"net.no_such_setting": "1"})
    kernel.restore(Here(), former)
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    with pytest.raises(TargetError, match="no_such_setting"):
        kernel.restore(Here(), former.model_copy(update={"boot": boot}))


def test_a_second_claim_of_a_host_is_refused_naming_the_first(tmp_path: Path) -> None:
    host, folder = Here(), str(tmp_path / "opt")
    assert claim.read(host, folder) is None
    assert not Path(folder).exists()
    first = claim.take(
        host, claim.new_claim("rgw-1", folder, since="2026-01-01T00:00:00+00:00", kept="/runs/a")
    )
    assert first.boot
    with pytest.raises(UsageError) as error:
        claim.take(host, claim.new_claim("swift-1", folder, since="2026-01-02T00:00:00+00:00"))
    words = ("rgw-1", "2026-01-01T00:00:00+00:00", "/runs/a", "weighbridge down")
    for word in (*words, str(os.getpid()), socket.gethostname()):
        assert word in str(error.value)
    claim.release(host, first.model_copy(update={"deployment": "swift-1"}))
    assert claim.read(host, folder) == first
    claim.write(host, first.model_copy(update={"holder": 7}))
    assert (found := claim.read(host, folder)) is not None
    assert found.holder == 7
    claim.release(host, first)
    assert claim.read(host, folder) is None
    with pytest.raises(TargetError, match="the claim of rgw-1 is gone"):
        claim.write(host, first)


def test_a_conductor_is_running_only_as_the_same_process_that_made_the_claim() -> None:
    mine = claim.new_claim("rgw-1", "/opt/x", since="2026-01-01T00:00:00+00:00")
    assert ClaimedDeployment(mine, ("store-1",)).at_work
    older = mine.model_copy(update={"started": mine.started - 1})
    assert not ClaimedDeployment(older, ("store-1",)).at_work
    other = mine.model_copy(update={"conductor": "another-machine"})
    elsewhere = ClaimedDeployment(other, ("store-1",))
    assert (elsewhere.at_work, elsewhere.elsewhere) == (False, True)


@pytest.mark.parametrize(
    "wrong",
    [
        {"deployment": "../../../etc"},
        {"deployment": "/etc"},
        {"deployment": "rgw-1\n"},
        {"user": "me\nrgw-2 on store-1: all of it runs"},
        {"kept": "\x1b[2J"},
        {"since": "x" * 5000},
    ],
)
def test_a_claim_with_names_that_lead_elsewhere_or_have_several_lines_is_invalid(
    wrong: dict[str, str],
) -> None:
    claimed = claim.new_claim("rgw-1", "/opt/x", since="2026-01-01T00:00:00+00:00")
    mine = claimed.model_dump(mode="json")
    with pytest.raises(TargetError, match=r"store-1 .*claim\.json is not a claim of a deployment"):
        claim.read(AnsweringShell({"claim": json.dumps({**mine, **wrong})}), "/opt/x")


def left_on(host: AnsweringShell, monkeypatch: pytest.MonkeyPatch) -> leftovers.LeftoverReport:
    monkeypatch.setattr(leftovers, "shells", lambda _: contextlib.nullcontext({host.name: host}))
    return leftovers.find(hardware(), include_suites=True)


def test_names_that_are_no_labels_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    folders = ["..", "../../../home", "/etc", "left-1\n", "left-1", "Left", ""]
    processes = {"/etc": 1, "killed-abc123": 2, "a/../..": 1}
    answer = {"claim": None, "processes": processes, "folders": folders, "suites": []}
    found = left_on(AnsweringShell(answer), monkeypatch)
    assert found.failed == {}
    assert [(one.deployment, one.kind) for one in found.found] == [
        ("killed-abc123", "process"),
        ("killed-abc123", "process"),
        ("left-1", "folder"),
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        {"processes": {"left-1": 10**9}},
        {"folders": {}},
        {"folders": [["left-1"]]},
        {"suites": ["x"] * 10_001},
        {"more": 1},
    ],
)
def test_a_host_with_an_impossible_answer_is_named(
    wrong: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = {"claim": None, "processes": {}, "folders": [], "suites": [], **wrong}
    found = left_on(AnsweringShell(answer), monkeypatch)
    assert found.found == ()
    message = "store-1 (192.0.2.31): invalid list of what deployments have there"
    assert found.failed["store-1"].message == message


ADDRESSES = {"client-1": "10.0.0.1", "gateway-1": "10.0.0.2", "store-1": "fd00::3"}
HOSTS = {name: {"address": address} for name, address in ADDRESSES.items()}
HARDWARE = Hardware.model_validate({"name": "real", "kind": "ssh", "hosts": HOSTS})


@pytest.mark.parametrize(
    ("sources", "shut"),
    [
        (None, []),
        ([], ["10.0.0.1", "10.0.0.2", "fd00::3"]),
        (["10.0.0.0/24", "ipset:mine"], ["fd00::3"]),
        (["10.0.0.1", "10.0.0.2", "fd00::/64"], []),
    ],
)
def test_firewalld_must_trust_every_host_and_selinux_must_not_enforce(
    sources: list[str] | None, shut: list[str]
) -> None:
    looked = {"selinux": False, "firewalld": sources}
    found = requirements.security_requirements(looked, HARDWARE)
    assert [one.found for one in found] == ([] if sources is None else [not shut])
    if shut:
        words = " ".join(f"--add-source={address}" for address in shut)
        assert found[0].remedy == f"firewall-cmd --zone=trusted {words} (until it is reloaded)"
    (one, *others) = requirements.security_requirements({**looked, "selinux": True}, HARDWARE)
    assert (one.found, "setenforce 0" in one.remedy, others) == (False, True, found)


@pytest.mark.parametrize(("code", "trusted"), [(0, ["10.0.0.0/24", "fd00::3"]), (252, None)])
def test_the_sources_that_firewalld_trusts_are_read_where_it_runs(
    tmp_path: Path, code: int, trusted: list[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub = tmp_path / "firewall-cmd"
    stub.write_text(f"#!/bin/sh\necho 10.0.0.0/24 fd00::3\nexit {code}\n")
    stub.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    program = Path(machine.__file__)
    done = subprocess.run(
        [sys.executable, "-I", str(program), "means", "/opt"],
        input="null",
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    assert found["firewalld"] == trusted
    assert found["selinux"] is (machine.text("/sys/fs/selinux/enforce") == "1")
