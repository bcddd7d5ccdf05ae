"""Asking each layout of a run once, after its last step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stub_run import Run, Seen
from weighbridge.conductor import conductor
from weighbridge.conductor.capable import SHEET, sheet_of
from weighbridge.gateways.capabilities.capability import Answer
from weighbridge.gateways.capabilities.matrix import LayoutAnswers
from weighbridge.results.record.store import RunStore

ANSWERS = {
    "s3-delete": Answer(outcome="works"),
    "s3-copy": Answer(outcome="wrong", status=200, text="ignored"),
    "swift-put": Answer(outcome="refused", status=501, code="NotImplemented"),
}


def conducted(
    run: Run, monkeypatch: pytest.MonkeyPatch, *, wanted: bool, died: str = ""
) -> tuple[RunStore, Seen, list[tuple[str, int]]]:
    store, seen, asked = run.store(), Seen(), list[tuple[str, int]]()

    def ask(planned: Any, deployment: Any, say: Any, *, log: Path) -> LayoutAnswers:
        name = planned.layout.name
        assert deployment.layout.name == name
        asked.append((name, sum(step.key.layout == name for step in store.steps())))
        return LayoutAnswers(layout=name, release="any", answers=ANSWERS, died=died)

    monkeypatch.setattr(conductor, "ask_for_run", ask)
    plan = run.plan().model_copy(update={"capabilities": wanted})
    run.into(store, display=seen, plan=plan)
    return store, seen, asked


def test_each_layout_is_asked_once_after_its_last_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(tmp_path, repeats=2)
    store, _, asked = conducted(run, monkeypatch, wanted=True)
    assert sorted(asked) == sorted((one.layout.name, 6) for one in run.planned)
    sheets = {one.layout: one.facts for one in store.manifest.sheets if one.title == SHEET}
    assert set(sheets) == {one.layout.name for one in run.planned}
    for facts in sheets.values():
        assert list(facts.values()) == [
            "works",
            "wrong: 200: ignored",
            "refused: 501 NotImplemented",
        ]


def test_nothing_is_asked_unless_the_run_wants_to_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, _, asked = conducted(Run(tmp_path), monkeypatch, wanted=False)
    assert asked == []
    assert not [one for one in store.manifest.sheets if one.title == SHEET]


def test_a_daemon_that_dies_of_a_question_is_recorded_and_changes_no_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, seen, _ = conducted(Run(tmp_path), monkeypatch, wanted=True, died="radosgw had ended")
    assert all(step.valid for step in store.steps())
    failed = [one.text for one in store.events() if one.kind == "failed"]
    assert set(failed) == {"capabilities: radosgw had ended"}
    assert any("radosgw had ended" in text for text in seen.said)


def test_a_sheet_names_api_group_and_capability() -> None:
    found = LayoutAnswers(layout="rgw-a", release="any", answers=ANSWERS)
    assert next(iter(sheet_of(found).facts)) == "s3: objects: DELETE"
