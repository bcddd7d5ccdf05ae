"""Hosts with RPM packages, SELinux and firewalld, with stubs of their programs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.gateways.stub_host import StubHost
from weighbridge.common.distribution import Family, package_names
from weighbridge.common.errors import CommandFailed, TargetError
from weighbridge.common.host import Completed
from weighbridge.gateways.apache.config import CONF
from weighbridge.gateways.apache.front import Apache
from weighbridge.gateways.apache.settings import ApacheSettings
from weighbridge.gateways.front import Backend, Behind
from weighbridge.gateways.package_versions import package_versions
from weighbridge.gateways.rgw.releases import RELEASES as CEPH
from weighbridge.gateways.swift.releases import RELEASES as SWIFT
from weighbridge.topologies.hardware import Hardware, HostSite
from weighbridge.topologies.ssh import installing, requirements, security
from weighbridge.topologies.ssh.remote import means_program

HARDWARE = Hardware.model_validate(
    {
        "name": "real",
        "kind": "ssh",
        "hosts": {
            "client-1": {"address": "10.0.0.1"},
            "gateway-1": {"address": "10.0.0.2"},
            "store-1": {"address": "fd00::3"},
        },
    }
)
DNF = """\
#!/bin/sh
echo "$@" >>{folder}/asked
case "$*" in
  *--assumeno*) cat {folder}/plan; exit 1 ;;
  *) echo httpd.service >>{folder}/enabled; echo "Complete!" ;;
