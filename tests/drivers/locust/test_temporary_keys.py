"""Keys of S3 that end while a step runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import pytest
from pydantic import SecretStr

from aws_profiles import source_of
from tcp_relay import relayed
from tests.drivers.locust.local_driver import Null, answered, by_operation, setup_for, workload
from weighbridge.common import credential
from weighbridge.common.endpoint import Endpoint
from weighbridge.drivers.protocol import Cleaned, Cleanup, Measured, Prepare, Step

LIFE_S = 3600.0


@pytest.mark.parametrize("users", ["engine", "sdk"])
def test_a_step_begins_with_new_keys_and_takes_others_before_they_end(
    null: Callable[..., Null],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    users: Literal["engine", "sdk"],
) -> None:
    # They are due soon, and end late: no machine is too slow for that.
    monkeypatch.setattr(credential, "RENEW_AT", 0.3 / LIFE_S)
    source = source_of(tmp_path, LIFE_S)
    signed: list[str] = []

    def seen(data: bytes) -> None:
        signed.extend(re.findall(r"Credential=(\w+)/", data.decode(errors="replace")))
        tokens = re.findall(r"(?i)x-amz-security-token: (\S+)", data.decode(errors="replace"))
        assert all(one.startswith("token") for one in tokens)

    one = workload({"read": 1, "write": 1}, runtime=2.0, rate_per_s=50.0)
    port = urlsplit(null().url).port
    assert port is not None
    with relayed(port, seen) as relay:
        target = Endpoint(
            api="s3",
            url=f"http://127.0.0.1:{relay}",
            user="ENDED",
            key=SecretStr("old"),
            key_source=source,
        )
        status, events = answered(
            setup_for(target, users=users),
            Prepare(workload=one),
            Step(workload=one, workers=2),
            Cleanup(workload=one, what="all"),
        )
    assert status == 0, events
    (measurement,) = (event.measurement for event in events if isinstance(event, Measured))
    (cleaned,) = (event for event in events if isinstance(event, Cleaned))
    assert "ENDED" not in signed
    # Those of the preparation, of the step's begin, and at least once again.
    assert len(set(signed)) >= 3, set(signed)
    assert [one for one in measurement.notes if "renewed in the step before they expired" in one]
    assert not any(tally.errors for tally in by_operation(measurement).values())
    assert cleaned.failed == 0
