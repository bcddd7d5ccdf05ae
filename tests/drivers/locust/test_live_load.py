"""What users of locustfiles cannot replay."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from weighbridge.common.endpoint import ObjectApi
from weighbridge.common.errors import UsageError
from weighbridge.drivers.locust.live_load import refuse_unfit
from weighbridge.suites import Workload


def workload(**keys: Any) -> Workload:
    given = {"objects": {"size": 1000}, "operations": {"read": 1}, **keys}
    return Workload.model_validate({"name": "tried", "workers": [1], "runtime": "1s", **given})


@pytest.mark.parametrize(
    ("keys", "api", "users", "says"),
    [
        ({"rate_per_s": 100}, "s3", "engine", "how many workers"),
        ({"operations": {"delete": 1}}, "s3", "engine", "only deletes"),
        ({"operations": {"tag": 1}}, "swift", "engine", "swift API has no tag"),
        ({"operations": {"copy": 1, "read": 1}}, "s3", "sdk", "copy"),
        ({"connections": "per-request"}, "s3", "sdk", "connections"),
    ],
)
def test_a_workload_that_these_users_cannot_replay_is_refused(
    keys: dict[str, Any], api: ObjectApi, users: Literal["engine", "sdk"], says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        refuse_unfit(workload(**keys), api, users)


@pytest.mark.parametrize("users", ["engine", "sdk"])
def test_a_plain_workload_is_not_refused(users: Literal["engine", "sdk"]) -> None:
    mix = workload(operations={"read": 5, "write": 3, "delete": 1, "head": 1, "list": 1})
    for api in ("s3", "swift"):
        refuse_unfit(mix, api, users)
