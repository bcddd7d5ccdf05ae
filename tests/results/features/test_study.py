"""The results of a replayed study: its published lines with ours, and its tables as printed."""

import csv
from collections.abc import Sequence
from pathlib import Path

import pytest

from fake_run import fake_run
from made_rows import altered, made_points, made_row, present
from weighbridge.common.errors import UsageError
from weighbridge.results import derive
from weighbridge.results.features.study import (
    FILE,
    NOT_REPLAYED,
    StudyOutcome,
    StudyRun,
    outcome,
    parameter_table,
    published_lines,
    study_of,
)
from weighbridge.results.figures.summary import Row
from weighbridge.results.run.reading import write_atomically
from weighbridge.results.run.resolved import PlannedHardware, PlannedLayout, ResolvedPlan
from weighbridge.suites import Suite
from weighbridge.suites.studies import Study, loader

STUDIES = {name: loader.load(path)[1] for name, path in loader.shipped().items()}


def plan_of(study: Study) -> ResolvedPlan:
    suite = loader.suite_of(study, "lab")
    scale = study.scales["lab"]
    more = (*scale.beneath, *scale.tools)
    suite = Suite.model_validate({**suite.model_dump(), "workloads": [*suite.workloads, *more]})
    layouts = tuple(PlannedLayout(name=variant.name, gateway="rgw") for variant in study.variants)
    return ResolvedPlan(suite=suite, hardware=PlannedHardware(name="made-up"), layouts=layouts)


def rows_of(study: Study, plan: ResolvedPlan) -> list[Row]:
    """A made-up row for everything measurable; each figure identifies its row."""
    found = []
    beside = {name: one for one in study.scales["lab"].beside for name in one.workloads}
    for number, variant in enumerate(study.variants, start=1):
        for workload in plan.suite.workloads:
            tool = beside.get(workload.name)
            if tool is not None and variant.name not in tool.variants:
                continue
            for operation in workload.operations:
                for workers in workload.workers:
                    value = 1000.0 * number + workers
                    one = made_row(
                        layout=variant.name,
                        api="rados" if tool is None else tool.api,
                        driver="rados" if tool is None else tool.driver,
                        workload=workload.name,
                        operation=operation,
                        object_size_bytes=workload.objects.mean_bytes,
                        workers=workers,
                        throughput_ops_s=value,
                        bandwidth_mb_s=value + 0.25,
                        p90_ms=value + 0.5,
                        max_ms=value + 0.75,
                        mean_ms=value + 0.125,
                        valid=True,
                        points=made_points([value]),
                    )
                    found.append(one)
    return found


def outcome_of(name: str, rows: Sequence[Row] | None = None) -> StudyOutcome:
    study = STUDIES[name]
    plan = plan_of(study)
    return outcome(
        StudyRun(study=study, scale="lab"), plan, rows_of(study, plan) if rows is None else rows
    )


@pytest.mark.parametrize("name", STUDIES)
def test_every_published_line_appears_once_and_with_all_its_figures(name: str) -> None:
    study = STUDIES[name]
    for one, grid in zip(study.published, outcome_of(name).published, strict=True):
        lines = published_lines(one.file)
        assert len(grid.lines) == len(lines) > 0
        assert {column for line in lines for column in line} >= {
            figure.column for figure in one.figures
        }
        columns = [
            number for number, title in enumerate(grid.head) if title.endswith(": published")
        ]
        for line, shown in zip(lines, grid.lines, strict=True):
            expected = [
                None if not line[figure.column] else float(line[figure.column]) * figure.scale
                for figure in one.figures
            ]
            assert [shown[number] for number in columns] == expected
        assert "not comparable" in grid.note
        assert study.source.author in grid.note


@pytest.mark.parametrize(
    ("name", "replayed"),
    [
        ("swift-vs-rgw-read-2014", [30, 6]),
        ("ceph-benchmarks-2012", [11, 4]),
        ("ceph-osd-backends-2016", [4]),
        ("ornl-2013", [2]),
    ],
)
def test_published_lines_have_the_replays_counterparts(name: str, replayed: list[int]) -> None:
    grids = outcome_of(name).published
    beside = [
        [line[-1] for line in grid.lines if not str(line[-1]).startswith(NOT_REPLAYED)]
        for grid in grids
    ]
    assert [len(one) for one in beside] == replayed


