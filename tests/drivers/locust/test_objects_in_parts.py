"""Objects that are read by part are prepared in parts, and go with their segments."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.drivers.locust.local_driver import Api, Null, setup_for
from weighbridge.drivers.locust.prepared_objects import PreparedObjects
from weighbridge.drivers.protocol import Prepare
from weighbridge.suites import Workload

PART = 5 << 20


@pytest.mark.parametrize("api", ["s3", "swift"])
def test_segments_of_prepared_objects_are_no_strays_and_are_deleted_with_them(
    api: Api, null: Callable[..., Null]
) -> None:
    workload = Workload.model_validate(
        {
            "name": "parts",
            "objects": {"size": 2 * PART + 5, "per_container": 2},
            "operations": {"read-part": 1},
            "multipart": {"part": PART},
            "workers": [1],
            "runtime": 1.0,
        }
    )
    target = null()
    setup = setup_for(target.target(api))
    objects = PreparedObjects(setup)
    made = objects.prepare(Prepare(workload=workload), lambda _: None)
    assert (made.objects, made.bytes) == (2, 2 * (2 * PART + 5))
    bucket = f"{setup.bucket_prefix}-parts-0"
    wholes = [f"{bucket}/object-000000000{index}" for index in range(2)]
    segments = [f"{name}/0000000{number}" for name in wholes for number in (1, 2, 3)]
    wanted = sorted(wholes + (segments if api == "swift" else []))
    assert target.names(api) == wanted
    assert objects.delete_strays(workload, lambda _: None) == (0, 0)
    assert target.names(api) == wanted
    assert objects.delete_all(workload, 2, lambda _: None) == (2, 0)
    assert target.names(api) == []
