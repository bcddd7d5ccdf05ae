from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from made_rows import made_workload
from weighbridge.common.document import Document, DocumentError
from weighbridge.common.errors import UsageError
from weighbridge.drivers.kind import KINDS
from weighbridge.suites import (
    OPERATIONS,
    PLAIN_OPERATIONS,
    TRAITS,
    Objects,
    Suite,
    Uniform,
    Workload,
    loader,
    parts_of,
)
from weighbridge.suites.overrides import Overrides

GOOD = """
name: trial
about: A trial
workloads:
  - name: mixed
    objects: {size: 4KiB, containers: 2, per_container: 10}
    operations: {read: 80, write: 20}
    workers: [1, 8]
    runtime: 20s
"""


COUNTS = "containers: 2, per_container: 10}"


def suite_of(text: str) -> Suite:
    return Document("trial.yaml", text).into(Suite)


def test_every_shipped_suite_is_valid() -> None:
    shipped = loader.shipped()
    assert shipped
    for name, path in shipped.items():
        assert loader.load(path).name == name


def test_no_shipped_suite_says_of_itself_how_often_it_is_measured() -> None:
    """`--repeats`, `--budget` and `resume` change it, and results say it."""
    for path in loader.shipped().values():
        about = loader.load(path).about
        assert not re.search(r"\b(once|twice|times|repeats?|claims?)\b", about), path.name


def test_a_missing_file_in_another_folder_is_no_shipped_suite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("/quick.yaml", "elsewhere/quick.yaml"):
        with pytest.raises(UsageError, match=f"no suite '{name}'"):
            loader.find(name)
    for name in ("quick", "quick.yaml", "suites/quick.yaml"):
        assert loader.find(name) == loader.shipped()["quick"]


def test_command_line_options_replace_values_of_the_suite() -> None:
    changed = suite_of(GOOD).changed(repeats=3, driver="locust,cosbench", layers=["rados", "disk"])
    assert (changed.repeats, changed.driver) == (3, "locust,cosbench")
    assert changed.layers == ("rados", "disk")
    assert suite_of(GOOD).changed() == suite_of(GOOD)
    with pytest.raises(UsageError, match="did you mean 'rados'"):
        suite_of(GOOD).changed(layers=["radso"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("workers: [1, 8]", "workers: [1, 0]"), "greater than or equal to 1"),
        (("workers: [1, 8]", "workers: []"), "at least 1 item"),
        (("workers: [1, 8]", "workers: [8, 8]"), "names the same count twice"),
        (("runtime: 20s", "runtime: 0s"), "runtime must be above 0s"),
        (("read: 80", "raed: 80"), "raed"),
        (("read: 80", "read: 0"), "greater than 0"),
        (("4KiB", "{uniform: [8KiB, 4KiB]}"), "is above the largest"),
        (("4KiB", "6TiB"), "less than or equal to"),
        (("name: mixed", "name: Mixed Case"), "lower-case letters"),
        (("per_container: 10}", "per_container: 1000000000000}"), "less than or equal to 1000000"),
        (("containers: 2,", "containers: 1000000000000,"), "less than or equal to 100000000"),
        ((COUNTS, "containers: 2000, per_container: 100000}"), "200,000,000 objects; at most"),
        ((f"4KiB, {COUNTS}", "5TiB, containers: 1000, per_container: 10}"), "at most 1024 TiB"),
        (("workers: [1, 8]", f"workers: {list(range(1, 102))}"), "at most 100 items"),
        (
            ("about: A trial", "about: A trial\nage: {fill: 5TiB, size: 1000}"),
            "these are 8,796,093,024 objects",
        ),
        (("about: A trial", "about: A trial\ncache: sometimes"), "cache"),
        (("about: A trial", "about: A trial\nbounds: {error_share: 2}"), "less than or equal to 1"),
        (("about: A trial", "about: A trial\ntimeout: 0s"), "greater than or equal to 1"),
        (("about: A trial", "about: A trial\ntimeout: 2h"), "less than or equal to 3600"),
        (("about: A trial", "about: A trial\ntimeout: 90"), "write 90s"),
    ],
)
def test_a_fault_of_a_suite_is_reported_with_its_position(
    change: tuple[str, str], words: str
) -> None:
    with pytest.raises(DocumentError, match=r"trial\.yaml:\d+:\d+: ") as error:
        suite_of(GOOD.replace(*change))
    assert words in str(error.value)


@pytest.mark.parametrize(
    "size", ["-4", "[1, 2]", "4XB", "{uniform: [1, 2, 3]}", "{uniform: [8KiB, 4KiB]}"]
)
def test_a_fault_of_a_value_of_several_types_shows_no_internal_names(size: str) -> None:
    with pytest.raises(DocumentError, match=r"objects\.size") as error:
        suite_of(GOOD.replace("4KiB", size))
    for word in ("function", "partial", " at 0x", "_ordered", "parse_bytes"):
        assert word not in str(error.value)


