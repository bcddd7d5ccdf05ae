"""A gateway that already runs, and a host of its cluster that is observed while it is measured."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

from ssh_server import Server
from tests.weighbridge import command_line
from tests.weighbridge.test_existing import DELAYED, null_target, write
from weighbridge.results.record.store import RunStore
from weighbridge.topologies.ssh.connection import EventLoop

pytestmark = pytest.mark.long  # a complete comparison

HARDWARE = """
name: cluster
kind: existing
hosts: {{client-1: {{}}}}
ssh: {{user: somebody, key: {folder}/key, known_hosts: {folder}/known}}
observed:
  store-1: {{ssh: {{host: 127.0.0.1, port: {port}}}, tier: storage, nic: lo}}
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    loop = EventLoop()
    found = Server(tmp_path, loop)
    yield found
    loop.do(found.close())
    loop.close()


def test_what_an_observed_host_used_is_in_the_telemetry_and_no_program_stays(
    server: Server, tmp_path: Path
) -> None:
    (tmp_path / "cluster.yaml").write_text(HARDWARE.format(folder=tmp_path, port=server.port))
    with null_target(*DELAYED) as place:
        command = write(tmp_path, {"plain": f"http://127.0.0.1:{place[1]}"})
        command[command.index("this-machine")] = str(tmp_path / "cluster.yaml")
        done = command_line.weighbridge(*command, folder=tmp_path, **command_line.keys())
    assert done.returncode == 0, done.stdout + done.stderr
    (run,) = (tmp_path / "runs").iterdir()
    files = sorted((run / "telemetry").iterdir())
    assert files
    for file in files:
        lines = file.read_text().splitlines()
        assert any('"host":"store-1"' in line and '"phase":"measure"' in line for line in lines)
    assert server.all_ended()
    rows = [*csv.DictReader((run / "derived" / "summary.csv").read_text().splitlines())]
    assert all(float(row["storage_cpu_s_per_1000_ops"]) > 0 for row in rows)
    steps = RunStore.open(run).steps()
    assert all(step.measurement is not None for step in steps)
