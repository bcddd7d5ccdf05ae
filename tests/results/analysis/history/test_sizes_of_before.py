"""Runs of layouts that give a setting, beside runs in which it follows the size of hosts."""

from __future__ import annotations

from collections.abc import Mapping

from made_rows import altered
from series_rows import made_run
from weighbridge.results.analysis.across_runs.guard import ComparedRun
from weighbridge.results.analysis.history.history import History, break_words, history_of


def run(
    day: int, given: Mapping[str, int], computed: Mapping[str, int], **more: object
) -> ComparedRun:
    """A run whose layout's file gives some settings of radosgw, while others are computed."""
    found = made_run(day, {"rgw-beast": 1000.0}, **more)  # type: ignore[arg-type]
    plan = found.plan.model_dump()
    plan["layouts"][0]["settings"] = {"radosgw": dict(given)}
    plan["by_size"] = {
        "rgw-beast": [{"key": f"radosgw.{key}", "value": value} for key, value in computed.items()]
    }
    return altered(found, plan=type(found.plan).model_validate(plan))


def groups(history: History) -> list[int]:
    return [len(one.points) for one in history.series if one.metric == "throughput"]


def test_runs_whose_files_gave_what_is_now_computed_are_one_series_with_later_ones() -> None:
    sizes = {"threads": 512, "max_concurrent_requests": 1024}
    history = history_of([run(0, sizes, {}), run(1, {}, sizes), run(2, {"threads": 512}, sizes)])
    assert groups(history) == [3]
    assert history.breaks == ()


def test_a_real_difference_comes_before_what_only_moved_to_the_sizing_rule() -> None:
    many = dict.fromkeys("abcdef", 1)
    before = run(0, {"tcp_nodelay": 1, "gone": 1, **many}, {})
    after = run(1, {"tcp_nodelay": 0}, dict.fromkeys(many, 2))
    (words,) = break_words(history_of([before, after]).breaks)
    assert words.endswith(
        ": layout radosgw.tcp_nodelay: 1 before, 0 now; in a layout's file and computed from the "
        "hosts' size: layout radosgw.a: 1 before, 2 now; layout radosgw.b: 1 before, 2 now; "
        "layout radosgw.c: 1 before, 2 now; 3 more; recorded in one run only: "
        "layout radosgw.gone"
    )
