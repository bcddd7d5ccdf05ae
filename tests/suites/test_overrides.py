from pathlib import Path

import pytest

from weighbridge.common.document import DocumentError
from weighbridge.suites import loader
from weighbridge.suites.overrides import Overrides

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


def test_what_an_operation_lacks_is_reported_where_it_was_given(mixed: Path) -> None:
    (fault,) = refused(mixed, mix="read-range")
    assert fault.startswith("--mix:1:1: ")
    assert "read-range needs `range: {bytes: 64KiB, at: random}`" in fault
