import os
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import SecretStr

from stub_run import Run
from tests.weighbridge.command_line import weighbridge
from weighbridge.common.endpoint import Endpoint, ObjectApi
from weighbridge.documents import StatusDocument
from weighbridge.screen.deployments import describe
from weighbridge.topologies.deployment import DeploymentRecord
from weighbridge.topologies.lab.host import keep_daemon
from weighbridge.topologies.lab.program import LabProcess


def test_status_says_when_nothing_is_running(tmp_path: Path) -> None:
    done = weighbridge("status", folder=tmp_path)
    assert (done.returncode, done.stdout.strip()) == (0, "nothing is running")


def test_status_names_dead_daemons(
    run: Run, monkeypatch: pytest.MonkeyPatch, run_cli: Callable[..., tuple[int, str, str]]
) -> None:
    monkeypatch.setenv("WEIGHBRIDGE_HOME", str(run.place.home))
    monkeypatch.setenv("COLUMNS", "300")
    folder = run.place.deployments / "rgw-a-1"
    bundle = folder / "bundles" / "gateway-1"
    bundle.mkdir(parents=True)
    record = DeploymentRecord(
        label="rgw-a-1",
        layout="rgw-a",
        hardware="lab-cpu",
        since="today",
        hosts={"gateway-1": "10.0.0.1"},
        clients=("client-1",),
        endpoints=(Endpoint(api="s3", url="http://10.0.0.1:80", user="u", key="secret"),),
    )
    (folder / "deployment.json").write_text(record.model_dump_json())
    mine = LabProcess.of(os.getpid())
    keep_daemon(bundle, "gateway-1", {"radosgw": mine})
    assert "dead" not in run_cli("status")[1]
    keep_daemon(bundle, "gateway-1", {"radosgw": None, "mon": mine})
    code, printed, _ = run_cli("status")
    assert code == 0
    assert f"dead: radosgw on gateway-1; its log: {folder}/logs/gateway-1/radosgw.out" in printed
    assert "mon on gateway-1" not in printed
    code, out, _ = run_cli("status", "--json")
    (one,) = StatusDocument.model_validate_json(out).deployments
    assert (code, one.label, one.state) == (0, "rgw-a-1", "running")
    assert one.addresses == {"gateway-1": "10.0.0.1"}
    assert [(each.urls, each.user, each.key) for each in one.endpoints] == [
        (("http://10.0.0.1:80",), "u", "secret")
    ]
    log = f"{folder}/logs/gateway-1/radosgw.out"
    assert [(each.host, each.service, each.log) for each in one.dead] == [
        ("gateway-1", "radosgw", log)
    ]
    keep_daemon(bundle, "gateway-1", {"radosgw": None, "mon": None})
    assert (
        "dead: none of it is running; `weighbridge down` removes what is left"
        in run_cli("status")[1]
    )


CA = "/run/ca.pem"


def lines(api: ObjectApi, ca_file: str | None) -> str:
    url = "https://10.0.0.1" if ca_file else "http://10.0.0.1"
    endpoint = Endpoint(api=api, url=url, user="me", key=SecretStr("k"), ca_file=ca_file)
    record = DeploymentRecord(
        label="one",
        layout="rgw-beast",
        hardware="lab-cpu",
        since="now",
        hosts={"client-1": "10.0.0.2"},
        clients=("client-1",),
        endpoints=(endpoint,),
    )
    return "\n".join(describe(record))


@pytest.mark.parametrize(
    ("api", "wanted"),
    [
        ("s3", (f"curl --cacert {CA} --aws", f'verify="{CA}"', '"when_required"))')),
        ("swift", (f"curl --cacert {CA} -i", f"OS_CACERT={CA} ST_AUTH=https://")),
    ],
)
def test_every_client_is_given_the_ca_of_the_deployment(
    api: ObjectApi, wanted: tuple[str, ...]
) -> None:
    shown = lines(api, CA)
    assert [one for one in wanted if one not in shown] == []


@pytest.mark.parametrize("api", ["s3", "swift"])
def test_plain_http_needs_none(api: ObjectApi) -> None:
    shown = lines(api, None)
    assert not [word for word in ("cacert", "CACERT", "verify", "Config") if word in shown]
