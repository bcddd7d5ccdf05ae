"""Versions: what the engine writes, overwrites and lists."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import pytest

from tests.drivers.conftest import always, until
from tests.drivers.good_answers import (
    BODY,
    answer,
    of_api,
    version_body,
    versions,
    versions_page,
    workload_of,
)

Make = Callable[..., Any]


@pytest.mark.parametrize("mixed", [False, True])
def test_only_a_workload_that_changes_something_may_have_more_versions_than_were_prepared(
    scripted: Make, bench: Make, *, mixed: bool
) -> None:
    def one_more(connection: socket.socket, head: bytes) -> bool:
        if head.startswith(b"PUT"):
            connection.sendall(answer("200 OK", b"", "x-amz-version-id: new"))
            return True
        newest = ("object-0000000000", "v2-20")
        connection.sendall(versions_page("s3", [newest, *versions(0, 20)]))
        return True

    given = {**workload_of("list-versions"), "listing": {"page": 30, "prefix": "", "delimiter": ""}}
    given["operations"] |= {"overwrite": 1.0} if mixed else {}
    engine = bench(scripted(one_more), given)
    engine.engine.add_worker(0, 1, 0)
    which = "done" if mixed else "failed"
    until(lambda: engine.progress[which] >= 4, which)
    assert set(engine.progress["errors"]) == (set() if mixed else {"bad-list"})
    if not mixed:
        assert engine.progress["last_error"].endswith("21 versions or more where only 20 exist")


@pytest.mark.parametrize("api", ["s3", "swift"])
@pytest.mark.parametrize("named_id", [True, False])
def test_a_write_into_a_container_with_versions_must_make_one(
    scripted: Make, bench: Make, api: str, *, named_id: bool
) -> None:
    header = "x-amz-version-id" if api == "s3" else "X-Object-Version-Id"
    more = (f"{header}: 17",) if named_id else ()
    served = scripted(always(answer("201 Created", b"", *more)))
    engine = bench(served, workload_of("overwrite", versions=2), **of_api(api))
    engine.engine.add_worker(0, 1, 0)
    until(lambda: engine.progress["done" if named_id else "failed"] >= 2, "writes")
    assert set(engine.progress["errors"]) == (set() if named_id else {"bad-result"})


def test_each_version_is_written_with_its_own_content_and_the_latest_is_written_again(
    scripted: Make, bench: Make
) -> None:
    served = scripted(always(answer("201 Created", b"", "x-amz-version-id: 17")))
    engine = bench(served, workload_of("overwrite", versions=3))
    for version in range(3):
        engine.engine.prepare(0, 10, 1, 1, version)
        assert engine.finish()["errors"] == {}
    assert served.bodies == [version_body(version) for version in range(3) for _ in range(10)]
    engine.engine.add_worker(0, 1, 0)
    until(lambda: engine.progress["done"] >= 32, "overwrites")
    engine.engine.stop(5.0)
    assert served.bodies[30:32] == [version_body(2)] * 2
    assert len({version_body(0), version_body(1), version_body(2)}) == 3
    assert version_body(0) == BODY


def test_versions_and_ids_that_a_workload_has_not_are_refused(bench: Make, null: Make) -> None:
    engine = bench(null(), workload_of("overwrite", versions=2)).engine
    with pytest.raises(ValueError, match="no such version among 2"):
        engine.prepare(0, 10, 1, 1, 2)
    with pytest.raises(ValueError, match="3 IDs of 20 versions"):
        engine.know_versions(["a", "b", "c"])
    with pytest.raises(ValueError, match="a version without an ID"):
        engine.know_versions([""] * 20)
    for wrong in ({"versions": 0}, {"versions": 101}):
        with pytest.raises(ValueError, match="not 1 to 100"):
            bench(null(), workload_of("overwrite", **wrong))
