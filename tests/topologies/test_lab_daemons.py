from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from weighbridge.common.errors import TargetError
from weighbridge.topologies.lab.host import FILE, daemons, keep_daemon
from weighbridge.topologies.lab.program import LabProcess


def host(deployment: Path, name: str) -> Path:
    folder = deployment / "bundles" / name
    folder.mkdir(parents=True)
    return folder


def test_a_daemon_is_alive_as_long_as_its_first_process(tmp_path: Path) -> None:
    running = subprocess.Popen(["sleep", "60"])
    now = LabProcess.of(running.pid)
    assert now is not None
    later = LabProcess(
        now.pid, now.parent, now.session, now.started - 1
    )  # another one had the number
    keep_daemon(
        host(tmp_path, "gateway-1"),
        "gateway-1",
        {"radosgw": now, "haproxy": later, "apache2": None},
    )
    try:
        assert [(one.host, one.service, one.alive) for one in daemons(tmp_path)] == [
            ("gateway-1", "radosgw", True),
            ("gateway-1", "haproxy", False),
            ("gateway-1", "apache2", False),
        ]
    finally:
        running.kill()
        running.wait()
    assert not any(one.alive for one in daemons(tmp_path))


def test_the_last_record_counts_and_hosts_are_separate(tmp_path: Path) -> None:
    here, there = host(tmp_path, "store-1"), host(tmp_path, "store-2")
    keep_daemon(here, "store-1", {"osd.0": None, "mon": None})
    keep_daemon(there, "store-2", {"osd.1": None})
    keep_daemon(here, "store-1", {"osd.0": None})
    assert [(one.host, one.service) for one in daemons(tmp_path)] == [
        ("store-1", "osd.0"),
        ("store-2", "osd.1"),
    ]
    assert daemons(tmp_path / "none") == ()


def test_an_invalid_file_is_named(tmp_path: Path) -> None:
    folder = host(tmp_path, "store-1")
    (folder / FILE).write_text("{")
    with pytest.raises(TargetError, match=rf"{folder}/{FILE} is not a valid list"):
        daemons(tmp_path)
