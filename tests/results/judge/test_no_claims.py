"""Without claims nothing that is shown claims anything: terminal, page, slides, papers, data."""

import csv
import io
import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import talks
from chart_sources import replaced
from fake_outages import AT, BACK, KEY, SILENT, fake_outage, outage_run
from fake_run import WORKLOADS, StepFaults, fake_run
from made_rows import altered, present
from web_pages import WebPage
from weighbridge.common.errors import InvalidMeasurement
from weighbridge.results import derive
from weighbridge.results.derivation import ANSWER, Derived
from weighbridge.results.features.open_run import open_run
from weighbridge.results.features.outages import (
    OUTAGES,
    OutageKind,
    OutageRow,
    Outages,
    outage_signs,
    outages,
)
from weighbridge.results.figures.doubt import Doubt, PairDoubt
from weighbridge.results.judge.run_data import RunData
from weighbridge.results.judge.trust import TrustSign
from weighbridge.results.outcome import print_outcome
from weighbridge.results.run.durability import Seen, read_outages, record_outage
from weighbridge.results.run.store import RunStore
from weighbridge.results.run.telemetry import Attested
from weighbridge.results.show.deck import Deck
from weighbridge.results.show.exports import produce
from weighbridge.results.show.feature import gallery

CLAIMS = re.compile(
    r"\b(leads|led|faster than|slower than|wins|beats|same hosts|are valid|is faster|is slower)\b"
)
CHOSEN = tuple(altered(one, workers=(1, 16)) for one in WORKLOADS[:2])


def made(folder: Path, *, repeats: int, gave: dict[str, float]) -> RunStore:
    """A run; `gave`: what a host's CPU gave under each layout, of 1400 that are promised."""
    store = fake_run(folder, workloads=CHOSEN, repeats=repeats, telemetry=False)
    if gave:
        one = {"repeat": 0, "host": "gateway-1", "kind": "cpu", "what": "CPU", "promised": 1400.0}
        for name, value in gave.items():
            given = {**one, "unit": "events/s", "layout": name, "value": value}
            store.attest([Attested.model_validate(given)])
    return store


