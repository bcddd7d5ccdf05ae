"""Objects that are only listed: what a suite may say of them, and which are deleted."""

from __future__ import annotations

from typing import Any

import pytest

from weighbridge.common.document import Document, DocumentError
from weighbridge.drivers.kind import unfit
from weighbridge.suites import Suite, continues, deleted_indexes, loader, remaining, whole

GOOD = """name: trial
about: a
cleanup: with-deployment
workloads:
  - name: list-all
    objects: {size: 0B, containers: 2, per_container: 200}
    operations: {list-all: 1}
    workers: [1]
    runtime: 20s
    listed: {deleted: [0%, 25%, 50%]}
"""
SHARES = "deleted: [0%, 25%, 50%]"


def suite_of(text: str) -> Suite:
    return Document("trial.yaml", text).into(Suite)


def test_a_list_of_shares_stands_for_a_workload_each_on_the_same_objects() -> None:
    suite = suite_of(GOOD)
    first, some, half = suite.workloads
    names = ["list-all", "list-all-25-deleted", "list-all-50-deleted"]
    assert [one.name for one in suite.workloads] == names
    assert [continues(one) for one in suite.workloads] == [False, True, True]
    assert whole(some) == whole(half) == first
    assert [remaining(one).objects.per_container for one in suite.workloads] == [200, 150, 100]
    assert {remaining(one).name for one in suite.workloads} == {"list-all"}
    assert Suite.model_validate_json(suite.model_dump_json()) == suite
    assert suite.changed(repeats=3).workloads == suite.workloads


def test_a_first_share_is_of_the_workloads_own_objects() -> None:
    first, more = suite_of(GOOD.replace(SHARES, "deleted: [10%, 20%]")).workloads
    assert first.name == "list-all"
    assert first.listed is not None
    assert first.listed.of is None
    assert not continues(first)
    assert whole(first) == whole(more) != first
    (alone,) = suite_of(GOOD.replace(SHARES, "deleted: 10%")).workloads
    assert alone.listed is not None
    assert alone.listed.shares == (0.1,)


def test_a_larger_share_deletes_what_a_smaller_one_did_and_more() -> None:
    first, some, half = suite_of(GOOD).workloads
    assert deleted_indexes(first, 7) == ()
    assert len(deleted_indexes(half, 7)) == len(set(deleted_indexes(half, 7))) == 100
    assert deleted_indexes(half, 7)[:50] == deleted_indexes(some, 7)
    assert deleted_indexes(some, 8) != deleted_indexes(some, 7)
    # Neither the first ones nor a run of neighbours.
    assert sorted(deleted_indexes(some, 7)) != list(range(50))
    assert min(deleted_indexes(some, 7)) < 20
    assert max(deleted_indexes(some, 7)) > 180


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("{list-all: 1}", "{list-all: 1, read: 1}", "read would miss objects"),
        ("{list-all: 1}", "{list: 1, delete-many: 1}", "delete-many would miss objects"),
        (SHARES, "deleted: [25%, 0%]", "list ascending shares"),
        (SHARES, "deleted: [25%, 25%]", "list ascending shares"),
        (SHARES, "deleted: 12.5%", "whole per cent"),
        (SHARES, "deleted: 91%", "0.9"),
        (SHARES, "deleted: []", "listed.deleted"),
        ("about: a", "about: a\nusers: sdk", "SDK users"),
        ("runtime: 20s", "runtime: 20s\n    listing: {prefix: object-00}", "leave `prefix`"),
        ("list-all\n", f"{'l' * 40}\n", "longer than 40 characters"),
        (SHARES, "of: other", "no workload 'other' before it"),
    ],
)
def test_what_cannot_be_is_refused(old: str, new: str, why: str) -> None:
    assert old in GOOD
    with pytest.raises(DocumentError) as refused:
        suite_of(GOOD.replace(old, new, 1))
    assert why in str(refused.value)


@pytest.mark.parametrize(
    ("per_container", "share", "why"),
    [
        (1, "deleted: [0%, 25%, 90%]", "no object of a container would be left"),
        (4, "deleted: 10%", "each must delete more than the previous one"),
        (4, "deleted: [0%, 10%]", "each must delete more than the previous one"),
        (4, "deleted: [50%, 55%]", "each must delete more than the previous one"),
    ],
)
def test_each_share_deletes_more_objects_than_the_one_before_and_leaves_some(
    per_container: int, share: str, why: str
) -> None:
    few = GOOD.replace("per_container: 200", f"per_container: {per_container}")
    with pytest.raises(DocumentError, match=why):
        suite_of(few.replace(SHARES, share))


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"objects": {"size": "0B", "per_container": 300}}, "the objects of list-all are others"),
        ({}, "deletes no more than a workload before it"),
    ],
)
def test_workloads_on_the_same_objects_delete_more_and_more(
    changed: dict[str, Any], why: str
) -> None:
    given = suite_of(GOOD).model_dump(mode="json")
    again = {**given["workloads"][1], "name": "again", **changed}
    with pytest.raises(ValueError, match=why):
        Suite.model_validate({**given, "workloads": [*given["workloads"][:2], again]})


def test_faults_of_the_suite_are_shown_at_the_workload_that_lists_shares() -> None:
    write = """  - name: write
    objects: {size: 6GB}
    operations: {write: 1}
    workers: [1]
    runtime: 20s
"""
    document = Document("trial.yaml", GOOD.replace("about: a", "about: a\napi: [s3]") + write)
    (fault,) = loader.faults(document, document.into(Suite))
    assert fault.line == len(GOOD.splitlines()) + 3


def test_cosbench_is_refused_what_it_would_not_delete() -> None:
    (workload,) = suite_of(
        GOOD.replace("{list-all: 1}", "{list: 1}").replace(SHARES, "deleted: 10%")
    ).workloads
    assert "leave out `listed`" in "; ".join(unfit("cosbench", workload, "swift"))
    assert unfit("locust", workload, "swift") == ()
