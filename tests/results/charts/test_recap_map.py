import csv
import io
import re

import pytest
import vl_convert as vlc

from compared_rows import made_effect
from made_rows import altered
from weighbridge.results.analysis.comparison import Comparison, Effect, NoiseFloor, Verdict
from weighbridge.results.charts.change_map import cell_text, change_maps
from weighbridge.results.charts.chart_theme import DARK, LIGHT, Look, diverging, neutral
from weighbridge.results.charts.composer import compose
from weighbridge.results.doubt import Doubt
from weighbridge.results.figures import show_percent
from weighbridge.results.statistics import Ratio


def effect(
    ratio: float | None,
    verdict: Verdict,
    *,
    workers: int | None = 8,
    metric: str = "throughput",
    subject: str = "swift",
    about: str = "64 kB reads",
    repeats: int = 5,
) -> Effect:
    found = made_effect(
        subject, ratio, verdict, workers=workers, metric=metric, about=about, repeats=repeats
    )
    return altered(
        found,
        workload=about.replace(" ", "-"),
        baseline_value=100.0,
        subject_value=None if ratio is None else 100.0 * ratio,
    )


def comparison(*effects: Effect, noise: tuple[NoiseFloor, ...] = ()) -> Comparison:
    subjects = tuple(dict.fromkeys(one.subject for one in effects))
    return Comparison(
        baseline="rgw-beast", subjects=subjects, effects=effects, noise=noise, tests=len(effects)
    )


def cells(found: Comparison, look: Look = LIGHT) -> dict[str, dict[str, str]]:
    (figure,) = change_maps(found)
    drawn = compose(figure, look)["concat"][0]["layer"]
    return {
        row["x"]: {**row, "colour": row["c"]}
        for layer in drawn
        if layer["mark"]["type"] == "rect"
        for row in layer["data"]["values"]
    }


def texts(spec: dict[str, object]) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", vlc.vegalite_to_svg(spec))


@pytest.mark.parametrize("look", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize(("metric", "good"), [("throughput", 1.7), ("p90", 0.4)])
def test_better_has_one_colour_whatever_is_measured(look: Look, metric: str, good: float) -> None:
    bad = 2 - good
    found = cells(
        comparison(
            effect(good, "better", metric=metric, workers=1),
            effect(bad, "worse", metric=metric, workers=2),
        ),
        look,
    )
    assert (found["1"]["colour"], found["2"]["colour"]) == (diverging(look)[-1], diverging(look)[0])


def test_only_significant_changes_have_a_colour() -> None:
    found = cells(
        comparison(
            effect(1.4, "better", workers=1),
            effect(1.4, "not significant", workers=2),
            effect(1.03, "too small to matter", workers=4),
            effect(1.4, "provisional", workers=8, repeats=2),
        )
    )
    grey, drawn = neutral(LIGHT), [found[workers] for workers in ("1", "2", "4", "8")]
    assert [one["colour"] == grey for one in drawn] == [False, True, True, True]
    assert [one["text"] for one in drawn] == ["+40 %", "~", "+3 %", "(+40 %)"]


def test_what_is_not_comparable_is_an_empty_frame_and_not_a_0() -> None:
    (figure,) = change_maps(
        comparison(effect(None, "not comparable", workers=1), effect(1.4, "better", workers=2))
    )
    assert cell_text(effect(None, "not comparable")) == "×"
    assert "stroke-dasharray" in vlc.vegalite_to_svg(compose(figure))
    assert next(csv.DictReader(io.StringIO(figure.csv)))["change_percent"] == ""


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [(1.25, 4.0, "(≥ +25 %)"), (0.2, 0.8, "(≤ −20 %)"), (0.5, 2.0, "(~)"), (1.0, 3.0, "(~)")],
)
def test_bins_show_only_the_change_that_they_allow(low: float, high: float, words: str) -> None:
    binned = altered(
        effect(1.7, "provisional", metric="p90"),
        ratio=Ratio(value=1.7, low=low, high=high, repeats=1),
        baseline_value=None,
        subject_value=None,
    )
    assert cell_text(binned) == words
    (figure,) = change_maps(comparison(binned))
    assert "70" not in figure.csv
    assert figure.panels[0].lines[0][5] == "–"


