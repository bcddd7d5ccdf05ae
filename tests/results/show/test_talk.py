from dataclasses import replace
from pathlib import Path

import pytest

from chart_sources import replaced
from fake_knobs import FEW
from fake_outages import outage_run
from fake_run import StepFaults, fake_run
from fake_tuning import FakeCourse, fake_tuning
from made_cuts import record_made_cuts
from made_rows import altered, changed, present
from talks import FIVE, SHORT, SPOILT, deck_of, of_workload, slide, text_of, with_control
from weighbridge.results.features.find import Found, FoundKind, FoundRate, highest_rates
from weighbridge.results.features.open_run import open_run
from weighbridge.results.features.outages import outages
from weighbridge.results.features.study import FILE, StudyRun
from weighbridge.results.features.tuning import tuning_result
from weighbridge.results.figures.doubt import Doubt
from weighbridge.results.judge.run_data import RunData
from weighbridge.results.numbers import show_ratio
from weighbridge.results.run.resolved import LatencyBound, Sheet
from weighbridge.results.run.store import RunStore
from weighbridge.results.run.telemetry import Attested
from weighbridge.results.show.deck import Deck, spoken
from weighbridge.results.show.slide import MAX_NOTE_WORDS, MAX_SLIDES, SHADE
from weighbridge.results.show.talk import talk
from weighbridge.suites import Layer, Overload
from weighbridge.suites.studies import loader

SIX = tuple(
    altered(SHORT[number % 2], name=f"workload-{number}", workers=(4,)) for number in range(6)
)
BUSY = Doubt(what="machine busy", grade="grave", words="other programs used half")
HELD = Doubt(what="set by the CPU limit", grade="grave", words="throttled", metrics=("p90",))


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> RunData:
    return open_run(fake_run(tmp_path_factory.mktemp("runs"), workloads=SHORT[:2]).folder)


@pytest.fixture(scope="module")
def deck(compared: RunData) -> Deck:
    return talk(compared)


def with_rows(data: RunData, rows: object) -> Deck:
    other = open_run(data.store.folder)
    other.__dict__["rows"] = tuple(rows)  # type: ignore[arg-type]
    return talk(other)


def run_of(kind: str, folder: Path) -> RunStore:
    """A run of a kind whose question is not who is faster, or whose talk is not usual."""
    if kind == "outages":
        return outage_run(folder)
    if kind == "tuning":
        return fake_tuning(folder)
    if kind == "study":
        study = loader.load(loader.shipped()["swift-vs-rgw-read-2014"])[1]
        loads = [altered(one, runtime=1.0) for one in loader.suite_of(study, "lab").workloads]
        store = fake_run(folder, layouts=("rgw-civetweb", "swift"), workloads=loads, repeats=1)
        (store.folder / FILE).write_text(StudyRun(study=study, scale="lab").model_dump_json())
        return store
    if kind == "overload":
        beyond = altered(SHORT[0], overload=Overload(within=1.0), workers=(4,), rate_per_s=100.0)
        over = [
            altered(beyond, name=f"read-at-{rate:g}", rate_per_s=rate) for rate in (100.0, 200.0)
        ]
        return fake_run(folder, workloads=over, repeats=2)
    absent = tuple((name, "small-read", workers) for name in FIVE for workers in (1, 16))
    repeats = {"once": 1, "spoilt": 2}.get(kind, 5)
    spoilt = {"spoilt": SPOILT, "nothing": StepFaults(absent=absent)}.get(kind)
    layers: tuple[Layer, ...] = ("disk", "network", "rados") if kind == "layers" else ()
    store = fake_run(
        folder,
        workloads={"six": SIX, "spoilt": SHORT}.get(kind, SHORT[:1]),
        layouts=FIVE[:1] if kind == "alone" else FIVE if kind == "five" else (FIVE[0], "swift"),
        repeats=repeats,
        spoilt=spoilt,
        layers=layers,
    )
    if kind == "cuts":
        record_made_cuts(store.folder)
    return store


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        ("once", "RGW was 1.4× as fast as Swift at 1 MB reads"),
        ("spoilt", "RGW was 1."),
        ("six", "in all 6"),
        ("five", "rgw-beast"),
        ("alone", "rgw-beast, measured alone"),
        ("nothing", "Nothing valid was measured"),
        ("layers", "RGW is 1."),
        ("cuts", "swift lost acknowledged writes in 3 of 20 power cuts"),
        ("outages", "Longest stall of a worker: 21"),
        ("tuning", "confirmed on fresh deployments"),
        ("study", "None of 9 conclusions contradicted, none supported, 9 open"),
        ("overload", "he most 1 MB reads within 1 s"),
    ],
)
def test_a_talk_is_short_and_begins_with_the_answer_to_the_runs_question(
    kind: str, answer: str, tmp_path: Path
) -> None:
    deck = deck_of(run_of(kind, tmp_path))
    first, last = deck.slides[0], deck.slides[-1]
    assert len(deck.slides) <= MAX_SLIDES
    assert answer in first.title == deck.title
    assert first.lead.endswith("?") or "?" in first.lead
    assert "5 hosts" in first.lines[-1]
    assert "over the S" in first.lines[-1]
    assert last.code.startswith("weighbridge ")
    assert "How sure" in deck.slides[-2].title
    assert deck.pages[len(deck.slides)].title == "Backup"
    assert not any(page.title.startswith("Provisional") for page in deck.pages)
    assert all(len(spoken(page.notes).split()) <= MAX_NOTE_WORDS for page in deck.pages)