esac
"""
SYSTEMCTL = """\
#!/bin/sh
echo "systemctl $*" >>{folder}/asked
case "$1" in list-unit-files) sed 's/$/ enabled/' {folder}/enabled ;; esac
"""
NEW = "Installing:\n httpd x86_64 2.4.57 appstream 46 k\nOperation aborted.\n"


class StubbedShell:
    """A shell on this machine that finds stubs first."""

    name, address = "store-1", "10.0.0.3"

    def __init__(self, folder: Path, plan: str) -> None:
        self.folder = folder
        (folder / "plan").write_text(plan)
        (folder / "enabled").write_text("sshd.service\n")
        (folder / "asked").write_text("")
        for name, text in (("dnf", DNF), ("systemctl", SYSTEMCTL)):
            (folder / name).write_text(text.format(folder=folder))
            (folder / name).chmod(0o755)

    def open(self) -> None: ...

    def sh(self, script: str, *words: str, timeout_s: float = 60) -> Completed:
        argv = ["/bin/sh", "-ec", script, "sh", *words]
        env = {"PATH": f"{self.folder}:{os.environ['PATH']}"}
        done = subprocess.run(
            argv, capture_output=True, text=True, check=False, env=env, timeout=timeout_s
        )
        if done.returncode:
            raise CommandFailed(self.name, argv, done.returncode, done.stdout + done.stderr)
        return Completed(done.stdout, done.stderr)

    @property
    def asked(self) -> list[str]:
        return (self.folder / "asked").read_text().splitlines()


def install(shell: StubbedShell, *packages: str) -> list[str]:
    said: list[str] = []
    installing.install(shell, "dnf", packages, said.append)  # type: ignore[arg-type]
    return said


def test_packages_have_their_names_on_hosts_with_rpm() -> None:
    ceph = package_names("rpm", CEPH["ceph-18"].image.packages)
    assert {"ceph-radosgw", "ceph-osd", "iproute", "procps-ng", "httpd", "haproxy"} <= set(ceph)
    assert not {"radosgw", "tini", "apache2-bin", "iproute2", "btrfs-progs"} & set(ceph)
    swift = package_names("rpm", SWIFT["swift-2.30"].image.packages)
    assert {"openstack-swift-proxy", "openstack-swift-object", "memcached", "rsync"} <= set(swift)
    assert len(set(swift)) == len(swift)


def test_dnf_installs_without_more_than_is_needed_and_nothing_starts_at_boot(
    tmp_path: Path,
) -> None:
    shell = StubbedShell(tmp_path, NEW)
    said = install(shell, "httpd", "haproxy")
    assert said == [
        "store-1: installing httpd haproxy",
        "store-1: disabled httpd.service, which would have been started at boot",
        "store-1: installed 2 packages",
    ]
    assert [line for line in shell.asked if "install_weak_deps" in line] == [
        f"--setopt=install_weak_deps=False {answer} install httpd haproxy"
        for answer in ("--assumeno", "--assumeyes")
    ]
    assert "systemctl disable httpd.service" in shell.asked


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (f"Upgrading:\n openssl-libs x86_64 3.2\n{NEW}", "would change installed packages"),
        (f"Removing:\n old x86_64 1\n{NEW}", "would change installed packages"),
        ("No match for argument: ceph-radosgw\nError: Unable to find a match", "No match for"),
    ],
)
def test_what_dnf_would_change_or_does_not_know_is_refused_before_it_installs(
    tmp_path: Path, plan: str, message: str
) -> None:
    shell = StubbedShell(tmp_path, plan)
    with pytest.raises(TargetError, match=message):
        install(shell, "ceph-radosgw")
    assert not [line for line in shell.asked if "--assumeyes" in line]


@pytest.mark.parametrize(
    ("family", "lines", "program"),
    [
        (
            "debian",
            ["User www-data", 'LoadModule env_module "/usr/lib/apache2/modules/mod_env.so"'],
            "apache2",
        ),
        (
            "rpm",
            [
                "User apache",
                'LoadModule unixd_module "/usr/lib64/httpd/modules/mod_unixd.so"',
                'LoadModule env_module "/usr/lib64/httpd/modules/mod_env.so"',
            ],
            "httpd",
        ),
    ],
)
def test_apache_has_the_users_and_modules_of_its_host(
    family: Family, lines: list[str], program: str
) -> None:
    apache = Apache(ApacheSettings(), Behind())
    site = HostSite("gateway-1", "10.0.0.2", (), family)
    text = apache.files_on(site, [Backend("a", "10.0.0.2", 8000)])[CONF].splitlines()
    assert set(lines) <= set(text)
    host = VersionedHost(family)
    (daemon,) = apache.daemons(host)
    assert daemon.service.argv[0] == program


class VersionedHost(StubHost):
    """A host that has every package in a version, and notes what it was asked."""

    def __init__(self, family: Family) -> None:
        self.name, self.address, self.family = "gateway-1", "10.0.0.2", family
        self.asked: list[str] = []

    def run(self, argv: Any, **_options: Any) -> Completed:
        self.asked = list(argv)
        return Completed("".join(f"{name} 18.2\n" for name in argv[4:]), "")


def test_versions_of_packages_are_asked_by_the_names_that_they_have_there() -> None:
    host = VersionedHost("rpm")
    assert package_versions(host, ["radosgw", "ceph-osd"]) == "ceph-radosgw 18.2, ceph-osd 18.2"
    assert host.asked[:2] == ["rpm", "-q"]
    assert package_versions(VersionedHost("debian"), ["radosgw"]) == "radosgw 18.2"


# SELinux and firewalld
# --------------------------------------------------------------------------------------------


def seen(*, selinux: bool = False, firewalld: list[str] | None = None) -> Mapping[str, Any]:
    return {"selinux": selinux, "firewalld": firewalld}


def test_a_host_without_selinux_and_firewalld_has_nothing_to_say_of_them() -> None:
    assert security.requirements(seen(), HARDWARE) == []


def test_selinux_that_enforces_is_reported_with_what_to_do() -> None:
    (one,) = security.requirements(seen(selinux=True), HARDWARE)
    assert not one.found
    assert "setenforce 0" in one.remedy


@pytest.mark.parametrize(
    ("sources", "shut"),
    [
        ([], ["10.0.0.1", "10.0.0.2", "fd00::3"]),
        (["10.0.0.0/24", "ipset:mine"], ["fd00::3"]),
        (["10.0.0.1", "10.0.0.2", "fd00::/64"], []),
    ],
)
def test_firewalld_must_trust_every_host(sources: list[str], shut: list[str]) -> None:
    (one,) = security.requirements(seen(firewalld=sources), HARDWARE)
    assert one.found is not bool(shut)
    if shut:
        words = " ".join(f"--add-source={address}" for address in shut)
        assert one.remedy == f"firewall-cmd --zone=trusted {words} (until it is reloaded)"


@pytest.mark.parametrize(("code", "trusted"), [(0, ["10.0.0.0/24", "fd00::3"]), (252, None)])
def test_the_sources_that_firewalld_trusts_are_read_where_it_runs(
    tmp_path: Path, code: int, trusted: list[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub = tmp_path / "firewall-cmd"
    stub.write_text(f"#!/bin/sh\necho 10.0.0.0/24 fd00::3\nexit {code}\n")
    stub.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    program = Path(means_program.__file__)
    done = subprocess.run(
        [sys.executable, "-I", str(program), "/opt"], capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    assert found["firewalld"] == trusted
    assert found["selinux"] is (means_program.text("/sys/fs/selinux/enforce") == "1")


def test_only_managers_that_are_known_install_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[tuple[str, str]] = []

    class Shells:
        def __init__(self, _hardware: Hardware) -> None: ...

        def __enter__(self) -> dict[str, str]:
            return {name: name for name in ("client-1", "gateway-1", "store-1")}

        def __exit__(self, *_: object) -> None: ...

    def noted(shell: str, manager: str, _packages: object, _say: object) -> None:
        done.append((shell, manager))

    monkeypatch.setattr(requirements.leftovers, "shells", Shells)
    monkeypatch.setattr(requirements.installing, "install", noted)
    lacking = [
        requirements.HostRequirements(name, (), manager, ("fio",))
        for name, manager in (("client-1", "apt"), ("gateway-1", "dnf"), ("store-1", "zypper"))
    ]
    requirements.install(HARDWARE, lacking, print)
    assert sorted(done) == [("client-1", "apt"), ("gateway-1", "dnf")]