def test_verify_is_a_percentage_or_yes_or_no() -> None:
    assert made_workload(1).verify == 0.01
    for given, share in (("5%", 0.05), (True, 1), (False, 0), (0, 0)):
        workload = made_workload(1, verify=given)
        assert workload.verify == share
        assert Workload.model_validate_json(workload.model_dump_json()) == workload
    for given, words in ((1, "1% or 100%"), ("101%", "or equal to 1"), ("some%", "not a share")):
        with pytest.raises(ValidationError, match=words):
            made_workload(1, verify=given)


def test_a_bucket_name_too_long_for_s3_is_reported_at_the_workloads_name(tmp_path: Path) -> None:
    path = tmp_path / "long.yaml"
    many = GOOD.replace(COUNTS, "containers: 100000000, per_container: 1}")
    path.write_text(many.replace("mixed", "m" * 40))
    with pytest.raises(DocumentError, match=r"long\.yaml:5:11: .* longer than S3's 63 characters"):
        loader.load(path)


def test_objects_know_their_mean_and_their_largest_size() -> None:
    assert Objects(size=Uniform(uniform=("1KB", "3KB"))).mean_bytes == 2000
    weights = [{"size": "1KB", "weight": 3}, {"size": ["1KB", "9KB"], "weight": 1}]
    bars = Objects.model_validate({"size": {"histogram": weights}})
    assert bars.mean_bytes == (3 * 1000 + 5000) / 4
    assert bars.largest_bytes == 9000
    assert Objects(size="1MB").mean_bytes == Objects(size="1MB").largest_bytes == 10**6


def test_a_suite_names_one_driver_or_two() -> None:
    assert suite_of(GOOD).drivers == ("locust",)
    assert suite_of(f"{GOOD}driver: cosbench, locust\n").drivers == ("cosbench", "locust")


@pytest.mark.parametrize(
    ("driver", "why"),
    [
        ("locusts", "trial.yaml:10:9: driver: no driver 'locusts' (did you mean 'locust'?)"),
        ("locust,locust", "trial.yaml:10:9: driver: name one driver, or two"),
        ("locust,cosbench,fio", "trial.yaml:10:9: driver: name one driver, or two"),
    ],
)
def test_a_driver_that_is_not_installed_is_refused_in_a_file_and_on_a_command_line(
    driver: str, why: str
) -> None:
    with pytest.raises(DocumentError) as faults:
        suite_of(f"{GOOD}driver: {driver}\n")
    assert why in str(faults.value)
    with pytest.raises(UsageError, match="driver"):
        suite_of(GOOD).changed(driver=driver)


def test_reading_a_run_does_not_need_its_driver() -> None:
    suite = Suite.model_validate({**suite_of(GOOD).model_dump(), "driver": "strange"})
    assert suite.drivers == ("strange",)


def test_connections_are_kept_by_default_and_said_by_workload_where_they_differ() -> None:
    suite = suite_of(GOOD)
    again = suite.workloads[0].model_copy(update={"name": "again", "connections": "per-request"})
    both = suite.model_copy(update={"workloads": (*suite.workloads, again)})
    assert suite.connection_words == "kept by each worker"
    assert both.connection_words == (
        "mixed: kept by each worker; again: a new one for every request"
    )
    often = suite_of(GOOD + "    connections: {reconnect_every: 100}\n")
    assert often.connection_words == "a new one after every 100 requests of a worker"


def test_connections_that_do_not_exist_or_sdks_would_not_make_are_refused() -> None:
    for written in ("sometimes", "{reconnect_every: 1}", "{every: 5}", "5"):
        with pytest.raises(DocumentError):
            suite_of(GOOD + f"    connections: {written}\n")
    with pytest.raises(DocumentError, match="connections of mixed"):
        suite_of(f"users: sdk\n{GOOD}    connections: per-request\n")


@pytest.mark.parametrize(
    "changed", [{"rate_per_s": None}, {"workers": (1, 2)}, {"overload": {"within": "0s"}}]
)
def test_overload_needs_a_rate_one_worker_count_and_a_time_above_zero(
    changed: dict[str, object],
) -> None:
    given = {"workers": (8,), "rate_per_s": 100, "overload": {"within": "1s"}}
    assert made_workload(**given).overload is not None
    with pytest.raises(ValueError, match="overload"):
        made_workload(**{**given, **changed})


MIXED = """
name: mixed
about: x
api: [s3]
control: [small]
workloads:
  - name: small
    objects: {size: 4KiB, containers: 2, per_container: 1000}
    operations: {read: 80, write: 20}
    workers: [1]
    runtime: 2s
  - name: large
    objects: {size: 8MB, containers: 1, per_container: 20}
    operations: {read: 1}
    workers: [4]
    runtime: 3s
    warmup: 1s
"""


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    path = tmp_path / "mixed.yaml"
    path.write_text(MIXED)
    return path


def refused(path: Path, **given: str) -> list[str]:
    with pytest.raises(DocumentError) as error:
        loader.load_changed(path, Overrides(**given))
    return [str(one).splitlines()[0] for one in error.value.faults]


