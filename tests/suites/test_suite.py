from pathlib import Path

import pytest
from pydantic import ValidationError

from made_rows import made_workload
from weighbridge.common.document import Document, DocumentError
from weighbridge.common.errors import UsageError
from weighbridge.suites import Objects, Suite, Uniform, Workload, Zipf, loader

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
        (("name: mixed", "name: Mixed Case"), "pattern"),
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


def test_the_default_timeout_is_60_s() -> None:
    quick = loader.load(loader.find("quick"))
    assert quick.timeout == 60
    assert loader.load(loader.find("large-objects")).timeout == 120
    for given, words in (
        ("0s", "greater than or equal to 1"),
        ("2h", "less than or equal to 3600"),
        (90, "write 90s"),
    ):
        with pytest.raises(ValidationError, match=words):
            Suite.model_validate({**quick.model_dump(), "timeout": given})


def test_an_unknown_suite_and_two_workloads_with_the_same_name_are_refused() -> None:
    again = GOOD + GOOD[GOOD.index("  - name") :]
    with pytest.raises(DocumentError, match="two workloads are named mixed"):
        suite_of(again)
    with pytest.raises(UsageError, match="did you mean 'quick'"):
        loader.find("quik")


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


def test_a_workload_survives_a_json_round_trip() -> None:
    workload = suite_of(GOOD).workloads[0].model_copy(update={"pick": Zipf(zipf=1.1)})
    assert Workload.model_validate_json(workload.model_dump_json()) == workload


def test_a_record_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        suite_of(GOOD).workloads[0].runtime = 1.0  # type: ignore[misc]


@pytest.mark.parametrize(
    ("driver", "drivers"),
    [
        ("locust", ("locust",)),
        ("locust,cosbench", ("locust", "cosbench")),
        ("cosbench, locust", ("cosbench", "locust")),
    ],
)
def test_a_suite_names_one_driver_or_two(driver: str, drivers: tuple[str, ...]) -> None:
    assert suite_of(f"{GOOD}driver: {driver}\n").drivers == drivers


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
    assert Suite.model_validate({**suite_of(GOOD).model_dump(), "driver": "strange"}).drivers == (
        "strange",
    )


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("keep-alive", "kept by each worker"),
        ("per-request", "a new one for every request"),
        ("{reconnect_every: 100}", "a new one after every 100 requests of a worker"),
    ],
)
def test_a_workload_says_how_long_connections_are_kept(written: str, words: str) -> None:
    assert suite_of(GOOD + f"    connections: {written}\n").connection_words == words


def test_connections_are_kept_by_default_and_said_by_workload_where_they_differ() -> None:
    suite = suite_of(GOOD)
    again = suite.workloads[0].model_copy(update={"name": "again", "connections": "per-request"})
    both = suite.model_copy(update={"workloads": (*suite.workloads, again)})
    assert suite.connection_words == "kept by each worker"
    assert both.connection_words == (
        "mixed: kept by each worker; again: a new one for every request"
    )


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
