"""Versions of a workload's objects: what they can be, and with what."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from weighbridge.drivers import kind as kinds
from weighbridge.suites import Suite, Workload, parts_of

READ = {"read-version": 1}
MULTIPART = {"operations": {"write-multipart": 1}, "multipart": {"part": "8MiB"}}


def workload(**changed: Any) -> dict[str, Any]:
    known: dict[str, Any] = {
        "name": "some",
        "objects": {"size": "4KiB", "per_container": 10},
        "operations": READ,
        "versions": 3,
        "workers": [4],
        "runtime": "3s",
    }
    return {**known, **changed}


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"versions": None}, "read-version needs `versions: 3`"),
        ({"versions": None, "operations": {"list-versions": 1}}, "list-versions needs"),
        ({"versions": 0}, "1"),
        ({"versions": 101}, "100"),
        ({"versions": True}, "valid integer"),
        ({"objects": {"size": "15B"}}, "at least 16 bytes"),
        ({"objects": {"size": "2047B", "compressible": "50%"}}, "at least 2048 bytes"),
        (MULTIPART, "segments that are not versions"),
        ({"operations": {"list": 1}, "listed": {}}, "objects that are only listed have none"),
        ({"operations": {"list-versions": 1}, "listing": {"delimiter": "-"}}, "no `delimiter`"),
        ({"objects": {"size": "4KiB", "per_container": 33_334}}, "these are 100,002 versions"),
        ({"operations": {"versions-page": 1}}, "counted beside list-versions"),
        ({"listing": {"page": 5}}, "`listing` is for list-all"),
        ({"operations": {"read-version": 1, "delete-many": 1}}, "read-version would need"),
    ],
)
def test_what_versions_cannot_be_is_refused(changed: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError) as found:
        Workload.model_validate(workload(**changed))
    assert why in str(found.value)


def test_versions_have_their_words_and_rows() -> None:
    some = Workload.model_validate(
        workload(
            operations={"list-versions": 1, "read-version": 1, "overwrite": 1, "delete": 1},
            listing={"page": 5},
        )
    )
    assert some.sent("read-version", "swift") == "GET ?version-id, any version"
    assert some.sent("versions-page", "s3") == "GET ?versions&max-keys=5"
    assert parts_of(some.operations)[:2] == ("list-versions", "versions-page")
    assert some.needs_objects
    without = Workload.model_validate(workload(versions=None, operations={"overwrite": 1}))
    assert without.needs_objects
    assert not without.deletes


def test_only_the_engine_keeps_versions() -> None:
    some = Workload.model_validate(workload(operations={"read": 1, "write": 1}))
    assert kinds.unfit("locust", some, "swift") == ()
    assert kinds.unfit("locust", some, "object-server") == ("object servers have no versions",)
    faults = kinds.unfit("cosbench", some, "s3")
    assert "COSBench does not support versions: leave `versions` out" in faults
    given = {"name": "s", "about": "a", "users": "sdk"}
    with pytest.raises(ValidationError, match="versions of some: only the engine knows them"):
        Suite.model_validate({**given, "workloads": [workload(operations={"read": 1})]})
