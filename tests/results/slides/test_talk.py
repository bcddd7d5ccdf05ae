from pathlib import Path

import pytest

from fake_knobs import FEW
from fake_run import StepFaults, fake_run
from fake_tuning import FakeCourse, fake_tuning
from made_rows import altered, changed, present
from talks import FIVE, SHORT, SPOILT, slide, text_of, with_control
from weighbridge.results.analysis.comparison import Verdict
from weighbridge.results.analysis.findings import headline
from weighbridge.results.doubt import Doubt
from weighbridge.results.figures import show_ratio
from weighbridge.results.record.manifest import Sheet
from weighbridge.results.record.resolved import PlannedLayout, PlannedVisit
from weighbridge.results.record.store import RunStore
from weighbridge.results.record.telemetry import Attested
from weighbridge.results.show.theme import DARK, LIGHT, styles
from weighbridge.results.slides.evidence import Evidence, evidence
from weighbridge.results.slides.fitting import ROOM_PT, SMALLEST_PT, body_pt, size_for
from weighbridge.results.slides.powerpoint import powerpoint
from weighbridge.results.slides.slide import BarChart, Deck, SeriesChart
from weighbridge.results.slides.talk import talk
from weighbridge.results.slides.tuning import one_setting_each
from weighbridge.results.statistics import Ratio
from weighbridge.suites import Layer, Workload


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


def test_the_first_slide_answers_in_a_sentence_with_ratios_and_repeats(compared: Evidence) -> None:
    first = talk(compared).slides[0]
    assert first.title == headline(compared.findings)
    assert "rgw-beast or swift?" in first.lead
    for card, pairs in zip(first.cards, compared.pairs.values(), strict=True):
        (pair,) = pairs
        assert card.figure == show_ratio(present(pair.ratio).value)
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


def test_titles_of_results_are_sentences_and_notes_name_every_repeat(compared: Evidence) -> None:
    deck = talk(compared)
    throughput = slide(deck, "throughput-small-read")
    (pair,) = compared.pairs["small-read", "read", "swift", "locust"]
    ratio = show_ratio(present(pair.ratio).value)
    assert throughput.title.startswith(f"rgw-beast serves {ratio} (")
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
    grid = present(slide(talk(five), "recap").grid)
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
    grid = present(slide(talk(evidence(store)), "set-up").grid)
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
    names = [bar.name for bar in present(one.chart).bars]  # type: ignore[union-attr]
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


def test_one_repeat_makes_no_claim_on_any_slide_of_results(tmp_path: Path) -> None:
    deck = talk(evidence(fake_run(tmp_path, workloads=SHORT[:1], repeats=1)))
    for one in deck.slides:
        if one.key.startswith(("answer", "recap", "latency", "throughput")):
            assert "provisional" in text_of(one)
    chart = slide(deck, "throughput").chart
    assert isinstance(chart, SeriesChart)
    assert all(point.low is None for series in chart.series for point in series.points)


def test_what_failed_is_marked_and_not_joined(tmp_path: Path) -> None:
    compared = evidence(fake_run(tmp_path, workloads=SHORT, repeats=1, spoilt=SPOILT))
    deck = talk(compared)
    ends = text_of(slide(deck, "limits-")) + text_of(
        next(one for one in deck.slides if one.key == "limits")
    )
    assert "Not valid: not measured (swift: 64 MB reads at 16 workers)." in ends
    assert "(swift: 1 MB reads at 16 workers)." in ends
    chart = slide(deck, "throughput-small-read").chart
    assert isinstance(chart, SeriesChart)
    assert {(one.name, len(one.points)) for one in chart.series} == {("rgw-beast", 2), ("swift", 1)}
    assert "Not measured" not in slide(deck, "throughput-small-write").foot
    assert "ot measured: swift at 16" in slide(deck, "throughput-large-read").foot


def test_an_invalid_repeat_is_a_cross_without_a_line(tmp_path: Path) -> None:
    spoilt = StepFaults(erring=(("rgw-beast", "small-write", 16),))
    deck = talk(evidence(fake_run(tmp_path, workloads=SHORT[1:2], repeats=1, spoilt=spoilt)))
    for key in ("latency", "throughput"):
        chart = slide(deck, key).chart
        assert isinstance(chart, SeriesChart)
        (cross,) = (one for one in chart.series if not one.joined)
        assert (cross.name, len(cross.points)) == ("rgw-beast, not ranked", 1)
        assert "×: invalid" in slide(deck, key).foot


def test_too_few_samples_for_a_p90_leave_latency_without_a_slide_and_say_so(tmp_path: Path) -> None:
    compared = evidence(fake_run(tmp_path, workloads=SHORT[2:], repeats=1))
    deck = talk(altered(compared, rows=tuple(changed(row, p90_ms=None) for row in compared.rows)))
    assert not [one for one in deck.slides if one.key.startswith("latency")]
    assert "too few samples" in slide(deck, "throughput").foot


