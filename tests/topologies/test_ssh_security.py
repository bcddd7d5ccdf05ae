"""What is said of SELinux and firewalld on real hosts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.ssh import requirements
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


def seen(*, selinux: bool = False, firewalld: list[str] | None = None) -> Mapping[str, Any]:
    return {"selinux": selinux, "firewalld": firewalld}


def test_a_host_without_selinux_and_firewalld_has_nothing_to_say_of_them() -> None:
    assert requirements.security_requirements(seen(), HARDWARE) == []


def test_selinux_that_enforces_is_reported_with_what_to_do() -> None:
    (one,) = requirements.security_requirements(seen(selinux=True), HARDWARE)
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
    (one,) = requirements.security_requirements(seen(firewalld=sources), HARDWARE)
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