def test_the_mb_of_rados_bench_are_shown_as_mib() -> None:
    (grid,) = outcome_of("ceph-osd-backends-2016").published
    first = dict(zip(grid.head, grid.lines[0], strict=True))
    assert first["BW, MB/s: published"] == pytest.approx(80.233, abs=0.001)  # 76.516 MiB/s
    assert first["Latency, ms: published"] == pytest.approx(835.348)
    assert first["beside"] == "xfs, write-4m, 16 workers"
    # 19.17 operations of 4 MiB a second are that many MB/s: the article's two figures agree.
    assert first["IOPS: published"] == pytest.approx(80.233e6 / 4194304, rel=0.01)


def test_a_published_line_has_the_counterpart_at_our_number_of_workers() -> None:
    grid = outcome_of("swift-vs-rgw-read-2014").published[0]
    lines = [dict(zip(grid.head, line, strict=True)) for line in grid.lines]
    wanted = ("small-read", "swift-native", "512")
    (one,) = [
        line for line in lines if (line["workload"], line["gateway"], line["workers"]) == wanted
    ]
    assert one["beside"] == "swift, small-read, 32 workers"
    line = grid.lines[lines.index(one)]
    beside = grid.head.index("90 % RT at most, ms: published") + 1
    assert line[beside] == 3032.5, "the third variant at 32 workers, its p90"


def test_lines_without_a_counterpart_are_marked_as_such() -> None:
    grid = outcome_of("ceph-benchmarks-2012").published[0]
    lines = [dict(zip(grid.head, line, strict=True)) for line in grid.lines]
    insane = [line for line in lines if line["servers"] == "insane"]
    assert {line["beside"] for line in insane} == {NOT_REPLAYED}
    assert {line["here"] for line in insane} == {None}
    absent = outcome_of("ceph-osd-backends-2016", rows=[]).published[0]
    assert {line[-1] for line in absent.lines} == {
        f"{NOT_REPLAYED} in this run (xfs, {workload}, 16 workers)"
        for workload in ("write-4m", "read-4m", "write-4k", "read-4k")
    }


def test_the_table_of_2014_has_its_rows_and_columns_with_both_numbers_of_workers() -> None:
    small = outcome_of("swift-vs-rgw-read-2014").tables[0]
    assert small.head[:3] == ("Workers", "RGW-Apache 90 % RT, ms", "RGW-Apache Max RT, ms")
    workers = {1: 32, 4: 64, 8: 128, 16: 256, 32: 512}
    said = [f"{ours} (study: {theirs})" for ours, theirs in workers.items()]
    assert [line[0] for line in small.lines] == said
    cells = dict(zip(small.head, small.lines[1], strict=True))
    assert cells["Swift-Native 90 % RT, ms"] == 3004.5


@pytest.mark.parametrize("name", STUDIES)
def test_every_cell_of_a_studys_tables_has_one_figure(name: str) -> None:
    for grid in outcome_of(name).tables:
        assert grid.lines
        assert all(
            isinstance(value, float)
            for line in grid.lines
            for value in line[grid.labels :]
            if value is not None
        )
        assert any(value is not None for line in grid.lines for value in line[grid.labels :])


def test_each_pair_of_levels_that_a_study_compares_has_a_map() -> None:
    found = outcome_of("ceph-benchmarks-2012").recaps
    titles = ["replicas: 2 → 3", "osds: 3 → 4", "osds: 3 → 5", "journal: LV → own disk"]
    assert [one.title for one in found][: len(titles)] == titles
    assert all(cell.effect.verdict == "provisional" for one in found for cell in one.cells)


def test_the_map_of_2012_has_a_cell_for_each_store_size_kind_and_number_of_operations() -> None:
    found, *others = outcome_of("argonaut-vs-bobtail-2012").recaps
    assert found.title == "release: Ceph 14.2 → Ceph 16.2"
    assert [one.title for one in others] == [
        "disks: 5 disks with their journals → 4 disks and an SSD",
        "disks: 5 disks, one copy → RAID 0, one OSD, one copy",
        "workload: from disks → from page cache",
    ]
    # Four stores and XFS with journals on an SSD; of 4 KiB two workloads read at random.
    assert len(found.down) == 5 * 5
    sizes = (("4 KiB", 256), ("128 KiB", 256), ("4 MiB", 128))
    assert found.across == tuple(
        f"{size} × {count}" for size, most in sizes for count in (16, most)
    )
    assert len(found.cells) == 5 * 9 * 2
    assert all(cell.effect.verdict == "provisional" for cell in found.cells)


