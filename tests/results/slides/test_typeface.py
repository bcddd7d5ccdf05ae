from __future__ import annotations

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weighbridge.results.slides import typeface
from weighbridge.results.slides.typeface import TYPEFACE, shown_here, width_pt

LATIN = st.text(st.characters(codec="latin-1", exclude_categories=("C",)), max_size=60)


@pytest.mark.parametrize(
    ("text", "bold", "arial"),
    [
        # Of Arial's own table, in units of which 2048 are its size.
        ("1111", False, 4 * 1139),
        ("R%", False, 1479 + 1821),
        ("mW", False, 1706 + 1933),
        ("1L.", True, 1139 + 1251 + 569),
    ],
)
def test_a_text_is_never_measured_narrower_than_in_arial(text: str, bold: bool, arial: int) -> None:
    assert width_pt(text, 2048, bold=bold) >= arial


def test_a_text_that_is_wider_in_arial_than_in_inter_has_arials_width() -> None:
    assert width_pt("1111", 2048) == 4 * 1139


@given(LATIN, LATIN, st.booleans(), st.integers(8, 60))
def test_widths_grow_with_texts_and_with_sizes(one: str, other: str, bold: bool, size: int) -> None:
    both = width_pt(one + other, size, bold=bold)
    assert both >= width_pt(one, size, bold=bold) - size / 4  # Inter sets some pairs closer
    assert width_pt(one, 2 * size, bold=bold) == pytest.approx(2 * width_pt(one, size, bold=bold))


@pytest.mark.parametrize(
    ("family", "says"),
    [
        (None, "set in Arial"),
        (TYPEFACE, "set in Arial"),
        ("Liberation Sans", "set in Arial, shown here in Liberation Sans, of the same widths"),
        ("DejaVu Sans", "shown here in DejaVu Sans, whose widths differ; install Liberation Sans"),
    ],
)
def test_a_font_is_never_replaced_silently(
    family: str | None, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(typeface, "_family_here", lambda: family)
    said = shown_here()
    assert said == says or (family == "DejaVu Sans" and says in said)


def test_a_fontconfig_that_does_not_answer_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(*command: object, **given: object) -> None:
        raise subprocess.TimeoutExpired("fc-match", 10)

    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(subprocess, "run", silent)
    assert "is not known: fc-match did not answer" in shown_here()