def test_a_run_that_was_killed_is_called_incomplete(tmp_path: Path) -> None:
    absent = StepFaults(absent=(("swift", "small-read", 16),))
    store = fake_run(tmp_path, workloads=SHORT[:1], repeats=1, spoilt=absent)
    store.set_state("interrupted", error="ended by SIGINT")
    deck = talk(evidence(store))
    assert "This run is not complete: interrupted: ended by SIGINT." in deck.slides[0].lines
    assert next(one for one in deck.slides if one.key == "limits").title.startswith(
        "The run is not complete (interrupted)"
    )


def test_a_run_without_measurements_has_a_talk_that_says_so(tmp_path: Path) -> None:
    absent = tuple(
        (layout, "small-read", workers) for layout in ("rgw-beast", "swift") for workers in (1, 16)
    )
    spoilt = StepFaults(absent=absent)
    deck = talk(evidence(fake_run(tmp_path, workloads=SHORT[:1], repeats=1, spoilt=spoilt)))
    assert deck.title == "Nothing valid was measured"
    assert all(one.chart is None for one in deck.slides)
    assert "nothing was measured" in text_of(deck.slides[0]).lower()


def test_a_single_layout_is_not_compared(tmp_path: Path) -> None:
    deck = talk(evidence(fake_run(tmp_path, workloads=SHORT[:1], repeats=1, layouts=("swift",))))
    assert deck.title == "swift, measured alone"
    assert not [one for one in deck.slides if one.key.startswith("recap")]
    assert slide(deck, "throughput").title.startswith("swift serves at most ")


def test_an_a_a_control_gives_the_noise_floor_and_is_in_no_chart_or_table(tmp_path: Path) -> None:
    store = fake_run(
        tmp_path, workloads=SHORT[:1], repeats=5, layouts=("rgw-beast", "swift", "rgw-haproxy")
    )
    deck = talk(evidence(with_control(store)))
    assert "Noise floor, rgw-beast vs itself: throughput " in text_of(deck.slides[0])
    assert "rgw-haproxy" not in "".join(text_of(one) for one in deck.slides)
    assert "Noise floor of throughput" in "\n".join(slide(deck, "recap").notes)


def attested(store: RunStore, found: dict[str, float], promised: float, repeat: int = 0) -> None:
    disk = {"host": "store-2", "kind": "disk", "what": "disk wb0 write", "unit": "B/s"}
    for layout, value in found.items():
        figure = {"layout": layout, "repeat": repeat, "value": value, "promised": promised}
        store.attest([Attested.model_validate({**disk, **figure})])


def test_hosts_below_their_promise_are_on_the_set_up_slide(tmp_path: Path) -> None:
    store = fake_run(tmp_path, workloads=SHORT[:1], repeats=1)
    attested(store, {"rgw-beast": 91e6, "swift": 88e6}, promised=1e8)
    title = slide(talk(evidence(store)), "set-up").title
    assert title.endswith("attested capacity is below its promise for swift")


def test_figures_beyond_their_bound_are_counted_where_the_medians_are_equal(tmp_path: Path) -> None:
    store = fake_run(tmp_path, workloads=SHORT[:1], repeats=3)
    for repeat, slow in enumerate((1e8, 1e8, 4e7)):
        attested(store, {"rgw-beast": 1e8, "swift": slow}, promised=2e7, repeat=repeat)
    title = slide(talk(evidence(store)), "set-up").title
    assert title.endswith("attested capacity is within bounds, except for 1 of 1 figure")


def test_differing_hosts_are_on_the_set_up_and_the_last_slides(tmp_path: Path) -> None:
    store = fake_run(tmp_path, workloads=SHORT[:1], repeats=1)
    attested(store, {"rgw-beast": 197e6, "swift": 142e6}, promised=1e8)
    deck = talk(evidence(store))
    compared = "1 of 1 figures of the hosts differ beyond their bound over 2 deployments"
    assert compared in text_of(slide(deck, "set-up"))
    assert f"{compared}." in next(one for one in deck.slides if one.key == "limits").lines


def test_layers_are_a_table_where_a_run_has_them(tmp_path: Path) -> None:
    layers: tuple[Layer, ...] = ("disk", "network", "rados", "object-server")
    store = fake_run(tmp_path, workloads=SHORT[:1], repeats=1, layers=layers)
    one = slide(talk(evidence(store)), "layers")
    names = [line[0].text for line in present(one.grid).lines]
    assert names == ["", "Gateway", "Object servers", "RADOS", "Network", "Disks"]
    assert "% of" in one.title