def test_invalid_figures_are_words_not_numbers() -> None:
    study = STUDIES["ceph-osd-backends-2016"]
    rows = [altered(row, valid=False) for row in rows_of(study, plan_of(study))]
    found = outcome_of("ceph-osd-backends-2016", rows)
    assert {value for line in found.tables[0].lines for value in line[2:]} == {"not valid"}
    assert all(cell.effect.ratio is None for one in found.recaps for cell in one.cells)


def replayed_run(folder: Path) -> Path:
    """A made-up run that replays the study of 2014 with two of its variants."""
    study = STUDIES["swift-vs-rgw-read-2014"]
    workloads = [altered(one, runtime=1.0) for one in loader.suite_of(study, "lab").workloads]
    store = fake_run(folder, layouts=("rgw-civetweb", "swift"), workloads=workloads, repeats=1)
    write_atomically(store.folder / FILE, StudyRun(study=study, scale="lab").model_dump_json())
    return store.folder


@pytest.mark.long
def test_a_replays_section_chart_and_tables_are_rebuilt_from_its_folder(tmp_path: Path) -> None:
    folder = replayed_run(tmp_path)
    derived = derive(folder)
    page = derived.report.read_text()
    assert 'id="replayed"' in page
    assert page.count("<td>cannot tell</td>") == 9  # of one repeat
    assert "few repeats" in page
    assert "The study, replayed at lab scale" in page
    assert "RGW-CivetWeb 90 % RT, ms" in page
    assert "Other hardware" in page
    assert '"recap-0"' in page
    assert {path.name for path in derived.charts} >= {"recap.png", "recap.svg", "recap.csv"}
    names = sorted(path.name for path in (derived.folder / "study").iterdir())
    assert names == [
        "conclusions-1-what-the-study-concluded-and-this-run-s.csv",
        "published-1-response-times.csv",
        "published-2-rados-bench-of-the-cluster-below.csv",
        "table-1-small-files.csv",
        "table-2-large-files.csv",
        "table-3-small-files-with-the-caches-of-kernels-a.csv",
        "table-4-rados-bench-of-the-cluster-below.csv",
    ]
    concluded = list(csv.reader((derived.folder / "study" / names[0]).read_text().splitlines()))
    assert [line[:3] for line in concluded[1:]] == [
        [one.where, one.says, "cannot tell"]
        for one in STUDIES["swift-vs-rgw-read-2014"].conclusions
    ]
    small = list(csv.reader((derived.folder / "study" / names[3]).read_text().splitlines()))
    assert len(small) == 6
    assert float(small[1][2]) > 0  # the slowest request; for a p90 there are too few


def test_what_hosts_lacked_is_beside_the_parameters_that_were_replayed() -> None:
    study = STUDIES["swift-vs-rgw-read-2014"]
    lacking = "ten disks on each storage host (Hardware, T2): store-1 has 1"
    grid = present(parameter_table(study.scales["full"], [lacking]))
    here = {line[0]: line[2] for line in grid.lines}
    assert here["ten disks on each storage host"] == "not here: store-1 has 1"
    assert here["frames of 9000 bytes"] == "as the hosts have"
    assert here["128 threads of civetweb"] == "radosgw.threads=128"
    assert str(here["two more monitors"]).startswith("not here: ")
    assert all(line[1] for line in grid.lines)
    assert parameter_table(study.scales["lab"], ()) is None


def test_a_run_without_a_study_has_no_section(tmp_path: Path) -> None:
    workload = altered(
        loader.suite_of(STUDIES["swift-vs-rgw-read-2014"], "lab").workloads[0], runtime=1.0
    )
    folder = fake_run(tmp_path, workloads=[workload], repeats=1).folder
    assert study_of(folder) is None
    derived = derive(folder, pictures=False)
    assert 'id="replayed"' not in derived.report.read_text()


def test_a_study_that_cannot_be_read_is_an_error_that_names_its_file(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('{"study": 1}')
    with pytest.raises(UsageError, match=r"study\.json: study: Input should be"):
        study_of(tmp_path)
