"""The documents that verbs print with `--json`, and their exit codes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from fake_run import WORKLOADS, fake_run
from made_up import fake_measurement
from tests.weighbridge.cli.compared_runs import SMALL, another
from weighbridge import documents, plan_outline
from weighbridge.cli.compare import exit_code
from weighbridge.command import weighbridge
from weighbridge.common.record import JsonDocument, Record
from weighbridge.documents import (
    ComparedRunsDocument,
    DoctorDocument,
    ImagesDocument,
    TopologiesDocument,
)
from weighbridge.plan_outline import PlanOutline
from weighbridge.results import derive
from weighbridge.results.features.history import History
from weighbridge.results.run.step import StepKey, StepResult
from weighbridge.results.run.telemetry import Attested
from weighbridge.results.show.pictures import RenderingError
from weighbridge.run import Ran
from weighbridge.suites.loader import shipped
from weighbridge.topologies.loader import field_texts

RunCli = Callable[..., tuple[str, str]]
ROOT = Path(__file__).parents[3]
IN_A_SENTENCE = (documents.ListedSuite, documents.ListedHardware)
"""Records whose fields have no lines of their own on the page."""
RECORDS: tuple[type[Record], ...] = (
    *(
        one
        for module in (documents, plan_outline)
        for one in vars(module).values()
        if isinstance(one, type) and issubclass(one, Record) and one.__module__ == module.__name__
        if one not in IN_A_SENTENCE
    ),
    History,
)
DOCUMENTS = [one for one in RECORDS if issubclass(one, JsonDocument)]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    runs = tmp_path_factory.mktemp("runs")
    return fake_run(runs, workloads=[SMALL], telemetry=False).folder, another(runs, 1)


def test_compared_runs_are_one_document_with_all_else_on_stderr(
    pair: tuple[Path, Path], run_cli: RunCli
) -> None:
    out, said = run_cli(0, "compare-runs", *pair, "--json")
    found = ComparedRunsDocument.model_validate_json(out)
    assert found.exit_code == 0
    assert (found.a, found.b) == tuple(folder.name for folder in pair)
    assert found.comparison.effects
    assert "The same in both" in said


def test_a_plan_is_one_document(run_cli: RunCli, tmp_path: Path) -> None:
    ends = ("--s3", "a=http://a.example", "--s3", "b=http://b.example")
    out, said = run_cli(0, "compare", *ends, "--dry-run", "--json", "--out", tmp_path)
    found = PlanOutline.model_validate_json(out)
    assert [one.about for one in found.layouts] == [
        "S3 at http://a.example",
        "S3 at http://b.example",
    ]
    assert found.steps == 2 * sum(len(one.workers) for one in found.workloads)
    assert found.estimated_s > sum(
        2 * len(one.workers) * (one.warmup_s + one.window_s) for one in found.workloads
    )
    assert "n = 1: no difference can be claimed" in found.claim
    assert "this-machine: " in said


def test_a_plan_has_the_workloads_of_the_layouts_and_not_only_those_of_the_control(
    run_cli: RunCli, tmp_path: Path
) -> None:
    file = tmp_path / "suite.yaml"
    text = shipped()["endpoints"].read_text()
    file.write_text(text.replace("repeats: 1", "repeats: 5\ncontrol: [read-64kb]"))
    ends = ("--s3", "a=http://a.example", "--s3", "b=http://b.example", "--suite", file)
    out, _ = run_cli(0, "compare", *ends, "--dry-run", "--json", "--out", tmp_path)
    found = PlanOutline.model_validate_json(out)
    assert [one.control_of for one in found.layouts] == [None, None, "a"]
    assert [one.name for one in found.workloads] == ["read-64kb", "write-64kb"]


def test_layouts_and_requirements_are_documents(run_cli: RunCli) -> None:
    out, _ = run_cli(0, "topologies", "swift", "--json")
    found = TopologiesDocument.model_validate_json(out)
    releases = {one.name: one.releases for one in found.layouts}
    assert releases["swift"][0] == "swift-2.35", "its own comes first"
    assert {"swift-2.26", "swift-2.38"} <= {*releases["swift"]}
    assert "rgw-beast" not in releases
    assert {one.gateway for one in found.parameters} == {"swift"}
    out, said = run_cli(0, "doctor", "--hardware", "this-machine", "--json")
    needed = DoctorDocument.model_validate_json(out)
    assert (needed.exit_code, needed.hardware) == (0, "this-machine")
    assert [one.name for one in needed.requirements if one.optional] == ["perf"]
    assert "this machine can run this-machine" in said


def test_images_are_a_document(run_cli: RunCli) -> None:
    out, _ = run_cli(0, "images", "trixie", "tools", "--json")
    found = ImagesDocument.model_validate_json(out)
    assert (found.images[0].name, found.images[0].debian) == ("trixie", "trixie")
    assert all(bool(one.built) == bool(one.packages) for one in found.images)
    out, said = run_cli(2, "images", "ceph-15", "--json")
    assert out == ""
    assert "ceph-15" in said


def test_the_plan_of_a_study_is_one_document(run_cli: RunCli) -> None:
    out, said = run_cli(0, "study", "ornl-2013", "--dry-run", "--json")
    found = PlanOutline.model_validate_json(out)
    assert found.steps > 0
    assert "ornl-2013" in said


@pytest.mark.parametrize(
    "words", [("study", "--list"), ("tune", "--list"), ("tune", "haproxy", "--dry-run")]
)
def test_what_has_no_document_is_refused_with_json(run_cli: RunCli, words: tuple[str, ...]) -> None:
    out, said = run_cli(2, *words, "--json")
    assert out == ""
    assert "--json" in said


def test_a_refusal_prints_no_document(run_cli: RunCli) -> None:
    out, said = run_cli(2, "compare", "--s3", "a=nowhere", "--json")
    assert out == ""
    assert "give a URL such as" in said


def rows() -> Iterator[str]:
    for model in RECORDS:
        for name, field in model.model_fields.items():
            if name not in JsonDocument.model_fields and (text := field_texts(model).get(name)):
                yield f"| `{name}` | {text} |"
            assert field is not None


@pytest.mark.parametrize("model", DOCUMENTS)
def test_every_document_and_all_of_its_fields_are_described(model: type[JsonDocument]) -> None:
    page = (ROOT / "docs" / "json.md").read_text()
    name = model.model_fields["document"].default
    (section,) = re.findall(rf'(?ms)^## `"{name}"`.*?(?=^## |\Z)', page)
    for field in model.model_fields:
        if field not in JsonDocument.model_fields:
            assert f"| `{field}` |" in section, field


def test_the_meanings_of_fields_are_those_of_the_records() -> None:
    page = (ROOT / "docs" / "json.md").read_text()
    assert [row for row in rows() if row not in page] == []


KEY = StepKey(layout="rgw-a", api="swift", workload="small", workers=4, repeat=0)
GOOD = StepResult(key=KEY, measurement=fake_measurement(workload="small"), valid=True, order=0)
LOST = StepResult(key=KEY, measurement=None, valid=False, notes=("the gateway has died",), order=1)


def test_a_run_without_a_step_or_a_power_cut_does_not_exit_with_0() -> None:
    def code(*steps: StepResult, comparable: bool = True, uncut: tuple[str, ...] = ()) -> int:
        derived: Any = SimpleNamespace(comparable=comparable)
        return exit_code(Ran(derived, steps, uncut))

    assert code(GOOD) == 0
    assert code(GOOD, LOST) == 3
    assert code(GOOD, uncut=("rgw-a",)) == 3
    assert code(GOOD, comparable=False) == 4


def test_charts_that_cannot_be_drawn_keep_table_and_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = fake_run(tmp_path, workloads=[WORKLOADS[0].model_copy(update={"workers": (1, 4)})])
    ran = Ran(derive(store.folder, pictures=False), store.steps())

    def fails(*_: object) -> None:
        raise RenderingError("a process that draws charts ended early")

    monkeypatch.setattr("weighbridge.run.run", lambda *_, **__: ran)
    monkeypatch.setattr("weighbridge.run.resume", lambda *_, **__: ran)
    monkeypatch.setattr("weighbridge.results_output.write_charts", fails)
    for arguments in (["resume", str(store.folder)], ["compare", "--out", str(tmp_path / "runs")]):
        done = CliRunner().invoke(weighbridge, arguments, standalone_mode=False)
        assert (done.exception, done.return_value) == (None, 0)
        table, sorry = map(done.output.index, ("small-read", "the charts could not be drawn ("))
        assert 0 < table < sorry


@pytest.mark.parametrize(("apart", "repeats", "code"), [(False, 5, 0), (False, 1, 0), (True, 5, 4)])
def test_a_comparison_without_comparable_cells_exits_with_4_and_a_provisional_one_with_0(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, apart: bool, repeats: int, code: int
) -> None:
    workload = WORKLOADS[0].model_copy(update={"workers": (1, 4)})
    store = fake_run(tmp_path, workloads=[workload], repeats=repeats)
    if apart:
        one = {"repeat": 0, "host": "gateway-1", "kind": "cpu", "what": "CPU", "unit": "events/s"}
        gave = {"rgw-beast": 1395.0, "swift": 245.0}
        store.attest(
            [
                Attested.model_validate({**one, "layout": name, "value": value})
                for name, value in gave.items()
            ]
        )

    ran = Ran(derive(store.folder, pictures=False), store.steps())
    monkeypatch.setattr("weighbridge.run.run", lambda *_, **__: ran)
    monkeypatch.setattr("weighbridge.run.resume", lambda *_, **__: ran)
    # Resuming a complete run, too.
    for words in (["resume", str(store.folder)], ["compare", "--out", str(tmp_path / "runs")]):
        done = CliRunner().invoke(weighbridge, [*words, "--no-charts"], standalone_mode=False)
        assert (done.exception, done.return_value) == (None, code)
        assert ("rovisional: " in done.output) == (repeats == 1)
