from __future__ import annotations

import runpy
import tomllib
from pathlib import Path

BUDGETS = runpy.run_path(str(Path(__file__).parents[1] / "scripts" / "budgets.py"))
BEFORE = {"tests": {"lines": 10.0, "files": 2.0}}


def faults(lines: float, budget: float) -> list[str]:
    """Of one figure and its budget, which was 10."""
    figures = {"tests": {"lines": lines, "files": 2.0}}
    return list(BUDGETS["faults"](figures, {"tests": {"lines": budget, "files": 2.0}}, [BEFORE]))


def test_a_figure_may_reach_its_budget_and_a_budget_may_fall() -> None:
    assert faults(10, 10) == faults(8, 8) == faults(7, 8) == []


def test_a_figure_above_its_budget_and_a_budget_that_was_raised_are_faults() -> None:
    assert len(faults(9, 8)) == 1
    assert len(faults(11, 11)) == 1
    assert len(faults(12, 11)) == 2


def test_no_figure_is_without_a_budget_and_no_budget_without_a_figure() -> None:
    assert len(list(BUDGETS["faults"](BEFORE, {"tests": {"lines": 10.0, "bytes": 1.0}}, []))) == 2


def test_budgets_are_lowered_in_place_and_never_raised() -> None:
    text = "# why\n\n[tests]\nlines = 10 # goal 5\nfiles = 2\n"
    lowered = BUDGETS["lowered"](text, {"tests": {"lines": 8, "files": 3}})
    assert tomllib.loads(lowered) == {"tests": {"lines": 8, "files": 2}}
    assert lowered == text.replace("10", "8")
