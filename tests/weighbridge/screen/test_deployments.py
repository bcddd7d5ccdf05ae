"""The lines that `up` and `status` print for clients."""

import pytest
from pydantic import SecretStr

from weighbridge.common.endpoint import Endpoint, ObjectApi
from weighbridge.screen.deployments import describe
from weighbridge.topologies.deployment import DeploymentRecord

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
