"""What users of locustfiles cannot replay."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from tests.drivers.rados.conftest import one_kind
from weighbridge.common.endpoint import ObjectApi
from weighbridge.common.errors import UsageError
from weighbridge.drivers.locust.live_load import refuse_unfit
from weighbridge.suites import Workload


def workload(**keys: Any) -> Workload:
    return one_kind(**{"objects": {"size": 1000}, "workers": [1], **keys})


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
    mix = workload(operations={"read": 5, "write": 3, "delete": 1, "head": 1, "list": 1})
    refuse_unfit(mix, api, users)
