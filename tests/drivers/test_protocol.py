from __future__ import annotations

import json

import pytest
from pydantic import SecretStr, ValidationError

from weighbridge.common.endpoint import Endpoint
from weighbridge.drivers.protocol import (
    DRIVER_COMMAND,
    Ring,
    RingDisk,
    Setup,
)
from weighbridge.suites import Objects, Workload

SETUP = Setup(
    target=Endpoint(
        api="s3", url="http://10.0.0.2:7480", user="bench", key=SecretStr("very-secret")
    ),
    bucket_prefix="wb-1",
    seed=7,
)
WORKLOAD = Workload(
    name="small-read",
    objects=Objects(size=4096),
    operations={"read": 1},
    workers=(1, 4),
    runtime=1.0,
    warmup=0,
)


def ring() -> Ring:
    disks = (RingDisk(address="10.0.0.3", port=6200, device="d0"),)
    secrets = {"hash_prefix": SecretStr("hidden-prefix"), "hash_suffix": SecretStr("hidden-suffix")}
    return Ring(disks=disks, table=((0, 0),), part_power=1, **secrets)


def test_the_ring_s_hash_secrets_are_in_the_json_but_not_in_the_repr() -> None:
    account = Endpoint(api="swift", url="http://10.0.0.3:6200/AUTH_a", user="AUTH_a")
    setup = Setup(target=account, ring=ring(), bucket_prefix="wb-1o", seed=7)
    assert setup.api == "object-server"
    assert "hidden" not in repr(setup)
    assert DRIVER_COMMAND.validate_json(setup.model_dump_json()) == setup
    assert json.loads(setup.model_dump_json())["ring"]["hash_prefix"] == "hidden-prefix"


def test_object_servers_need_a_ring_and_gateways_credentials() -> None:
    s3, swift = (Endpoint(api=api, url="http://h:1", user="u") for api in ("s3", "swift"))
    with pytest.raises(ValidationError, match="a ring is for Swift's object servers only"):
        Setup(target=s3, ring=ring(), bucket_prefix="wb-1", seed=7)
    assert Setup(target=swift, bucket_prefix="wb-1", seed=7).api == "swift"
    with pytest.raises(ValidationError, match="a user or a token"):
        Endpoint(api="s3", url="http://h:1")


def test_the_key_is_in_the_json_but_not_in_the_repr() -> None:
    assert "very-secret" in SETUP.model_dump_json()
    assert "very-secret" not in repr(SETUP)
    back = DRIVER_COMMAND.validate_json(SETUP.model_dump_json())
    assert isinstance(back, Setup)
    assert back.target.key.get_secret_value() == "very-secret"


@pytest.mark.parametrize(
    "line",
    [
        '{"kind": "explode"}',
        '{"kind": "quit", "when": "now"}',
        '{"workload": {}}',
        "not JSON",
        (
            '{"kind": "setup", "bucket_prefix": "UPPER", "seed": 1, "target": {"api": "s3", "url": '
            '"http://h", "user": "u"}}'
        ),
        (
            '{"kind": "setup", "bucket_prefix": "wb-1", "seed": 1, "target": {"api": "s3", "url": '
            '"ftp://h", "user": "u"}}'
        ),
    ],
)
def test_an_invalid_command_is_refused(line: str) -> None:
    with pytest.raises(ValidationError):
        DRIVER_COMMAND.validate_json(line)


def test_several_clients_share_the_worker_processes_and_need_an_address_of_the_driver() -> None:
    several = {**SETUP.model_dump(), "clients": ("one", "two"), "processes": 3}
    setup = Setup.model_validate({**several, "listen": "10.0.0.9"})
    assert (setup.worker_processes, SETUP.worker_processes) == (6, 1)
    assert [setup.client_of(number) for number in range(6)] == ["one"] * 3 + ["two"] * 3
    with pytest.raises(ValidationError, match="`listen` must be set"):
        Setup.model_validate(several)
    with pytest.raises(ValidationError, match="listed twice"):
        Setup.model_validate({**several, "listen": "10.0.0.9", "clients": ("one", "one")})