def test_more_than_six_layouts_go_on_several_slides_with_the_first_on_each(tmp_path: Path) -> None:
    workloads: tuple[Workload, ...] = (altered(SHORT[0], workers=(1,)),)
    names = tuple(f"layout-{number}" for number in range(9))
    run = fake_run(tmp_path, workloads=workloads, repeats=1, layouts=names, telemetry=False, seed=7)
    deck = talk(evidence(run))
    charts = [one.chart for one in deck.slides if one.key.startswith("throughput")]
    drawn = [{bar.name for bar in chart.bars} for chart in charts if isinstance(chart, BarChart)]
    assert all("layout-0" in names_of for names_of in drawn)
    assert set().union(*drawn) == set(names)
    assert max(len(names_of) for names_of in drawn) <= 6
    titles = [one.title for one in deck.slides if one.key.startswith("set-up")]
    assert [title.rsplit("(", 1)[1] for title in titles] == ["1 of 2)", "2 of 2)"]


def test_a_single_worker_count_is_drawn_as_bars(tmp_path: Path) -> None:
    workloads = (altered(SHORT[0], workers=(8,)),)
    compared = evidence(fake_run(tmp_path, workloads=workloads, repeats=2))
    one = slide(talk(compared), "throughput")
    assert isinstance(one.chart, BarChart)
    assert [(bar.name, bar.value) for bar in one.chart.bars] == [
        (row.layout, row.value("throughput")) for row in compared.rows
    ]
    assert one.title.endswith("at 8 workers")


def test_what_a_folder_lacks_is_on_the_last_slides(tmp_path: Path) -> None:
    store = fake_run(tmp_path, workloads=SHORT[:1], repeats=1)
    (path,) = (store.folder / "telemetry").glob("swift.*w16*")
    path.unlink()
    compared = evidence(store)
    assert compared.gaps
    lines = next(one for one in talk(compared).slides if one.key == "limits").lines
    assert any(compared.gaps[0][1:] in line for line in lines)


@pytest.fixture(scope="module")
def tuned(tuned_run: RunStore) -> Evidence:
    return evidence(tuned_run)


@pytest.fixture(scope="module")
def deck(tuned: Evidence) -> Deck:
    return talk(tuned)


@pytest.mark.long
def test_the_talk_of_a_tuning_goes_from_the_answer_to_how_to_repeat_it(deck: Deck) -> None:
    keys = list(dict.fromkeys(one.key.rstrip("0123456789").rstrip("-") for one in deck.slides))
    assert keys[:6] == ["answer", "set-up", "tried", "ledger", "tornado", "no-effect"]
    assert keys[6:] == ["chosen", "confirmation", "limits", "repeat"]


def test_every_table_fits_its_slide_in_readable_type(deck: Deck) -> None:
    for one in deck.slides:
        if one.grid is not None:
            size = size_for(one.grid, ROOM_PT, body_pt(one.title, one.lead, one.foot))
            assert size is not None, one.key
            assert size >= SMALLEST_PT


def test_bars_are_the_effects_of_the_ledger(tuned: Evidence, deck: Deck) -> None:
    chart = slide(deck, "tornado-1").chart
    assert isinstance(chart, BarChart)
    ratios = [one.effects[0].ratio for one in present(tuned.tuned).table.entries]
    known = sorted((one for one in ratios if one is not None), key=lambda one: -one.either_way)
    assert [bar.value for bar in chart.bars] == pytest.approx(
        [(one.value - 1) * 100 for one in known[: len(chart.bars)]]
    )


def test_the_notes_have_the_files_to_paste_and_every_figure(tuned: Evidence, deck: Deck) -> None:
    fragments = present(tuned.tuned).to_paste
    assert fragments
    notes = "\n".join(note for one in deck.slides for note in one.notes)
    for fragment in fragments:
        assert fragment.text in notes
    for entry in present(tuned.tuned).table.entries:
        for effect in entry.effects:
            assert effect.text in notes


@pytest.mark.parametrize("rounds", [0, 1])
def test_an_interrupted_tuning_has_a_talk_that_says_so(tmp_path: Path, rounds: int) -> None:
    course = FakeCourse(rounds=rounds, state="interrupted", choose=False)
    deck = talk(evidence(fake_tuning(tmp_path, course, knobs=FEW)))
    assert any("not complete: interrupted" in line for line in slide(deck, "answer").lines)
    assert slide(deck, "limits").title.startswith("The tuning is not complete")
    assert not any(one.key.startswith(("chosen", "confirmation")) for one in deck.slides)
    assert powerpoint(deck)


def test_a_winner_that_was_not_confirmed_is_not_praised(tmp_path: Path) -> None:
    deck = talk(evidence(fake_tuning(tmp_path, FakeCourse(confirmed=1.0), knobs=FEW)))
    assert "was not confirmed" in slide(deck, "confirmation").title
    assert deck.title.endswith("the winner was not confirmed")