def test_without_overrides_a_suite_and_its_text_are_those_of_the_file(mixed: Path) -> None:
    suite, text = loader.load_changed(mixed, Overrides())
    assert suite == loader.load(mixed)
    assert text == MIXED


def test_worker_counts_windows_and_apis_replace_those_of_every_workload(mixed: Path) -> None:
    given = Overrides(workers="1, 16", duration="30s", warmup="9s", api="swift,s3")
    suite, _ = loader.load_changed(mixed, given)
    assert [one.workers for one in suite.workloads] == [(1, 16), (1, 16)]
    assert [(one.runtime, one.warmup) for one in suite.workloads] == [(30.0, 9.0)] * 2
    assert suite.api == ("swift", "s3")
    assert [one.name for one in suite.workloads] == ["small", "large"]
    assert suite.about.endswith("--workers 1, 16 --duration 30s --warmup 9s --api swift,s3")


def test_there_is_one_workload_for_each_size_and_operation(mixed: Path) -> None:
    suite, _ = loader.load_changed(mixed, Overrides(sizes="64k,8M,1MiB", mix="read,write"))
    found = {one.name: (one.objects.size, dict(one.operations)) for one in suite.workloads}
    assert found == {
        f"{operation}-{name}": (size, {operation: 100})
        for operation in ("read", "write")
        for name, size in (("64kb", 64_000), ("8mb", 8_000_000), ("1mib", 2**20))
    }


def test_what_is_not_set_is_that_of_the_most_similar_workload(mixed: Path) -> None:
    suite, _ = loader.load_changed(mixed, Overrides(sizes="64k"))
    # Of one operation alone is more like it than of the same size among others.
    assert {one.name: (one.workers, one.warmup) for one in suite.workloads} == {
        "read-64kb": ((4,), 1.0),
        "write-64kb": ((1,), 5.0),
    }
    by_operation, _ = loader.load_changed(mixed, Overrides(mix="read"))
    assert [one.name for one in by_operation.workloads] == ["read-4kib", "read-8mb"]


def test_the_control_is_of_what_replaces_its_workloads_else_of_all(mixed: Path) -> None:
    kept, _ = loader.load_changed(mixed, Overrides(sizes="64k"))
    assert kept.control == ("write-64kb",)
    lost, _ = loader.load_changed(mixed, Overrides(mix="read", sizes="8M"))
    assert lost.control is True


def test_objects_of_another_size_are_no_more_than_can_be_written_in_time(mixed: Path) -> None:
    suite, _ = loader.load_changed(mixed, Overrides(sizes="1k,64M,1G", mix="write"))
    assert [one.objects.per_container for one in suite.workloads] == [1000, 4, 4]


def test_the_text_of_a_changed_suite_is_that_suite(mixed: Path, tmp_path: Path) -> None:
    given = Overrides(sizes="64k,8M", mix="read,write", workers="1,16", duration="30s")
    suite, text = loader.load_changed(mixed, given)
    assert loader.parse("again.yaml", text) == suite
    assert "&" not in text


@pytest.mark.parametrize("name", sorted(set(loader.shipped()) - {"degrade-lab", "overload"}))
def test_windows_and_workers_of_shipped_suites_can_be_set(name: str) -> None:
    suite, text = loader.load_changed(loader.shipped()[name], Overrides(workers="2", duration="3m"))
    assert {(one.workers, one.runtime) for one in suite.workloads} == {((2,), 180.0)}
    assert loader.parse("again.yaml", text) == suite


def test_all_that_is_wrong_is_reported_where_it_was_given(mixed: Path) -> None:
    size, operation = refused(mixed, sizes="4k,64q", mix="reed")
    assert size.startswith("--sizes:1:4: '64q' is not a quantity such as 4KiB or 1MB (units: b, ")
    assert operation == "--mix:1:1: no operation 'reed' (did you mean 'read'?)"
    api, workers, duration, warmup = refused(
        mixed, workers="1,0", duration="30", warmup="9", api="s4"
    )
    assert workers == "--workers:1:1: workers.1: Input should be greater than or equal to 1"
    assert duration.startswith("--duration:1:1: runtime: '30' is not a quantity such as 20s")
    assert warmup.startswith("--warmup:1:1: warmup: '9' is not a quantity such as 20s")
    assert api.startswith("--api:1:1: api.0: ")
    (twice,) = refused(mixed, sizes="64k,64kB")
    assert twice == "--sizes:1:5: 64kB is there twice"
    assert refused(mixed, mix="read,read") == ["--mix:1:6: read is there twice"]
    for given in ({"sizes": "4k"}, {"mix": "read,write"}, {}):
        (fault,) = refused(mixed, workers="1,2", duration="0s", **given)
        assert fault == "--duration:1:1: runtime must be above 0s"
        (fault,) = refused(mixed, workers="1,1", duration="10s", **given)
        assert fault.startswith("--workers:1:1: workers names the same count twice")
    (fault,) = refused(mixed, mix="read-range")
    assert fault.startswith("--mix:1:1: ")
    assert "read-range needs `range: {bytes: 64KiB, at: random}`" in fault


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
