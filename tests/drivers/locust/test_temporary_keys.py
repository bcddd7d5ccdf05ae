"""Keys of S3 that end while a step runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import pytest
from pydantic import SecretStr

from aws_profiles import by_program
from tcp_relay import relayed
from tests.drivers.locust.local_driver import Null, by_operation, driver, setup_for, workload
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.temporary_keys import KeySource
from weighbridge.drivers.protocol import Cleanup, Prepare, Step

LIFE_S = 4.0


@pytest.mark.parametrize("users", ["engine", "sdk"])
def test_a_step_begins_with_new_keys_and_takes_others_before_they_end(
    null: Callable[..., Null], tmp_path: Path, users: Literal["engine", "sdk"]
) -> None:
    files = by_program(tmp_path, LIFE_S)
    source = KeySource(
        provider="custom-process",
        profile="lab",
        config_file=files["AWS_CONFIG_FILE"],
        credentials_file=files["AWS_SHARED_CREDENTIALS_FILE"],
    )
    signed: list[str] = []

    def seen(data: bytes) -> None:
        signed.extend(re.findall(r"Credential=(\w+)/", data.decode(errors="replace")))
        tokens = re.findall(r"(?i)x-amz-security-token: (\S+)", data.decode(errors="replace"))
        assert all(one.startswith("token") for one in tokens)

    one = workload({"read": 1, "write": 1}, runtime=LIFE_S + 1, rate_per_s=50.0)
    port = urlsplit(null().url).port
    assert port is not None
    with relayed(port, seen) as relay, driver(tmp_path) as running:
        target = Endpoint(
            api="s3",
            url=f"http://127.0.0.1:{relay}",
            user="ENDED",
            key=SecretStr("old"),
            key_source=source,
        )
        running.setup(setup_for(target, users=users))
        running.prepare(Prepare(workload=one))
        before = set(signed)
        signed.clear()
        measurement = running.step(Step(workload=one, workers=2)).measurement
        used = set(signed)
        cleaned = running.cleanup(Cleanup(workload=one, what="all"))
        running.quit()
    assert "ENDED" not in before | used
    assert len(used - before) >= 2, (before, used)
    assert "keys renewed in the step before they expired: 1" in measurement.notes
    assert not any(tally.errors for tally in by_operation(measurement).values())
    assert cleaned.failed == 0
