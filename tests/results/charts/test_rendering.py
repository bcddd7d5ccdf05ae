from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from typing import Any

import psutil
import pytest
import vl_convert as vlc

from weighbridge.results.charts import pictures as rendering
from weighbridge.results.charts.chart_theme import font_folder
from weighbridge.results.charts.pictures import RenderingError, draw


def spec(values: int) -> dict[str, Any]:
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "data": {"values": [{"a": value} for value in range(values)]},
        "mark": "point",
        "encoding": {"x": {"field": "a", "type": "quantitative", "title": f"{values} µs"}},
    }


def children() -> list[psutil.Process]:
    return [
        one
        for one in psutil.Process(os.getpid()).children()
        if "drawing_process" in " ".join(one.cmdline())
    ]


def test_pictures_have_the_order_of_their_specs_and_are_what_the_library_draws() -> None:
    vlc.register_font_directory(font_folder())
    found = draw([spec(values) for values in (2, 3, 5)], font_folder(), at_most=2)
    assert [one.svg for one in found] == [vlc.vegalite_to_svg(spec(values)) for values in (2, 3, 5)]
    assert {one.png[:4] for one in found} == {b"\x89PNG"}
    assert {one.pdf[:4] for one in found} == {b"%PDF"}
    assert not children()


def test_a_chart_that_cannot_be_drawn_is_an_error_and_no_process_is_left() -> None:
    with pytest.raises(RenderingError, match="cannot be drawn"):
        draw(
            [{"mark": "no such mark", "data": {"url": "nowhere://"}, "encoding": 3}],
            font_folder(),
            at_most=1,
        )
    assert not children()


def test_a_process_that_ends_early_is_an_error_with_its_last_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        rendering, "_CODE", "import sys; sys.stderr.write('no engine here'); sys.exit(3)"
    )
    with pytest.raises(RenderingError, match="ended early: no engine here"):
        draw([spec(2)], font_folder(), at_most=2)
    assert not children()


def test_a_machine_without_room_for_the_processes_is_an_error_and_no_process_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real, started = subprocess.Popen, []

    def none_left(*arguments: Any, **options: Any) -> subprocess.Popen[str]:
        if started:
            raise OSError(errno.ENOMEM, "Cannot allocate memory")
        started.append(real(*arguments, **options))
        return started[0]

    monkeypatch.setattr(subprocess, "Popen", none_left)
    with pytest.raises(
        RenderingError,
        match=r"no process that draws charts can be started: .*Cannot allocate memory",
    ):
        draw([spec(2)], font_folder(), at_most=2)
    assert not children()


def test_no_process_is_left_where_making_a_spec_fails() -> None:
    def specs() -> Iterator[dict[str, Any]]:
        yield spec(2)
        raise KeyError("broken")

    with pytest.raises(KeyError, match="broken"):
        draw(specs(), font_folder(), at_most=1)
    assert not children()
