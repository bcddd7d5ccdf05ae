"""ARCHITECTURE.md names the toy plug-ins that tests install."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "ARCHITECTURE.md").read_text()
SUPPORT = ROOT / "tests" / "support"


@pytest.mark.parametrize("toy", ["toy_store", "toy_front", "toy_driver", "toy_metric", "toy_chart"])
def test_every_toy_is_documented_and_has_an_entry_point(toy: str) -> None:
    assert f"tests/support/{toy}" in PAGE
    (points,) = (SUPPORT / toy).glob("*.dist-info/entry_points.txt")
    group = re.search(r"\[(weighbridge\.\w+)\]", points.read_text())
    assert group is not None
    assert group[1] in PAGE
