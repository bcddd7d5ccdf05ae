"""A real OpenStack Swift as a gateway that already runs, opened by a token that was got
elsewhere.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from weighbridge.results.record.store import RunStore
from weighbridge.topologies.lab.host import LabHost

sys.path.insert(0, str(Path(__file__).parent))
from deployed_layouts import deployed, endpoint
from small_lab import within

pytestmark = pytest.mark.system

SUITE = """
name: trial
about: As short as it can be
api: [swift]
workloads:
  - name: small
    objects: {size: 64KiB, containers: 2, per_container: 4}
    operations: {read: 60, write: 40}
    workers: [4]
    runtime: 2s
    warmup: 0s
    verify: true
"""
TOKEN = """
import json, sys, swiftclient
e = json.load(sys.stdin)
print(json.dumps(swiftclient.Connection(e["url"], e["user"], e["key"], retries=0).get_auth()))
"""
CONTAINERS = """
import json, sys, swiftclient
e = json.load(sys.stdin)
connection = swiftclient.Connection(e["url"], e["user"], e["key"], retries=0)
print(json.dumps([one["name"] for one in connection.get_account()[1]]))
"""
GIVEN = """
name: given
about: A Swift with a token
gateway: existing
release: any
place: {}
settings: {about: OpenStack Swift of this test, swift: {token_env: OS_AUTH_TOKEN}}
"""


def test_a_real_swift_is_measured_with_a_token_alone_and_a_bad_token_is_reported(
    tmp_path: Path,
) -> None:
    (tmp_path / "given.yaml").write_text(GIVEN)
    (tmp_path / "trial.yaml").write_text(SUITE)
    with deployed("swift", tmp_path, once=True) as deployment:
        client, swift = deployment.client, endpoint(deployment, "swift")
        assert isinstance(client, LabHost)
        url, token = json.loads(
            client.run([sys.executable, "-c", TOKEN], stdin=swift.model_dump_json()).stdout
        )
        command = [
            "nsenter", f"--net=/proc/{client.pid}/ns/net", sys.executable, "-m", "weighbridge",
            "compare",
            "--hardware", "this-machine", "--suite", str(tmp_path / "trial.yaml"), "--layouts",
            str(tmp_path / "given.yaml"),
            "--out", str(tmp_path / "runs"), "--no-charts",
        ]  # fmt: skip
        homes = {
            "WEIGHBRIDGE_HOME": str(tmp_path / "home"),
            "WEIGHBRIDGE_STATE": str(tmp_path / "state"),
        }
        environment = {**os.environ, **homes, "OS_STORAGE_URL": url}
        for given, code in (("AUTH_tkold", 3), (token, 0)):
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                env={**environment, "OS_AUTH_TOKEN": given},
                timeout=600,
                check=False,
            )
            assert done.returncode == code, done.stdout + done.stderr
            assert code == 0 or "swift make bucket at" in done.stderr

        def containers() -> object:
            line = [sys.executable, "-c", CONTAINERS]
            return json.loads(client.run(line, stdin=swift.model_dump_json()).stdout)

        # A replica of the account may hear of it later.
        assert within(30, lambda: containers() == [])
    (run,) = (tmp_path / "runs").iterdir()
    (step,) = RunStore.open(run).steps()
    assert step.measurement is not None
    assert not any(tally.errors for tally in step.measurement.tallies)