def test_the_first_slide_names_systems_api_hosts_and_repeats(deck: Deck, compared: RunData) -> None:
    first = deck.slides[0]
    assert "rgw-beast or swift?" in first.lead
    assert [card.about for card in first.cards] == ["1 MB reads", "1 MB writes"]
    assert all("n = 5" in card.detail and not card.caveat for card in first.cards)
    assert first.lines[-1] == "rgw-beast and swift, both over the Swift API, 5 hosts, 5 repeats."


def test_a_workload_has_a_slide_whose_charts_are_the_figures_of_the_table(
    deck: Deck, compared: RunData
) -> None:
    page = of_workload(deck, "1 MB reads")
    (pair,) = [one for one in compared.comparison.effects if one.workload == "small-read"][:1]
    low = show_ratio(present(present(pair.ratio).inverted.low)).removesuffix("×")
    assert f"({low} to " in page.title
    assert page.foot.startswith("Figures: geometric mean of 5 repeats; whiskers: 95 % interval")
    for chart, metric in zip(page.charts, ("throughput", "p90"), strict=True):
        assert chart.form == "lines"
        for series in chart.series:
            figures = [
                row.figure(metric)  # type: ignore[arg-type]
                for row in compared.rows
                if (row.layout, row.workload) == (series.name, "small-read")
            ]
            assert [(point.y, point.low, point.high) for point in series.points] == [
                (figure.value, figure.low, figure.high) for figure in figures
            ]


def test_results_come_before_settings_which_are_shaded_where_they_differ(tmp_path: Path) -> None:
    store = fake_run(tmp_path, workloads=SHORT[:1], repeats=1)
    store.add_facts([Sheet(title="gateway", layout="swift", facts={"replicas": "2"})])
    deck = deck_of(store)
    assert any(page.charts for page in deck.slides)
    lines = {line[0].text: line for line in slide(deck, "Settings").table}
    assert [cell.text for cell in lines["replicas"][1:]] == ["3", "2"]
    assert {cell.fill for cell in lines["replicas"][1:]} == {SHADE}
    assert {cell.fill for cell in lines["acknowledgement"]} == {""}


def test_more_workloads_than_can_be_followed_are_behind_the_divider(tmp_path: Path) -> None:
    deck = deck_of(run_of("six", tmp_path))
    places = [number for number, page in enumerate(deck.pages) if page.charts]
    divider = [page.title for page in deck.pages].index("Backup")
    assert sum(place < divider for place in places) == 4
    assert sum(place > divider for place in places) == 2


def test_every_figure_is_in_a_table_of_the_backup(deck: Deck, compared: RunData) -> None:
    text = text_of(slide(deck, "Throughput and p90"))
    changes = text_of(slide(deck, "Change from rgw-beast"))
    for row in compared.rows:
        assert f"{row.value('throughput'):,.0f}"[:3] in text
    assert changes.count("\N{MINUS SIGN}") + changes.count("~") >= 4


