from __future__ import annotations

from pathlib import Path

import pytest

from weighbridge.common.document import Document, DocumentError
from weighbridge.common.errors import UsageError
from weighbridge.suites import Every, Objects
from weighbridge.suites.studies import Published, ScaleName, Study, loader

STUDY = """
name: trial
about: Two layouts
source: {author: Somebody, title: Something, date: 2014-11-04}
variants:
  - {name: slow, layout: "null:delay_ms=2", factors: {delay: long}}
  - {name: quick, layout: "null", factors: {delay: none}}
compares:
  - {factor: delay, baseline: long, against: [none]}
tables:
  - {title: All, down: [workers], across: [delay], cells: {throughput_ops_s: op/s}}
scales:
  lab:
    about: [Everything is smaller.]
    hardware: loopback
    suite:
      name: trial
      about: A trial
      workloads:
        - name: small-read
          objects: {size: 4KiB}
          operations: {read: 1}
          workers: [1, 2]
          runtime: 1s
          warmup: 0s
"""


def study_of(text: str) -> Study:
    return Document("trial.yaml", text.replace("none", '"none"')).into(Study)


def test_each_study_that_ships_has_an_author_and_parameters_each_with_its_place_in_it() -> None:
    shipped = loader.shipped()
    assert shipped
    for name, path in shipped.items():
        _, study = loader.load(path)
        assert study.name == name
        assert study.source.author
        assert study.source.title
        assert "lab" in study.scales
        assert all(scale.about for scale in study.scales.values())
        full = study.scales["full"]
        assert full.parameters
        assert full.needs
        assert full.lacks
        assert all(one.where for one in (*full.parameters, *full.needs, *full.lacks))


def test_the_2014_study_at_full_scale_has_its_published_parameters() -> None:
    _, study = loader.load(loader.find("swift-vs-rgw-read-2014"))
    small, large = (suite := loader.suite_of(study, "full")).workloads
    assert small.objects == Objects(size="1MB", containers=100, per_container=1000)
    assert large.objects == Objects(size="1GB", containers=10, per_container=100)
    assert (small.workers, large.workers) == ((32, 64, 128, 256, 512), (8, 16, 32, 64, 128))
    assert small.runtime == large.runtime == 900
    assert suite.cache == Every(every=60.0, kernel=True)


def test_cached_reads_are_beside_the_same_reads_from_disks() -> None:
    for name, cold, cached in (
        ("argonaut-vs-bobtail-2012", "rand-4k", "cached-4k"),
        ("ceph-osd-backends-2016", "read-4k", "cached-4k"),
    ):
        _, study = loader.load(loader.find(name))
        works = {one.name: one for one in loader.suite_of(study, "lab").workloads}
        assert (works[cold].cache, works[cached].cache) == (None, "none")
        assert works[cold].objects == works[cached].objects
        assert works[cached].warmup > 0  # what fills the caches of BlueStore
        assert any(one.factor == "workload" for one in study.compares)


def test_the_2012_study_crosses_releases_stores_sizes_and_concurrency() -> None:
    _, study = loader.load(loader.find("argonaut-vs-bobtail-2012"))
    suite = loader.suite_of(study, "lab")
    assert suite.rados.instances == 8
    assert study.levels("release") == ("ceph-14", "ceph-16")
    assert set(study.levels("store")) == {"bluestore", "xfs", "btrfs", "ext4"}
    assert set(study.levels("disks")) == {"shared", "own", "one-copy", "raid0"}
    assert len(study.variants) == 12
    sizes = {workload.objects.size for workload in suite.workloads}
    assert sizes == {4 * 2**10, 128 * 2**10, 4 * 2**20}
    assert {
        study.scales["lab"].study_workers(one.name, one.workers[-1]) for one in suite.workloads
    } == {256}