def test_a_change_over_all_worker_counts_is_shown_without_two_figures() -> None:
    binned = altered(effect(1.7, "better", workers=None), baseline_value=None, subject_value=None)
    assert cell_text(binned) == "+70 %"


def test_worker_counts_ascend_and_end_with_all_if_there_are_several() -> None:
    (figure,) = change_maps(
        comparison(*(effect(1.2, "better", workers=count) for count in (None, 32, 4, 128)))
    )
    counts = ["4", "32", "128", "all"]
    assert [word for word in texts(compose(figure)) if word in counts] == counts
    one = comparison(effect(1.2, "better", workers=None), effect(1.2, "better", workers=4))
    assert set(cells(one)) == {"4"}


def test_with_several_layouts_each_kind_of_requests_is_named_once() -> None:
    effects = [
        effect(1.2, "better", subject=name, about=about)
        for about in ("reads", "writes")
        for name in ("a", "b", "c")
    ]
    (figure,) = change_maps(comparison(*effects))
    words = texts(compose(figure))
    assert [words.count(word) for word in ("Reads", "Writes", "a", "b", "c")] == [1, 1, 2, 2, 2]
    (_, groups) = compose(figure)["concat"][0]["layer"]
    assert groups["encoding"]["y"]["axis"]["orient"] == "left"
    assert len(groups["data"]["values"]) == 1  # a line between the two


def test_the_title_counts_cells_and_claims_only_significant_changes() -> None:
    def title(*effects: Effect) -> str:
        return change_maps(comparison(*effects))[0].finding

    many = (
        effect(1.5, "better", workers=1),
        effect(0.5, "worse", workers=2),
        effect(1.5, "not significant", workers=4),
    )
    assert "swift is faster in 1 of 3 cells and slower in 1 of 3 cells" in title(*many)
    assert title(effect(1.5, "not significant")).startswith("No significant difference of through")
    doubt = Doubt(what="few repeats", grade="mild", words="a claim needs 5 repeats of each side")
    few = altered(effect(1.5, "provisional", repeats=2), doubts=(doubt, doubt))
    assert title(few) == "Throughput is provisional in the only comparable cell: few repeats"
    assert "a shorter p90 in 1 of 1 cell" in title(effect(0.5, "better", metric="p90"))


def test_two_runs_are_compared_by_run_and_their_guard_facts_are_counted() -> None:
    effects = tuple(
        altered(effect(1.5, "better", subject=f"{name} (B)"), baseline=f"{name} (A)")
        for name in ("rgw-beast", "swift")
    )
    two = Comparison(
        baseline="A",
        subjects=("rgw-beast (B)", "swift (B)"),
        effects=effects,
        tests=2,
        unlike=("kernel", "cores"),
    )
    (figure,) = change_maps(two)
    assert "layouts of the other run are faster in 2 of 2 cells" in figure.finding
    assert figure.caption.endswith("The runs differ in 2 guard facts.")


def test_without_anything_to_compare_there_is_no_map() -> None:
    assert change_maps(comparison(effect(None, "not comparable"))) == ()


def test_the_noise_floor_of_the_test_bed_is_in_the_caption() -> None:
    floor = NoiseFloor(
        metric="throughput",
        layout="a",
        control="a-again",
        ratio=1.043,
        low=1.03,
        high=1.06,
        pairs=40,
        cells=8,
        repeats=5,
    )
    (figure,) = change_maps(comparison(effect(1.5, "better"), noise=(floor,)))
    assert "noise floor of this test bed is 4 %" in figure.caption


@pytest.mark.parametrize(
    ("ratio", "words"),
    [
        (1.344, "+34 %"),
        (0.95, "−5 %"),
        (1.004, "+0.4 %"),
        (1.0, "0 %"),
        (3.2, "3.2×"),
        (120.4, "120×"),
    ],
)
def test_a_change_is_shown_in_per_cent_or_as_a_multiple(ratio: float, words: str) -> None:
    assert show_percent(ratio) == words