@pytest.mark.parametrize(
    ("doubt", "layouts", "crosses"), [(BUSY, ("swift",), 2), (HELD, ("rgw-beast", "swift"), 2)]
)
def test_what_is_not_comparable_is_drawn_as_crosses_without_a_line(
    doubt: Doubt, layouts: tuple[str, ...], crosses: int, compared: RunData
) -> None:
    rows = [
        altered(row, doubts=(doubt,)) if row.layout in layouts and row.workers == 16 else row
        for row in compared.rows
    ]
    page = of_workload(with_rows(compared, rows), "1 MB reads")
    apart = [one for chart in page.charts for one in chart.series if not one.joined]
    assert len(apart) == crosses
    assert all("not comparable" in one.name and len(one.points) == 1 for one in apart)


@pytest.mark.parametrize(("known", "words"), [(True, ""), (False, "p90: too few samples for one")])
def test_p90_is_called_unknown_only_where_it_is(known: bool, words: str, compared: RunData) -> None:
    rows = [row if known else changed(row, p90_ms=None) for row in compared.rows]
    deck = with_rows(compared, rows)
    page = of_workload(deck, "1 MB reads")
    assert len(page.charts) == 1 + known
    assert words in page.foot
    assert known != any("too few" in text_of(page) for page in deck.slides[1:3])


def test_a_caveat_is_a_line_below_the_title_and_a_dashed_card(tmp_path: Path) -> None:
    deck = deck_of(run_of("spoilt", tmp_path))
    for page in deck.slides[:2]:
        assert "a claim needs 5 repeats of each side" in page.caveat
    assert [card.caveat for card in deck.slides[0].cards] == [True] * 3
    once = deck_of(run_of("once", tmp_path))
    assert "all of 4 figures are provisional" in slide(once, "How sure").title
    throughput = once.slides[0].charts[0]
    assert all(point.low is None for series in throughput.series for point in series.points)


def test_what_was_not_measured_and_why_is_said(tmp_path: Path) -> None:
    store = run_of("spoilt", tmp_path)
    store.set_state("interrupted", error="ended by SIGINT")
    next((store.folder / "telemetry").glob("swift.*w1.*")).unlink()
    deck = deck_of(store)
    for gap in open_run(store.folder).gaps:
        assert gap[1:] in text_of(slide(deck, "How sure"))
    assert deck.slides[0].lines[0] == "This run is not complete: interrupted: ended by SIGINT."
    assert "swift at 16" in of_workload(deck, "64 MB reads").foot
    assert "not complete" in slide(deck, "How sure").title
    caveats = text_of(slide(deck, "All caveats"))
    assert "swift: 64 MB reads at 16 workers" in caveats
    assert "swift: 1 MB reads at 16 workers" in caveats


def test_an_a_a_control_is_a_sign_of_trust_and_in_no_chart_or_table(tmp_path: Path) -> None:
    layouts = ("rgw-beast", "swift", "rgw-haproxy")
    deck = deck_of(with_control(fake_run(tmp_path, workloads=SHORT[:1], layouts=layouts)))
    assert "A/A control: rgw-beast measured again gave" in text_of(slide(deck, "How sure"))
    pages = [page for page in deck.pages if "How sure" not in page.title]
    assert "rgw-haproxy" not in "".join(map(text_of, pages))


@pytest.mark.parametrize(
    ("gave", "state"),
    [(None, "not attested"), ((197e6, 196e6), "equal"), ((197e6, 90e6), "differ")],
)
def test_whether_hosts_are_equal_is_a_sign_of_trust(
    gave: tuple[float, float] | None, state: str, tmp_path: Path
) -> None:
    store = fake_run(tmp_path, workloads=SHORT[:1], repeats=1)
    for layout, value in zip(("rgw-beast", "swift"), gave or (), strict=False):
        disk = {"host": "store-2", "kind": "disk", "what": "disk wb0 write", "unit": "B/s"}
        figure = {"layout": layout, "repeat": 0, "value": value, "promised": 80e6}
        store.attest([Attested.model_validate({**disk, **figure})])
    signs = {line[0].text: line[1].text for line in slide(deck_of(store), "How sure").table}
    assert signs["Hosts"] == state


