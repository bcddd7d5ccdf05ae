"""docs/tuning.md describes tunings completely and correctly."""

import re
from pathlib import Path
from typing import get_args

from weighbridge.common.document import Document
from weighbridge.common.structure import SCOPES
from weighbridge.results.record.trial import EntryVerdict
from weighbridge.suites.tuning import (
    Level,
    Objective,
    Parameter,
    Range,
    SearchOptions,
    Strategy,
    Trials,
    Tuning,
    loader,
)

PAGE = (Path(__file__).parents[2] / "docs/tuning.md").read_text(encoding="utf-8")


def quoted() -> set[str]:
    """Words in backquotes outside the example."""
    (example,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    return set(re.findall(r"\w+", " ".join(re.findall(r"`([^`\n]+)`", PAGE.replace(example, "")))))


def test_its_example_is_a_valid_tuning() -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    document = Document("example.yaml", example)
    assert loader.suite_of(document, document.into(Tuning)).workloads


def test_it_has_every_key_of_a_tuning() -> None:
    for record in (Tuning, Objective, Parameter, Level, Range, Trials, SearchOptions):
        missing = set(record.model_fields) - quoted() - {"value"}
        assert not missing, f"{record.__name__}: {missing}"


def test_it_has_every_scope_strategy_verdict_and_shipped_tuning() -> None:
    assert {*SCOPES, *get_args(Strategy)} <= quoted()
    assert all(verdict in PAGE for verdict in get_args(EntryVerdict) if verdict != "not comparable")
    assert all(f"| `{name}` |" in PAGE for name in loader.shipped())


def test_its_defaults_are_those_of_the_records() -> None:
    trials, search, tuning = Trials(), SearchOptions(), Tuning.model_fields
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", PAGE, re.MULTILINE))
    assert rows["trials"] == f"{trials.least}, {trials.most}, {trials.baseline_every}"
    own = (search.proposals, search.trials, search.startup, search.finalists)
    assert rows["search"] == ", ".join(map(str, own))
    assert rows["confirm"] == str(tuning["confirm"].default)
    assert rows["seed"] == str(tuning["seed"].default)
