"""A real OpenStack Swift as a gateway that already runs, opened by a token that was got
elsewhere.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from deployed_layouts import deployed, on_client
from small_lab import within
from suite_command import in_network_of, trial, weighbridge
from weighbridge.results.run.store import RunStore

pytestmark = pytest.mark.system

SUITE = trial(
    "[swift]",
    "{read: 60, write: 40}",
    "2s",
    size="64KiB",
    containers=2,
    per_container=4,
    workers=4,
    verify="true",
)
TOKEN = """
import json, sys, sdk
print(json.dumps(sdk.swift(json.load(sys.stdin)).get_auth()))
"""
CONTAINERS = """
import json, sys, sdk
print(json.dumps([one["name"] for one in sdk.swift(json.load(sys.stdin)).get_account()[1]]))
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
        url, token = on_client(deployment, "swift", "-c", TOKEN)
        words = f"--suite {tmp_path}/trial.yaml --layouts {tmp_path}/given.yaml --no-charts"
        homes = {name: str(tmp_path / name) for name in ("WEIGHBRIDGE_HOME", "WEIGHBRIDGE_STATE")}
        for given, code in (("AUTH_tkold", 3), (token, 0)):
            done = weighbridge(
                f"compare --hardware this-machine {words} --out {tmp_path}/runs",
                within=in_network_of(deployment.client),
                env={**homes, "OS_STORAGE_URL": url, "OS_AUTH_TOKEN": given},
            )
            assert done.returncode == code, done.stdout + done.stderr
            assert code == 0 or "swift make bucket at" in done.stderr

        # A replica of the account may hear of it later.
        assert within(30, lambda: on_client(deployment, "swift", "-c", CONTAINERS) == [])
    (run,) = (tmp_path / "runs").iterdir()
    (step,) = RunStore.open(run).steps()
    assert step.measurement is not None
    assert not any(tally.errors for tally in step.measurement.tallies)