def test_many_layouts_and_a_single_worker_count_are_bars(tmp_path: Path) -> None:
    names = tuple(f"layout-{number}" for number in range(9))
    short = (altered(SHORT[0], workers=(1, 4)),)
    page = of_workload(
        deck_of(fake_run(tmp_path, workloads=short, repeats=1, layouts=names, telemetry=False)),
        "1 MB reads",
    )
    assert all("at 4 workers" in chart.title for chart in page.charts)
    assert [point.x for point in page.charts[0].series[0].points] == list(names)


def test_the_rate_within_a_bound_is_the_answer_of_a_search(compared: RunData) -> None:
    rates = [
        FoundRate(
            layout=layout,
            api="swift",
            driver="locust",
            workload="small-read",
            connections=16,
            repeats=5,
            steps=40,
            rate_per_s=rate,
            low_per_s=0.9 * rate,
            high_per_s=1.1 * rate,
        )
        for layout, rate in (("rgw-beast", 392.0), ("swift", 95.0))
    ]
    kind = FoundKind(about="1 MB reads", connections=16, rates=tuple(rates))
    data = open_run(compared.store.folder)
    bound = LatencyBound(metric="p90", most_ms=50)
    replaced(data, {highest_rates: Found(bound=bound, kinds=(kind,))})
    first = talk(data).slides[0]
    assert "within p90 <= 50 ms: rgw-beast 392 requests/s" in first.title
    assert [point.high for point in first.charts[0].series[0].points] == pytest.approx(
        [431.2, 104.5]
    )


def test_several_failures_have_a_card_each(tmp_path: Path) -> None:
    data = open_run(outage_run(tmp_path).folder)
    (kind,) = outages(data).kinds
    again = replace(kind, key="again", about="the same again")
    replaced(data, {outages: replace(outages(data), kinds=(kind, again))})
    deck = talk(data)
    assert "in 2 cases" in deck.title
    assert [card.figure for card in deck.slides[0].cards] == ["21 s", "21 s"]
    assert sum("Longest stall of a worker: 21 (" in page.title for page in deck.slides) == 2


def test_layers_are_a_table_where_a_run_has_them(tmp_path: Path) -> None:
    page = slide(deck_of(run_of("layers", tmp_path)), "lose most at")
    names = [line[0].text for line in page.table]
    assert names == ["", "Gateway", "Object servers", "RADOS", "Network", "Disks"]
    assert "% of" in page.title


def test_bars_of_a_tuning_are_its_effects_and_the_ledger_has_all(tuned_data: RunData) -> None:
    deck = talk(tuned_data)
    (bars,) = slide(deck, "changes the throughput").charts[0].series
    result = present(tuning_result.tuned(tuned_data))
    ratios = [entry.effects[0].ratio for entry in result.table.entries]
    ordered = sorted((one for one in ratios if one is not None), key=lambda one: -one.either_way)
    assert [bar.y for bar in bars.points] == pytest.approx(
        [(one.value - 1) * 100 for one in ordered[: len(bars.points)]]
    )
    assert all(bar.low is None or bar.low >= -100 for bar in bars.points)
    ledger = [page for page in deck.pages if "settings better" in page.title]
    effects = [effect for entry in result.table.entries for effect in entry.effects]
    assert sum(len(page.table) - 1 for page in ledger) == len(effects)
    assert any("ceph.conf" in line for line in deck.slides[-1].lines)


@pytest.mark.parametrize(
    ("course", "title", "part"),
    [
        (FakeCourse(rounds=0, state="interrupted", choose=False), "not complete", "interrupted"),
        (FakeCourse(rounds=1, state="interrupted", choose=False), "not complete", "interrupted"),
        (FakeCourse(confirmed=1.0), "was not confirmed", "Not confirmed on fresh deployments"),
    ],
)
def test_a_tuning_that_ended_early_or_was_not_confirmed_says_so(
    course: FakeCourse, title: str, part: str, tmp_path: Path
) -> None:
    deck = deck_of(fake_tuning(tmp_path, course, knobs=FEW))
    assert any(title in page.title for page in deck.slides)
    assert part in "".join(map(text_of, deck.slides))
    assert ", confirmed on" not in deck.title