def with_lines(line: str) -> tuple[str, str]:
    return ("    suite:\n", f"    {line}\n    suite:\n")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("factor: delay,", "factor: dely,"), "no factor 'dely' (did you mean 'delay'?)"),
        (("baseline: long", "baseline: lang"), "no variant has delay 'lang' (did you mean 'long'"),
        (("name: quick", "name: slow"), "two variants are named slow"),
        (("factors: {delay: none}", "factors: {delay: long}"), "the same factors"),
        (("factors: {delay: none}", "factors: {wait: none}"), "does not name"),
        (("down: [workers]", "down: [worker]"), "table 'All' has no dimension 'worker' (did you"),
        (with_lines("suites: [quick]"), "either a suite or the names of shipped suites"),
        (("throughput_ops_s", "throughput!"), "should match pattern"),
        (("runtime: 1s", "runtime: 1"), "has no unit"),
        (with_lines("variants: [quik]"), "scale lab: no variant 'quik' (did you mean 'quick'?)"),
        (
            with_lines("parameters: [{says: a, where: b}]"),
            "needs at least one of set, rados and suite",
        ),
        (with_lines("needs: [{id: disks, says: a, where: b}]"), "disks asks for nothing"),
        (
            with_lines("beside: [{driver: dd, api: rbd, workloads: [copy]}]"),
            "no workload 'copy' among tools",
        ),
        (
            ("factor: delay, baseline: long", "factor: workload, baseline: small-raed"),
            "no workload 'small-raed' (did you mean 'small-read'?)",
        ),
    ],
)
def test_a_fault_of_a_study_is_reported_with_its_position(
    change: tuple[str, str], words: str
) -> None:
    with pytest.raises(DocumentError, match=r"trial\.yaml:\d+:\d+: ") as error:
        study_of(STUDY.replace(*change))
    assert words in str(error.value)


def test_suites_that_a_study_names_must_exist_and_differ_in_workloads_only(tmp_path: Path) -> None:
    path = tmp_path / "trial.yaml"
    start = STUDY[: STUDY.index("    suite:\n")].replace("none", '"none"')
    path.write_text(start + "    suites: [small-objects, large-objcts]\n")
    why = r"no suite 'large-objcts' \(did you mean 'large-objects'"
    with pytest.raises(DocumentError, match=why):
        loader.load(path)
    path.write_text(start + "    suites: [small-objects, quick]\n")
    _, study = loader.load(path)
    why = "suites small-objects and quick differ in more than their workloads"
    with pytest.raises(UsageError, match=why):
        loader.suite_of(study, "lab")


def test_an_unknown_study_is_refused_with_the_closest_known_one() -> None:
    with pytest.raises(UsageError, match=r"no study 'ornl-2031' \(did you mean 'ornl-2013'"):
        loader.find("ornl-2031")


def test_rules_about_a_published_line_add_up_and_the_later_one_wins() -> None:
    published = Published.model_validate(
        {
            "file": "made-up",
            "title": "Made up",
            "same": {"variant": "gateway", "workers": "threads"},
            "rules": [
                {"when": {}, "beside": {"workload": "small-read"}},
                {"when": {"gateway": "swift-native"}, "beside": {"variant": "swift"}},
                {"when": {"size": "1G"}, "beside": {"workload": "large-read"}},
            ],
            "figures": [{"column": "iops", "title": "IOPS"}],
        }
    )
    beside = published.beside({"gateway": "swift-native", "size": "1G", "threads": "32"})
    assert (beside.variant, beside.workload, beside.workers) == ("swift", "large-read", 32)
    assert published.beside({"gateway": "rgw", "size": "1M", "threads": ""}).workers is None


@pytest.mark.parametrize("name", list(loader.shipped()))
def test_each_rados_bench_that_reads_has_an_object_for_each_worker(name: str) -> None:
    # With fewer it ends with "read got -2": each worker starts with its own object.
    _, study = loader.load(loader.find(name))
    for scale_name, scale in study.scales.items():
        suite = loader.suite_of(study, scale_name)
        instances = suite.rados.instances
        for workload in (*(suite.workloads if "rados" in suite.api else ()), *scale.beneath):
            if "read" in workload.operations:
                assert workload.objects.count // instances >= -(-max(workload.workers) // instances)


@pytest.mark.parametrize("scale", ["lab", "full"])
def test_every_conclusion_of_rgw_at_scale_is_about_steps_of_its_replay(scale: ScaleName) -> None:
    _, study = loader.load(loader.find("rgw-at-scale-2025"))
    plan = study.scales[scale]
    steps = {
        (work.name, workers)
        for work in loader.suite_of(study, scale).workloads
        for workers in work.workers
    }
    asked = {
        (workload, plan.our_workers(workload, workers))
        for one in study.conclusions
        for check in one.checks
        for cells in (check.of, check.than)
        for workload in cells.workloads or check.of.workloads
        for workers in cells.workers or check.of.workers
    }
    assert asked <= steps
