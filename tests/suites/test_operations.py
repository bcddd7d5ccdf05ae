"""Operations of workloads and their options: what is refused, and what is said of them."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from weighbridge.drivers.kind import KINDS
from weighbridge.suites import OPERATIONS, PLAIN_OPERATIONS, TRAITS, Suite, Workload, parts_of


def workload(operations: list[str], **changed: Any) -> Workload:
    known: dict[str, Any] = {
        "name": "some",
        "objects": {"size": "20MiB"},
        "operations": dict.fromkeys(operations, 1),
        "workers": [4],
        "runtime": "3s",
    }
    return Workload.model_validate({**known, **changed})


RANGE = {"range": {"bytes": "64KiB", "at": "random"}}
MULTIPART = {"multipart": {"part": "8MiB"}}


@pytest.mark.parametrize(
    ("operations", "changed", "why"),
    [
        (["read-range"], {}, "read-range needs `range: {bytes: 64KiB, at: random}`"),
        (["write-multipart"], {}, "write-multipart needs `multipart: {part: 8MiB}`"),
        (["read"], RANGE, "`range` is for read-range"),
        (["read"], MULTIPART, "`multipart` is for write-multipart and read-part"),
        (["read-part"], {}, "read-part needs `multipart: {part: 8MiB}`"),
        (["read-part"], {"multipart": {"part": "8MiB", "at_once": 2}}, "at_once is for"),
        (["read-part"], {"multipart": {"part": "20MiB"}}, "an object of 20 MiB is one part"),
        (["read-part"], {**MULTIPART, "objects": {"size": "8GiB"}}, "more than 1000 parts"),
        (["read-part", "read-if-match"], MULTIPART, "read-part beside read-if-match"),
        (["read-part", "copy"], MULTIPART, "read-part beside copy"),
        (["read-part"], {**MULTIPART, "encryption": "sse-c"}, "read-part is sent without it only"),
        (["read-part"], {**MULTIPART, "signing": {"auth": "query"}}, "read-part is signed in a"),
        (["list"], {"listing": {"page": 10}}, "`listing` is for list-all"),
        (["read-range"], {**RANGE, "objects": {"size": "0B"}}, "at least 1 byte"),
        (["write-multipart"], {"multipart": {"part": "1MiB"}}, "5242880"),
        (["write-multipart"], {"multipart": {"part": "8MiB", "at_once": 65}}, "64"),
        (["write-multipart"], {**MULTIPART, "objects": {"size": "8GiB"}}, "more than 1000 parts"),
        (["write-multipart", "write"], MULTIPART, "how an object is deleted"),
        (["write-multipart", "copy"], MULTIPART, "how an object is deleted"),
        (["write-multipart", "write-if-none-match"], MULTIPART, "beside write-if-none-match"),
        (["tag"], {"signing": {"payload": "signed"}}, "tag is signed in a header"),
        (["delete-many", "read"], {}, "delete-many deletes the objects that read would need"),
        (["delete-many", "delete"], {}, "delete-many deletes"),
        (["delete-many"], {"delete_many": 1001}, "1000"),
        (["list-all"], {"listing": {"page": 1001}}, "1000"),
        (
            ["read-if-match"],
            {"objects": {"size": {"uniform": ["1KB", "2KB"]}}},
            "the MD5 is known only for objects of fixed sizes",
        ),
        (["write-part"], {}, "write-part is counted beside write-multipart"),
        (["read-range"], {"range": {"bytes": 0}}, "1"),
        (["read-range"], {"range": {"bytes": 5, "at": "end"}}, "sequential"),
    ],
)
def test_what_an_operation_cannot_be_is_refused(
    operations: list[str], changed: dict[str, Any], why: str
) -> None:
    with pytest.raises(ValidationError) as found:
        workload(operations, **changed)
    assert why in str(found.value)


def test_each_operation_has_words_for_both_apis() -> None:
    some = workload(["read-range", "list-all"], **RANGE)
    assert some.sent("read-range", "s3") == "GET, Range: 64 KiB, any part"
    assert some.sent("list-page", "swift") == "GET ?limit=1000"
    assert some.sent("read", "rados") == ""
    words = {some.sent(one, api) for one in TRAITS for api in TRAITS[one].sent}
    assert all(words)
    at_once = workload(["write-multipart"], multipart={"part": "8MiB", "at_once": 4})
    assert "PUT ?partNumber of 8 MiB 4 at once," in at_once.sent("write-multipart", "s3")
    one_part = workload(["read-part"], **MULTIPART)
    assert one_part.sent("read-part", "s3") == "GET ?partNumber of 8 MiB"
    assert at_once.sent("write-multipart", "swift").endswith("PUT ?multipart-manifest=put")
    assert {one for one in TRAITS if set(TRAITS[one].sent) != {"s3", "swift"}} == {"tag"}
    paged = {"page": 5, "prefix": "object-1", "delimiter": "-"}
    assert workload(["list-all"], listing=paged).sent("list-page", "s3") == (
        "GET ?list-type=2&max-keys=5&prefix=object-1&delimiter=-"
    )


def test_operations_of_several_requests_have_a_row_for_those_too() -> None:
    some = workload(["write-multipart"], **MULTIPART)
    assert parts_of(some.operations) == ("write-multipart", "write-part")
    assert some.request_bytes("write-part") == 8 * 2**20
    assert some.request_bytes("write-multipart") == 20 * 2**20
    assert workload(["read-part"], **MULTIPART).request_bytes("read-part") == 8 * 2**20
    assert parts_of({"read": 1.0, "list-all": 1.0}) == ("read", "list-all", "list-page")


def test_what_deletes_and_what_needs_objects_is_known() -> None:
    assert workload(["delete-many"]).deletes
    assert not workload(["list-all"]).deletes
    assert not workload(["write-multipart"], **MULTIPART).needs_objects
    assert workload(["copy"]).needs_objects


@pytest.mark.parametrize("operation", sorted(set(OPERATIONS) - PLAIN_OPERATIONS))
def test_drivers_that_do_not_know_an_operation_refuse_it_with_a_sentence(operation: str) -> None:
    options = {"read-range": RANGE, "write-multipart": MULTIPART, "read-part": MULTIPART}
    of_versions = "version" in operation
    own: dict[str, Any] = {"versions": 2} if of_versions else options.get(operation, {})
    some = workload([operation], **own)
    for api in ("s3", "swift"):
        lacked = api not in TRAITS[operation].sent
        said = (f"the {api} API has no {operation}",) if lacked else ()
        assert KINDS["locust"].unfit(some, api) == said
        assert any(
            f"COSBench has no {operation}" in why for why in KINDS["cosbench"].unfit(some, api)
        )
    lacked_too = ", versions" if of_versions else ""
    assert KINDS["locust"].unfit(some, "object-server") == (
        f"object servers have no {operation}{lacked_too}",
    )
    assert KINDS["rados"].unfit(some, "rados")
    suite = {"name": "s", "about": "a", "workloads": [some.model_dump()]}
    assert Suite.model_validate(suite).users == "engine"
    with pytest.raises(ValidationError, match=f"SDK users do not send {operation}"):
        Suite.model_validate({**suite, "users": "sdk"})
