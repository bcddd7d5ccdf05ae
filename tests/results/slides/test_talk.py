from __future__ import annotations

from pathlib import Path

import pytest

from fake_run import fake_run
from made_rows import altered
from talks import FIVE, SHORT, slide, text_of
from weighbridge.results.analysis.comparison import Verdict
from weighbridge.results.analysis.findings import headline
from weighbridge.results.charts.chart_theme import DARK, LIGHT, styles
from weighbridge.results.doubt import Doubt
from weighbridge.results.figures import show_ratio
from weighbridge.results.record.manifest import Sheet
from weighbridge.results.record.resolved import PlannedLayout, PlannedVisit
from weighbridge.results.slides.evidence import Evidence, evidence
from weighbridge.results.slides.slide import SeriesChart
from weighbridge.results.slides.talk import talk
from weighbridge.results.slides.tuning import one_setting_each
from weighbridge.results.statistics import Ratio


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    return evidence(fake_run(tmp_path_factory.mktemp("runs"), workloads=SHORT[:2], repeats=5))


@pytest.fixture(scope="module")
def five(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    return evidence(
        fake_run(tmp_path_factory.mktemp("runs"), workloads=SHORT[:2], repeats=5, layouts=FIVE)
    )


def test_a_talk_goes_from_the_answer_to_how_to_repeat_it(compared: Evidence) -> None:
    keys = [one.key.split("-")[0] for one in talk(compared).slides]
    of_results = ["latency", "throughput"]
    assert keys == ["answer", "set", "recap", *of_results * 2, "limits", "limits", "repeat"]


def test_the_first_slide_answers_in_one_sentence_with_ratios_intervals_and_repeats(
    compared: Evidence,
) -> None:
    first = talk(compared).slides[0]
    assert first.title == headline(compared.findings)
    assert "rgw-beast or swift?" in first.lead
    for card, pairs in zip(first.cards, compared.pairs.values(), strict=True):
        (pair,) = pairs
        assert pair.ratio is not None
        assert card.figure == show_ratio(pair.ratio.value)
        assert "n = 5" in card.detail
    assert "noise floor of this machine is not known" in text_of(first)


def test_the_order_of_blocks_is_called_balanced_only_where_it_is(compared: Evidence) -> None:
    def ordered(*blocks: str) -> Evidence:
        names = {"r": "rgw-beast", "s": "swift"}
        visits = tuple(
            PlannedVisit(layout=names[one], repeat=place)
            for place, block in enumerate(blocks)
            for one in block
        )
        return altered(compared, plan=altered(compared.plan, visits=visits))

    assert "in balanced order" in text_of(talk(ordered("rs", "sr", "sr", "rs", "sr")).slides[0])
    for plain in (compared, ordered("rs", "rs", "rs", "rs", "rs")):
        assert " order" not in text_of(talk(plain).slides[0])


def test_two_layouts_with_wide_intervals_are_not_called_alike(compared: Evidence) -> None:
    def title(verdict: Verdict) -> str:
        about: dict[str, object] = {
            "ratio": Ratio(value=1.01, low=0.59, high=1.7, repeats=5),
            "verdict": verdict,
        }
        found = tuple(one.model_copy(update=about) for one in compared.findings)
        return slide(talk(altered(compared, findings=found)), "throughput-small-read").title

    said = title("not significant")
    assert "no difference found (0.59× to 1.7×) at 1 to 16 workers" in said
    assert title("provisional") == f"Provisional: {said}"
    assert "serve 1 MB reads within 1 % of each other" in title("too small to matter")


def test_a_p90_set_by_a_cpu_limit_is_not_comparable_and_not_in_titles(compared: Evidence) -> None:
    held = Doubt(what="set by the CPU limit", grade="grave", words="throttled", metrics=("p90",))

    def doubting(*layouts: str) -> Evidence:
        rows = tuple(
            altered(one, doubts=(held,)) if one.layout in layouts else one for one in compared.rows
        )
        return altered(compared, rows=rows)

    for layouts in (("swift",), ("rgw-beast", "swift")):
        deck = talk(doubting(*layouts))
        assert slide(deck, "latency-small-read").title.endswith(": not comparable")
        notes = "\n".join(slide(deck, "throughput-small-read").notes)
        assert notes.count("ms (not comparable: throttled)") == 2 * len(layouts)


def test_a_title_names_only_comparable_worker_counts(compared: Evidence) -> None:
    busy = Doubt(what="machine busy", grade="grave", words="other programs used half")
    rows = tuple(
        altered(row, doubts=(busy,)) if (row.layout, row.workers) == ("swift", 16) else row
        for row in compared.rows
    )
    title = slide(talk(altered(compared, rows=rows)), "throughput-small-read").title
    assert title.endswith("swift’s 1 MB reads at 1 worker")


def test_titles_of_results_are_sentences_with_figures_and_notes_name_every_repeat(
    compared: Evidence,
) -> None:
    deck = talk(compared)
    throughput = slide(deck, "throughput-small-read")
    (pair,) = compared.pairs["small-read", "read", "swift", "locust"]
    assert pair.ratio is not None
    assert throughput.title.startswith(f"rgw-beast serves {show_ratio(pair.ratio.value)} (")
    assert throughput.title.endswith("swift’s 1 MB reads at 1 to 16 workers")
    assert all("n = 5" in "\n".join(one.notes) for one in deck.slides if one.chart is not None)
    # The sentence, and a line for each layout.
    assert sum("16 workers" in note for note in throughput.notes) == 3


def test_charts_have_the_figures_of_the_table(compared: Evidence) -> None:
    deck = talk(compared)
    lines, paths = (slide(deck, f"{what}-small-read").chart for what in ("throughput", "latency"))
    assert isinstance(lines, SeriesChart)
    assert isinstance(paths, SeriesChart)
    assert (lines.form, paths.form) == ("lines", "paths")
    assert lines.x.ticks == (1, 16)
    for layout in compared.layouts:
        rows = [
            row for row in compared.rows if row.layout == layout and row.workload == "small-read"
        ]
        (line,) = (one for one in lines.series if one.name == layout)
        (path,) = (one for one in paths.series if one.name == layout)
        assert [point.y for point in line.points] == [row.value("throughput") for row in rows]
        assert [(point.x, point.y, point.label) for point in path.points] == [
            (row.value("throughput"), row.value("p90"), str(row.workers)) for row in rows
        ]
        assert [(point.low, point.high) for point in line.points] == [
            (min(rates), max(rates))
            for row in rows
            if (rates := [point.value("throughput") for point in row.used])
        ]
        assert all(point.high is not None and point.high <= lines.y.high for point in line.points)


def test_the_map_has_a_cell_for_each_layout_metric_and_worker_count(five: Evidence) -> None:
    grid = slide(talk(five), "recap").grid
    assert grid is not None
    assert [cell.text for cell in grid.lines[0] if not cell.covered][2:] == list(FIVE[1:])
    shown = {
        (one.workers, one.subject, one.metric): one
        for one in five.comparison.effects
        if one.workload == "small-read"
    }
    line = next(
        cells for cells in grid.lines if cells[0].text == "1 MB reads" and not cells[0].covered
    )
    workers = None if line[1].text == "all" else int(line[1].text)
    for place, (subject, metric) in enumerate(
        (name, metric) for name in FIVE[1:] for metric in ("throughput", "p90")
    ):
        effect, cell = shown[workers, subject, metric], line[2 + place]
        if effect.verdict in ("better", "worse"):
            assert cell.text.startswith(("+", "\N{MINUS SIGN}")) or cell.text.endswith("×")
        else:
            assert cell.text in ("~", "×") or cell.text.startswith("(")


def test_settings_that_differ_are_shaded_and_common_ones_are_merged(tmp_path: Path) -> None:
    store = fake_run(tmp_path, workloads=SHORT[:1], repeats=1)
    facts = {"replicas": "2", "acknowledgement": "majority"}
    store.add_facts([Sheet(title="gateway", layout="swift", facts=facts)])
    grid = slide(talk(evidence(store)), "set-up").grid
    assert grid is not None
    lines = {line[0].text: line for line in grid.lines}
    assert [cell.text for cell in lines["replicas"][1:]] == ["3", "2"]
    assert all(cell.fill is not None for cell in lines["replicas"])
    assert [(cell.text, cell.across, cell.covered) for cell in lines["acknowledged when"][1:]] == [
        ("majority", 2, False),
        ("", 1, True),
    ]
    assert lines["acknowledged when"][1].fill is None


def test_more_settings_than_a_slide_holds_are_counted_and_in_the_notes(tmp_path: Path) -> None:
    store = fake_run(tmp_path, workloads=SHORT[:1], repeats=1)
    for layout in ("rgw-beast", "swift"):
        facts = {f"setting {number}": f"{layout} {number}" for number in range(40)}
        store.add_facts([Sheet(title="more", layout=layout, facts=facts)])
    deck = talk(evidence(store))
    tables = [one for one in deck.slides if one.key.startswith("set-up")]
    shown = [
        line[0].text
        for one in tables
        if one.grid is not None
        for line in one.grid.lines
        if line[0].text.startswith("setting ")
    ]
    assert 5 < len(shown) == len(set(shown)) < 40
    assert tables[-1].title == "What differs between the layouts"
    assert f"{40 - len(shown)} more settings differ: see the notes." in tables[-1].foot
    assert "setting 39: rgw-beast: rgw-beast 39; swift: swift 39" in tables[0].notes


def test_layouts_are_a_tuning_only_where_they_differ_in_one_setting() -> None:
    usual = {"radosgw": {"threads": 512, "tcp_nodelay": True}}
    base = PlannedLayout(name="a", gateway="rgw", release="ceph-16", settings=usual)
    less = altered(base, name="b", settings={"radosgw": {"threads": 256, "tcp_nodelay": True}})
    both = altered(base, name="c", settings={"radosgw": {"threads": 256, "tcp_nodelay": False}})
    assert one_setting_each((base, less)) == {"b": "radosgw threads: 512 → 256"}
    assert one_setting_each((base, less, both)) == {}
    assert one_setting_each((base, altered(base, name="d"))) == {}
    assert one_setting_each((base, altered(less, gateway="swift"))) == {}


def test_a_tuning_has_a_bar_for_each_setting_the_largest_change_first(tmp_path: Path) -> None:
    store = fake_run(tmp_path, workloads=SHORT[:1], repeats=5, layouts=("t512", "t256", "t128"))
    plan = store.plan()
    tuned = tuple(
        altered(layout, settings={"radosgw": {"threads": int(layout.name[1:])}})
        for layout in plan.layouts
    )
    (store.folder / "plan.resolved.json").write_text(altered(plan, layouts=tuned).model_dump_json())
    one = slide(talk(evidence(store)), "tuning")
    assert one.chart is not None
    names = [bar.name for bar in one.chart.bars]  # type: ignore[union-attr]
    assert names == ["radosgw threads: 512 → 128", "radosgw threads: 512 → 256"]
    assert "radosgw threads: 512 → 128 changes the throughput of 1 MB reads most" in one.title


def test_a_dark_deck_has_the_colours_of_the_dark_look(compared: Evidence) -> None:
    for look in (LIGHT, DARK):
        deck = talk(compared, look)
        assert deck.look == look
        assert deck.colours == tuple(style.colour for style in styles(compared.plan.layouts, look))


def test_the_command_that_repeats_the_run_is_on_the_last_slide(compared: Evidence) -> None:
    last = talk(compared).slides[-1]
    assert last.code == "weighbridge compare --suite made-up.yaml"
    assert f"seed {compared.plan.suite.seed}" in text_of(last)


def test_with_several_layouts_the_title_names_the_most_and_the_least(tmp_path: Path) -> None:
    # Each fake layout is slower than the one before it; in this order the first is in the middle.
    store = fake_run(tmp_path, workloads=SHORT[:1], repeats=2, layouts=FIVE[:3])
    first, second, third = store.plan().layouts
    (store.folder / "plan.resolved.json").write_text(
        altered(store.plan(), layouts=(second, first, third)).model_dump_json()
    )
    title = slide(talk(evidence(store)), "throughput").title
    assert title.startswith("Provisional: rgw-beast served 1.")
    assert "rgw-civetweb’s 1 MB reads at 1 to 16 workers, rgw-apache-fastcgi 0." in title