@pytest.fixture(scope="module")
def grave(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    gave = {"rgw-beast": 1395.0, "swift": 245.0}
    return made(tmp_path_factory.mktemp("grave"), repeats=5, gave=gave)


@pytest.fixture(scope="module")
def provisional(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    return made(tmp_path_factory.mktemp("provisional"), repeats=1, gave={})


@pytest.fixture(scope="module")
def below(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    gave = {"rgw-beast": 1250.0, "swift": 960.0}
    return made(tmp_path_factory.mktemp("below"), repeats=5, gave=gave)


@cache
def derived_of(store: RunStore) -> Derived:
    return derive(store.folder, pictures=False)


@cache
def deck_of(store: RunStore) -> Deck:
    return talks.deck_of(store)


def shown(store: RunStore) -> dict[str, str]:
    screen = io.StringIO()
    derived = derived_of(store)
    print_outcome(derived, Console(file=screen, width=140))
    return {
        "terminal": screen.getvalue(),
        "page": WebPage(derived.report.read_text()).readable,
        "slides": "\n".join(map(talks.text_of, deck_of(store).pages)),
        "markdown": produce(open_run(store.folder), "markdown").files[0].content.decode(),
    }


@pytest.mark.parametrize("state", ["grave", "provisional", "below"])
@pytest.mark.long
def test_a_run_without_claims_claims_nothing(state: str, request: pytest.FixtureRequest) -> None:
    words = "not comparable" if state == "grave" else "provisional"
    for place, text in shown(request.getfixturevalue(state)).items():
        found = CLAIMS.search(text)
        assert found is None, f"{place}: {text[max(0, found.start() - 80) : found.end() + 80]}"
        assert words in text.lower(), place


def test_hosts_below_their_promise_are_a_reason_beside_every_figure(below: RunStore) -> None:
    (one,) = derived_of(below).reasons
    assert (one.status, one.where) == ("provisional", "all figures")
    assert one.words.startswith("hosts below promise: CPU of gateway-1 gave 31 % less than")


def test_a_quiet_run_with_enough_repeats_claims_something(tmp_path: Path) -> None:
    found = shown(made(tmp_path, repeats=5, gave={}))
    assert ["RGW is " in found[place] for place in ("terminal", "page")] == [True, True]


def test_a_card_for_an_incomparable_finding_has_no_ratio_and_says_why(grave: RunStore) -> None:
    first = deck_of(grave).slides[0]
    assert first.title.startswith("No ranking: hosts differ: CPU of gateway-1 gave ")
    assert [card.figure for card in first.cards] == ["–", "–"]
    assert all(
        "Not comparable" in card.text and card.detail.startswith("Hosts differ: CPU of gateway-1")
        for card in first.cards
    )


def test_a_card_with_a_caveat_is_dashed_and_the_slide_says_why(provisional: RunStore) -> None:
    first = deck_of(provisional).slides[0]
    assert all(card.caveat and card.figure.startswith("RGW ") for card in first.cards)
    assert "a claim needs 5 repeats of each side" in first.caveat
    assert " was " in first.title


def test_a_slide_says_how_sure_it_is(grave: RunStore, provisional: RunStore) -> None:
    for store, hosts, status in (
        (grave, "differ", "not comparable"),
        (provisional, "not attested", "provisional"),
    ):
        sure = talks.slide(deck_of(store), "How sure")
        assert sure.title.endswith(f"all of 8 figures are {status}")
        assert sure.table[1][1].text == hosts


def test_a_reason_is_on_the_page_once_with_its_cells(grave: RunStore) -> None:
    derived = derived_of(grave)
    (one,) = derived.reasons
    assert (one.status, one.where) == ("not comparable", "all figures")
    page = derived.report.read_text()
    assert page.count('<li class="not-comparable">') == 1


def test_charts_say_in_titles_or_captions_that_nothing_is_claimed(
    grave: RunStore, provisional: RunStore
) -> None:
    titles = [one.finding for one in gallery(open_run(grave.folder)).of("figures")]
    captions = [one.text for one in gallery(open_run(provisional.folder)).of("figures")]
    assert titles
    assert captions
    assert all(one.startswith("Not comparable: ") for one in titles)
    assert all(" Caveat: " in one for one in captions)


def test_data_has_the_doubts(grave: RunStore, provisional: RunStore) -> None:
    (file,) = produce(open_run(grave.folder), "csv", ["effects"]).files
    lines = list(csv.DictReader(io.StringIO(file.content.decode())))
    assert all(
        "grave: hosts differ: CPU of gateway-1 gave 245 events/s" in line["doubts"]
        for line in lines
    )
    derived = derived_of(provisional)
    effects = list(csv.DictReader(io.StringIO((derived.folder / "effects.csv").read_text())))
    for line in effects:
        (doubt,) = json.loads(line["doubts"])
        assert doubt.startswith("mild: few repeats: ")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    return outage_run(tmp_path_factory.mktemp("runs"))


def test_a_store_notices_when_it_first_says_something_else() -> None:
    assert fake_outage().noticed_s == pytest.approx(20.5)
    late = (Seen(at_s=1, whole=True, words="whole"), Seen(at_s=BACK + 1, whole=False, words="not"))
    assert fake_outage(seen=late).noticed_s is None, "only when it was back"
    assert fake_outage(seen=()).noticed_s is None


def test_a_store_is_complete_once_it_stays_so() -> None:
    assert fake_outage().clean_s == pytest.approx(30)
    assert fake_outage(back=None).clean_s is None
    assert fake_outage(seen=fake_outage().seen[:4]).clean_s is None


def test_the_last_line_of_a_step_counts_and_a_broken_one_is_refused(tmp_path: Path) -> None:
    assert read_outages(tmp_path) == {}
    record_outage(tmp_path, fake_outage())
    record_outage(tmp_path, fake_outage(host="store-3"))
    assert read_outages(tmp_path)[KEY].host == "store-3"
    with (tmp_path / "degrade.jsonl").open("a") as file:
        file.write('{"key": 1}\n')
    with pytest.raises(InvalidMeasurement, match=r"degrade.jsonl:3"):
        read_outages(tmp_path)


def test_what_stores_send_counts_where_all_of_its_second_lies(tmp_path: Path) -> None:
    """Samples of half a second after each second: two lie across the fault and the return."""
    store = outage_run(tmp_path)
    for step in store.steps():
        telemetry = present(store.telemetry(step.key))
        with store.record_telemetry(telemetry.head) as file:
            for one in telemetry.hosts:
                at_s = one.second + 0.5
                sent = 20 if at_s < AT else 2 if at_s < BACK else 30
                sent = 5000 if at_s in (AT + 0.5, BACK + 0.5) else sent
                file.write([altered(one, at_s=at_s, sent_bytes=sent * 10**6)])
            file.write([present(telemetry.tail)])
    (kind,) = outages(open_run(store.folder)).kinds
    storing = sum(one.tier == "storage" for one in telemetry.head.hosts)
    sent = [present(mean) / storing for mean in kind.rows[0].traffic_mb_s]
    assert sent == pytest.approx([20, 2, 30])


def test_layouts_are_compared_by_their_stalls_and_nothing_else(run: RunStore) -> None:
    data = open_run(run.folder)
    assert data.rows == ()
    found = outages(data)
    (kind,) = found.kinds
    assert kind.headline == (
        f"Longest stall of a worker: {kind.rows[0].spread('stall').words} s on rgw-beast, "  # type: ignore[union-attr]
        f"{kind.rows[1].spread('stall').words} s on swift"  # type: ignore[union-attr]
    )
    ceph, swift = kind.rows
    assert ceph.what == ("store-2 silent",)
    assert (ceph.noticed_by, present(ceph.noticed_s).middle) == ("the store", pytest.approx(20.5))
    assert ceph.clean_s is not None
    assert (swift.noticed_s, swift.clean_s) == (None, None)
    assert ceph.errors == {"timeout": 2 * 5 * 20}
    assert found.comparison is not None
    cells = {one.metric: one.verdict for one in found.comparison.effects if one.workers is not None}
    assert cells["stall"] == "better", "swift's is shorter than that of the first layout"
    assert set(cells) <= {"stall", "detect", "recover"}
    text = next(one for one in found.sentences if one.startswith("Rgw-beast’s longest stall"))
    assert "longest stall of 4 KiB reads with 8 workers is 1" in text
    assert "s vs 2.0 s; n = 5" in text


def test_doubts_stand_wherever_a_stall_does(run: RunStore) -> None:
    (kind,) = outages(open_run(run.folder)).kinds
    busy = Doubt(what="machine busy", grade="grave", words="others used 60 % of its CPUs")
    ceph = kind.rows[0]
    assert not ceph.doubts
    row = altered(ceph.row, doubts=(busy,))
    doubted = replace(kind, rows=(replace(ceph, row=row), kind.rows[1]))
    assert doubted.headline == f"{kind.headline} (not comparable: machine busy)"
    assert doubted.rows[0].caveat == "not comparable: machine busy"
    data = replaced(open_run(run.folder), {outages: Outages((doubted,))})
    assert "not comparable: machine busy" in OUTAGES.of_runs([data]).texts[0]
    differ = Doubt(what="hosts differ", grade="grave", words="CPU of gateway-1")
    one, other = (row.layout for row in kind.rows)
    for layouts, said in (((one, other), " (not comparable: hosts differ)"), ((one, "third"), "")):
        apart = PairDoubt(layouts=layouts, doubt=differ)
        assert replace(kind, between=(apart,)).headline == f"{kind.headline}{said}"
    once = altered(row, repeats=1, doubts=())
    assert replace(ceph, row=once).caveat == "provisional: few repeats"


def test_the_report_has_their_section_charts_and_table(run: RunStore) -> None:
    derived = derive(run.folder, pictures=False)
    assert derived.comparable
    (kind,) = outages(derived.data).kinds
    assert (derived.folder / ANSWER).read_text() == f"{kind.headline}.\n"
    page = derived.report.read_text()
    assert '<section id="outages"' in page
    assert "While something is broken" in page
    assert "osd_heartbeat_grace" in page
    assert "Something died in every step" in page
    assert "nothing to compare" not in page
    (chart,) = derived.gallery.charts
    assert chart.key == "outage-host-silent-read-swift-w8"
    assert len(chart.panels) == 4, "op/s and p99 of two layouts"
    starts: dict[int, float] = {}
    for row in chart.panels[1].rows:
        if row["p99_ms"]:
            starts.setdefault(row["_stretch"], row["_at"])
    assert list(starts.values()) == [0.5, 35.5], "no line through dead seconds"
    assert chart.csv.startswith("panel,layout,fault_s,back_s,second,ops_s")
    assert (derived.folder / "outages.csv").read_text().count("\n") == 3


def test_the_report_says_what_figures_rest_on_and_every_sign_leads_somewhere(run: RunStore) -> None:
    page = derive(run.folder, pictures=False).report.read_text()
    assert 'class="trust"' in page
    signs = page.partition('class="trust"')[2].partition("</ul>")[0]
    links = re.findall(r'href="#([a-z-]+)"', signs)
    assert len(links) == 7
    assert all(f'id="{one}"' in page for one in links), links


def test_the_export_has_medians_with_their_range(run: RunStore) -> None:
    table = OUTAGES.of_runs([open_run(run.folder)])
    assert table.column("layout") == ("rgw-beast", "swift")
    ((stall, _), (least, _), (most, _)) = (
        table.column(name) for name in ("stall_s", "least_stall_s", "most_stall_s")
    )
    assert isinstance(stall, float)
    assert isinstance(least, float)
    assert isinstance(most, float)
    assert 20 < least < stall < most < 22
    assert table.column("what") == (("store-2 silent",), ("store-2 silent",))


def test_what_was_not_measured_is_said_so(tmp_path: Path) -> None:
    lost = StepFaults(absent=(("swift", "host-silent", 8),))
    data = open_run(fake_run(tmp_path, workloads=[SILENT], spoilt=lost).folder)
    table = OUTAGES.of_runs([data])
    texts = [line.text(column) for line in table.lines for column in table.heads]
    assert "not measured" in texts


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> RunData:
    return open_run(outage_run(tmp_path_factory.mktemp("runs")).folder)


def signs(data: RunData, found: Outages | None = None, kind: str = "lab") -> dict[str, TrustSign]:
    changed = open_run(data.store.folder)
    hardware = altered(data.plan.hardware, kind=kind)
    changed.__dict__["plan"] = altered(data.plan, hardware=hardware)
    if found is not None:
        replaced(changed, {outages: found})
    return {sign.title: sign for sign in outage_signs(changed)}


def changed(data: RunData, **of_row: Any) -> Outages:
    """The outages with the first layout's row changed."""
    (kind,) = outages(data).kinds
    first, *others = kind.rows
    row = replace(first, **of_row)
    return Outages((replace(kind, rows=(row, *others)),))


def of_points(one: OutageRow, **of_point: object) -> dict[str, object]:
    points = tuple(point.model_copy(update=of_point) for point in one.row.points)
    return {"row": altered(one.row, points=points)}


def test_a_degrade_run_has_all_signs_and_those_not_recorded_are_not_good(data: RunData) -> None:
    found = signs(data)
    assert {name: (one.state, one.words) for name, one in found.items()} == {
        "Hosts": ("unknown", "not attested"),
        "Machine": ("good", "quiet"),
        "Steady": ("good", "yes, until the fault"),
        "Load generator": ("good", "had room"),
        "Repeats": ("good", "n = 5"),
        "A/A control": ("unknown", "not measured"),
        "Errors": ("good", "none before"),
    }
    assert found["Errors"].detail.endswith(" after it")
    assert signs(data, kind="ssh")["Machine"].state == "unknown"
    first = outages(data).rows[0].row
    blind = signs(data, changed(data, row=altered(first, resources=())))["Load generator"]
    assert (blind.state, blind.words) == ("unknown", "not known in 1 of 2")


def test_a_rate_that_was_not_steady_until_the_fault_is_told(data: RunData) -> None:
    (kind,) = outages(data).kinds
    (first, *_) = kind.rows
    assert all(point.steady_before for point in first.row.used)
    for steady, sign in (
        (False, ("bad", "not in 1 of 2")),
        (None, ("unknown", "not known in 1 of 2")),
    ):
        found = signs(data, changed(data, **of_points(first, steady_before=steady)))["Steady"]
        assert (found.state, found.words) == sign


def test_the_seconds_before_the_fault_decide_whether_it_was_steady(tmp_path: Path) -> None:
    store = outage_run(tmp_path)
    for step in store.steps():
        measured = present(step.measurement)
        seconds = tuple(
            altered(one, count=one.count // 4) if one.second < AT / 3 else one
            for one in measured.seconds
        )
        update = {"measurement": altered(measured, seconds=seconds)}
        store.append(step.model_copy(update=update))
    found = signs(open_run(store.folder))["Steady"]
    assert (found.state, found.words) == ("bad", "not in 2 of 2")


def test_requests_that_failed_before_the_fault_are_a_doubt_and_later_are_not(data: RunData) -> None:
    (kind,) = outages(data).kinds
    (first, *_) = kind.rows
    early = tuple(replace(one, errors_s=0.4) if one.second == 3 else one for one in first.seconds)
    found = signs(data, changed(data, seconds=early))["Errors"]
    assert (found.state, found.words) == ("doubt", "2")
    found = signs(data, changed(data, seconds=()))["Errors"]
    assert (found.state, found.words) == ("unknown", "not recorded in 1 of 2")


def test_the_unmeasured_is_an_error_and_without_figures_there_is_no_sign(tmp_path: Path) -> None:
    lost = StepFaults(absent=(("swift", "host-silent", 8),))
    store: RunStore = fake_run(tmp_path, workloads=[SILENT], spoilt=lost)
    data = open_run(store.folder)
    found = signs(data)["Errors"]
    assert (found.state, found.words) == ("bad", "1 of 2 results not valid")
    assert not signs(data, Outages((OutageKind(key="k", about="", rows=()),)))
