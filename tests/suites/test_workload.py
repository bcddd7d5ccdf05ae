"""What a workload may say of age, faults, encryption, signing, versions and parameters."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from made_rows import made_workload, plan_of
from tests.suites.one_write import GOOD, suite_of
from weighbridge.common.document import DocumentError
from weighbridge.common.endpoint import Signing
from weighbridge.drivers import kind as kinds
from weighbridge.suites import (
    UNSIGNED,
    Age,
    Fault,
    Suite,
    Workload,
    encryption_needs,
    loader,
    parts_of,
    signing_needs,
)
from weighbridge.suites.tuning import Parameter, Range, show_setting


def age(**keys: Any) -> Age:
    return Age.model_validate({"fill": "5%", **keys})


def test_fill_is_a_share_of_the_disks_or_bytes_of_objects() -> None:
    assert age(fill="5%").fill == pytest.approx(0.05)
    assert age(fill="2GB").fill == 2 * 10**9
    assert age(size=1000).count(2e6) == 100
    assert age(fill="1MB", size=1000).count(None) == 1000
    with pytest.raises(ValueError, match="unknown size"):
        age().count(None)


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"fill": "90%"}, "144%"),
        ({"fill": "60%", "churn": 3, "share": "20%"}, "at most 85%"),
        ({"fill": "0%"}, "above 0"),
        ({"fill": 0}, "above 0"),
        ({"fill": 10**400}, "at most 1024 TiB of objects are written"),
        ({"fill": "5 %%"}, "not a share"),
        ({"fill": "much"}, "not a quantity"),
        ({"share": "100%"}, "less than 1"),
        ({"share": 0}, "greater than 0"),
        ({"size": 0}, "fill nothing"),
        ({"round": 3}, "round"),
    ],
)
def test_an_impossible_fill_or_churn_is_refused(keys: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        age(**keys)


def test_every_object_ever_written_has_its_own_number() -> None:
    one = age(churn=3, share="20%", containers=4, size={"uniform": [4096, 8192]})
    assert one.turnover(101) == 20
    assert one.workload(101).objects.count >= 101 + 3 * 20
    assert one.workload(101).objects.containers == 4


def test_a_suite_keeps_its_age_through_json_and_command_line_changes() -> None:
    plain = plan_of(made_workload(1)).suite.model_dump()
    for fill in ("5%", "2GB"):
        suite = Suite.model_validate({**plain, "age": {"fill": fill}})
        assert Suite.model_validate_json(suite.model_dump_json()) == suite
        assert suite.changed(repeats=2).age == suite.age == age(fill=fill)


WORKLOAD = {
    "name": "host-dies",
    "objects": {"size": "4KiB"},
    "operations": {"read": 1},
    "workers": [8],
    "runtime": "100s",
}


def workload(fault: object, **more: object) -> Workload:
    return Workload.model_validate({**WORKLOAD, "fault": fault, **more})


def test_a_fault_says_what_how_and_when() -> None:
    fault = workload({"at": "30s", "kill": "store-3/osd.2", "back": "1.5m"}).fault
    assert isinstance(fault, Fault)
    assert (fault.at, fault.back, fault.last_s) == (30, 90, 90)
    assert (fault.way, fault.what) == ("kill", "store-3/osd.2")
    assert fault.words == "kill store-3/osd.2 at 30 s, back at 90 s"
    for way, what in (
        ("unplug", "store-3"),
        ("fail", "store-3/wb0"),
        ("fail", "storage-disk"),
        ("silence", "storage-host"),
    ):
        found = workload({"at": "30s", way: what}).fault
        assert found is not None
        assert (found.way, found.what) == (way, what)
        assert found.words == f"{way} {what} at 30 s, not back"


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ({"at": "30s"}, "set one of kill, silence, unplug, fail"),
        ({"at": "30s", "fail": "store-3"}, "`fail` is for disks"),
        ({"at": "30s", "fail": "storage-host"}, "`fail` is for disks"),
        ({"at": "30s", "kill": "storage-disk"}, "kill: storage-disk: `fail` is for disks"),
        ({"at": "30s", "kill": "store-3", "silence": "store-3"}, "set one of"),
        ({"at": "30s", "silence": "store-3/osd.2"}, "is a daemon, and its host would answer"),
        ({"at": "30s", "unplug": "store-3/osd.2"}, "unplug: store-3/osd.2 is a daemon"),
        ({"at": "30s", "silence": "gateway-daemon"}, "is a daemon, and its host would answer"),
        ({"at": "30s", "kill": "store-3", "back": "30s"}, "is not after the fault at 30s"),
        ({"at": "2s", "kill": "store-3"}, "greater than or equal to 5"),
        ({"at": "30s", "kill": "store 3"}, "match"),
        ({"at": "96s", "kill": "store-3"}, "the window ends at 100 s"),
        ({"at": "30s", "kill": "store-3", "back": "2m"}, "the window ends at 100 s"),
    ],
)
def test_a_fault_that_cannot_be_seen_is_refused(fault: object, why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        workload(fault)


@pytest.mark.parametrize(
    ("load", "more", "why"),
    [
        (
            {"rate_per_s": 100, "overload": {"within": "1s"}},
            {},
            "cannot be combined with `overload`",
        ),
        ({"operations": {"delete": 1}}, {}, "only deletes ends when no objects are left"),
        ({}, {"users": "sdk"}, "only the engine measures how long its workers wait"),
        ({}, {"cache": "every 10s"}, "hosts that are gone have no caches to drop"),
    ],
)
def test_a_fault_needs_a_load_that_goes_on_the_engine_and_caches_that_are_kept(
    load: dict[str, object], more: dict[str, object], why: str
) -> None:
    faulty = {**WORKLOAD, "fault": {"at": "30s", "kill": "store-3"}}
    given = {"name": "trial", "about": "A trial", "workloads": [faulty]}
    assert Suite.model_validate(given)
    with pytest.raises(ValidationError, match=why):
        Suite.model_validate({**given, "workloads": [{**faulty, **load}], **more})


BOTH = "    encryption: [none, sse-c]\n    signing: [{}, {payload: signed}]\n"


def test_lists_of_two_factors_stand_for_each_pair() -> None:
    suite = suite_of(GOOD + BOTH)
    assert [one.name for one in suite.workloads] == [
        f"write-{signed}-{kept}" for signed in ("unsigned", "signed") for kept in ("plain", "sse-c")
    ]
    assert [one.encrypted for one in suite.workloads] == ["none", "sse-c"] * 2
    words = suite.encryption_words
    assert "write-signed-sse-c: with a key that each request brings (SSE-C)" in words
    assert "write-signed-plain: not asked for" in words
    assert Suite.model_validate_json(suite.model_dump_json()) == suite
    assert encryption_needs("sse-s3") == ("sse-s3",)


def test_faults_after_such_lists_have_their_own_place(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    again = GOOD[GOOD.index("  - name") :].replace("name: write", "name: large")
    path.write_text(GOOD + BOTH + again.replace("4KiB", "6GB"))
    with pytest.raises(DocumentError, match=r"large\.yaml:13:21: .*at most 5 GB"):
        loader.load(path)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("encryption: sse-kms", "encryption"),
        ("encryption: [sse-c, sse-c]", "two workloads are named write-sse-c"),
        ("encryption: []", "encryption"),
        ("encryption: sse-c\nusers: sdk", "encryption of write: only the engine asks for it"),
        ("encryption: sse-c\n    signing: {auth: query}", "needs `auth: header`"),
        ("encryption: [none, sse-c]\n    signing: [{}, {auth: none}]", "needs `auth: header`"),
        ("signing: {payload: trailer}", "a trailer is a checksum: say which"),
        ("signing: {payload: signed, auth: query}", "with `auth: query` the payload is unsigned"),
        ("signing: {checksum: crc32, auth: none}", "with `auth: none` the payload is unsigned"),
        ("signing: {payload: hashed}", "payload"),
        ("signing: {checksum: md5}", "checksum"),
        ("signing: [{}, {}]", "two workloads are named write-unsigned"),
        ("signing: []", "signing"),
        ("signing: sdk-default", "sdk-default is for `users: sdk`"),
        ("signing: {payload: signed}\nusers: sdk", "SDKs sign in their own way; set sdk-default"),
    ],
)
def test_what_cannot_be_encrypted_or_signed_so_is_refused_with_its_place(
    text: str, fault: str
) -> None:
    with pytest.raises(DocumentError) as faults:
        suite_of(f"{GOOD}    {text}\n")
    assert fault in str(faults.value)
    assert "trial.yaml:" in str(faults.value)


PLAIN_ONLY = (
    *("copy", "read-if-match", "read-if-none-match", "update-metadata"),
    *("write-if-none-match", "rewrite-if-none-match"),
)


@pytest.mark.parametrize("operation", PLAIN_ONLY)
def test_operations_whose_objects_stay_plain_are_refused(operation: str) -> None:
    text = GOOD.replace("write: 1", f"{operation}: 1")
    suite_of(text)
    with pytest.raises(DocumentError, match=f"{operation} is sent without it only"):
        suite_of(f"{text}    encryption: sse-c\n")


LIST = "    signing: [{}, {payload: trailer, checksum: crc64nvme}, {auth: query}, {auth: none}]\n"


def test_requests_are_signed_without_their_payload_by_default() -> None:
    [workload] = suite_of(GOOD).workloads
    assert (workload.name, workload.signing, workload.signed) == ("write", UNSIGNED, UNSIGNED)
    assert suite_of(GOOD).signing_words == "unsigned payload"
    assert suite_of(GOOD.replace("[s3]", "[swift]")).signing_words == ""


def test_a_list_stands_for_a_workload_each() -> None:
    suite = suite_of(GOOD + LIST)
    ways = ("unsigned", "trailer-crc64nvme", "presigned", "anonymous")
    assert [one.name for one in suite.workloads] == [f"write-{way}" for way in ways]
    assert suite.workloads[1].signing == Signing(payload="trailer", checksum="crc64nvme")
    first = suite.workloads[0]
    for one in suite.workloads:
        assert one.model_copy(update={"name": first.name, "signing": UNSIGNED}) == first
    assert "write-presigned: presigned URLs, unsigned payload" in suite.signing_words
    assert Suite.model_validate_json(suite.model_dump_json()) == suite
    assert suite.changed(repeats=3).workloads == suite.workloads


def test_a_name_that_would_get_too_long_is_refused() -> None:
    with pytest.raises(DocumentError, match="longer than 40 characters; choose a shorter name"):
        suite_of(GOOD.replace("write\n", f"{'w' * 30}\n") + LIST)


def test_sdk_users_sign_as_their_sdk_does() -> None:
    sdk = f"users: sdk\n{GOOD}"
    assert suite_of(sdk).signing_words.startswith("as boto3 does, without the checksums")
    both = suite_of(f"{sdk}    signing: [{{}}, sdk-default]\n")
    assert [one.name for one in both.workloads] == ["write-unsigned", "write-sdk-default"]
    labels = [both.signing_label(one) for one in both.workloads]
    assert labels == ["sdk-without-checksums", "sdk-default"]


def test_it_is_known_what_not_every_store_takes() -> None:
    def needs(**signing: str) -> tuple[str, ...]:
        return Signing.model_validate(signing).needs

    assert needs() == needs(payload="signed") == needs(checksum="crc32") == ()
    assert needs(payload="chunks") == ("signed chunks",)
    assert needs(payload="chunks", checksum="crc32") == ("signed chunks", "trailers")
    assert needs(payload="trailer", checksum="crc32") == ("trailers",)
    assert needs(auth="query") == ()
    assert needs(auth="none") == ("anonymous requests",)
    assert signing_needs("sdk-default", tls=True) == ("trailers",)
    assert signing_needs("sdk-default", tls=False) == ()


READ = {"read-version": 1}
MULTIPART = {"operations": {"write-multipart": 1}, "multipart": {"part": "8MiB"}}


def versions_workload(**changed: Any) -> dict[str, Any]:
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
        Workload.model_validate(versions_workload(**changed))
    assert why in str(found.value)


def test_versions_have_their_words_and_rows() -> None:
    some = Workload.model_validate(
        versions_workload(
            operations={"list-versions": 1, "read-version": 1, "overwrite": 1, "delete": 1},
            listing={"page": 5},
        )
    )
    assert some.sent("read-version", "swift") == "GET ?version-id, any version"
    assert some.sent("versions-page", "s3") == "GET ?versions&max-keys=5"
    assert parts_of(some.operations)[:2] == ("list-versions", "versions-page")
    assert some.needs_objects
    without = Workload.model_validate(versions_workload(versions=None, operations={"overwrite": 1}))
    assert without.needs_objects
    assert not without.deletes


def test_only_the_engine_keeps_versions() -> None:
    some = Workload.model_validate(versions_workload(operations={"read": 1, "write": 1}))
    assert kinds.unfit("locust", some, "swift") == ()
    assert kinds.unfit("locust", some, "object-server") == ("object servers have no versions",)
    faults = kinds.unfit("cosbench", some, "s3")
    assert "COSBench does not support versions: leave `versions` out" in faults
    given = {"name": "s", "about": "a", "users": "sdk"}
    with pytest.raises(ValidationError, match="versions of some: only the engine knows them"):
        Suite.model_validate({**given, "workloads": [versions_workload(operations={"read": 1})]})


def test_integers_too_large_for_floats_are_distinguished() -> None:
    values = [10**400, 10**400 + 1]
    assert len(Parameter.model_validate({"key": "radosgw.threads", "values": values}).levels) == 2
    with pytest.raises(ValueError, match="the same value twice"):
        Parameter.model_validate({"key": "radosgw.threads", "values": [10**400, 10**400]})


def test_a_default_may_differ_by_release() -> None:
    one = Parameter(
        key="options.client.rgw_bucket_index_max_aio",
        values=(64,),
        default={"ceph-14": 8, "ceph-16": 128},
    )
    known = {"ceph-14": 8, "ceph-16": 128, "ceph-18": None}
    assert {release: one.default_at(release) for release in known} == known
    assert Parameter(key="radosgw.threads", values=(64,), default=512).default_at("ceph-18") == 512


NUMBERS = st.one_of(
    st.integers(-(10**12), 10**12), st.floats(-1e9, 1e9, allow_nan=False, allow_infinity=False)
)


@given(
    ends=st.tuples(NUMBERS, NUMBERS),
    steps=st.integers(2, 100),
    scale=st.sampled_from(["linear", "log"]),
)
@example(ends=(5e-324, 1.0), steps=3, scale="log")
def test_values_of_a_range_rise_from_end_to_end(
    ends: tuple[float, float], steps: int, scale: str
) -> None:
    low, high = ends
    if low >= high or (scale == "log" and low <= 0):
        with pytest.raises(ValidationError):
            Range.model_validate({"low": low, "high": high, "steps": steps, "scale": scale})
        return
    one = Range.model_validate({"low": low, "high": high, "steps": steps, "scale": scale})
    values = one.values
    assert (values[0], values[-1]) == (low, high)
    assert 2 <= len(values) <= steps
    assert all(low <= value <= high for value in values)
    assert list(values) == sorted(set(values))
    assert not one.is_integral or all(isinstance(value, int) for value in values)


def test_sizes_of_a_log_range_are_whole_bytes_at_equal_factors() -> None:
    one = Range(low="64KiB", high="16MiB", steps=5, scale="log")
    assert one.values == (2**16, 2**18, 2**20, 2**22, 2**24)
    assert Range(low=1, high=3, steps=100).values == (1, 2, 3)
    assert all(
        map(math.isclose, Range(low=0.5, high=8.0, steps=5, scale="log").values, (0.5, 1, 2, 4, 8))
    )


@pytest.mark.parametrize(
    ("value", "words"),
    [
        *((True, "on"), (False, "off"), (None, "unset"), (0.5, "0.5"), (1800.0, "1800")),
        *((512, "512"), (4096, "4096"), (65000, "65000")),
        *((65536, "64 KiB"), (4194304, "4 MiB"), ("64MiB", "64MiB")),
    ],
)
def test_values_are_shown_as_people_write_them(
    value: str | float | bool | None, words: str
) -> None:
    assert show_setting(value) == words
