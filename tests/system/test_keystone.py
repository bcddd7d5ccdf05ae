"""A real OpenStack Swift whose users a real Keystone lets in, as a gateway that already runs."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from deployed_layouts import deployed, unlimited
from keystone_host import IMAGE, OTHER, RELEASE, KeystoneSite
from suite_command import in_network_of, measured, trial, weighbridge
from weighbridge.gateways.existing import credentials
from weighbridge.gateways.existing.settings import ExistingSettings
from weighbridge.gateways.swift.swift import Swift
from weighbridge.results.run.store import RunStore
from weighbridge.topologies.deployment import Deployment

# Tokens end by the clock.
pytestmark = [pytest.mark.system, pytest.mark.pair, pytest.mark.long]

LIFE_S = 30
ASKED = """
import json, sys
from weighbridge.common.exchange import WrongAnswer, ask, exchanging
for endpoint in json.load(sys.stdin):
    try:
        with exchanging(endpoint, "c") as exchange:
            print(json.dumps(ask(exchange, "HEAD", "HEAD", "/c", (204, 404)).status))
    except WrongAnswer as wrong:
        print(json.dumps(wrong.what))
"""


class Site:
    def __init__(self, deployment: Deployment, folder: Path) -> None:
        self.client, self.folder = deployment.client, folder
        self.keystone = KeystoneSite(deployment.hosts["gateway-1"], self.client, LIFE_S)

    def compared(self, users: str, **environment: str) -> tuple[Path, str]:
        folder = self.folder / users
        folder.mkdir()
        # Longer than a token lasts.
        suite = trial(
            *("[swift]", "{read: 100}", f"{LIFE_S}s"),
            size="16KiB",
            containers=2,
            per_container=4,
            rate=5,
            verify="true",
            suite=f"users: {users}",
        )
        (folder / "trial.yaml").write_text(suite)
        words = f"--suite {folder}/trial.yaml --out {folder}/runs --no-charts"
        # All that is not given again is of no account to the command.
        kept = {name: "" for name in os.environ if name.startswith("OS_")}
        home = {name: str(folder / name) for name in ("WEIGHBRIDGE_HOME", "WEIGHBRIDGE_STATE")}
        done = weighbridge(
            f"compare --swift cloud={self.keystone.url} {words}",
            within=in_network_of(self.client),
            timeout_s=300,
            env={**kept, **home, **environment},
        )
        return measured(done, folder / "runs").folder, done.stdout + done.stderr

    def seen(self, *changes: dict[str, str]) -> list[Any]:
        """The status of a HEAD of a container with changes to the environment of an openrc file, or
        why there was none.
        """
        given = ExistingSettings.model_validate({"swift": {"keystone": {}}})
        order = []
        for change in changes:
            environment = {**self.keystone.environment, **change}
            (endpoint,) = credentials.endpoints(given, environment)
            order.append(endpoint.model_dump(mode="json"))
        command = self.client.module("-")
        argv = [command.argv[0], "-c", ASKED]
        done = self.client.run(argv, stdin=json.dumps(order), env=command.env)
        return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("keystone")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(Swift.releases, RELEASE, IMAGE)
        own = partial(re.sub, "swift-2.35", RELEASE)
        with deployed("swift", folder, own, change_hardware=unlimited, once=True) as deployment:
            yield Site(deployment, folder)


@pytest.mark.parametrize("users", ["engine", pytest.param("sdk", marks=pytest.mark.test_all)])
def test_tokens_are_renewed_in_a_step_before_any_request_is_refused(site: Site, users: str) -> None:
    environment = site.keystone.environment
    secret = site.keystone.password
    if users == "sdk":
        found = site.keystone.application
        secret = str(found["secret"])
        environment = {
            "OS_APPLICATION_CREDENTIAL_ID": str(found["id"]),
            "OS_APPLICATION_CREDENTIAL_SECRET": secret,
        }
    run, printed = site.compared(users, **environment)
    (step,) = RunStore.open(run).latest().values()
    assert step.measurement is not None
    assert not any(tally.errors for tally in step.measurement.tallies), step.measurement.notes
    renewed = "tokens renewed in the step before they expired: "
    assert any(note.startswith(renewed) for note in step.measurement.notes)
    assert secret not in printed
    assert not [
        path for path in run.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()
    ]


def test_refusals_say_what_is_wrong_and_what_there_is(site: Site) -> None:
    works, password, project, role, region, user = site.seen(
        {},
        {"OS_PASSWORD": "wrong"},
        {"OS_PROJECT_NAME": "unknown"},
        {"OS_PROJECT_NAME": OTHER},
        {"OS_REGION_NAME": "two"},
        {"OS_USERNAME": "nobody"},
    )
    assert works == 404
    assert password.startswith("Keystone refuses the user 'demo'")
    for one, name in ((project, "unknown"), (role, OTHER)):
        assert f"the password of the user 'demo' is right, but there is no project '{name}'" in one
        assert one.endswith("projects of this user: 'lab'")
    assert region == "its catalogue has no object-store in the region 'two', but in 'one'"
    assert user.startswith("Keystone refuses the user 'nobody'")
