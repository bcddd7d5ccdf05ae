"""What power cuts did stands beside all that is written: in every output of a run."""

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fake_run import WORKLOADS, fake_run
from made_cuts import dead_cut, kept_cuts, made_cut, record_made_cuts
from made_rows import altered
from talks import deck_of, of_workload, slide, text_of
from weighbridge.common.errors import InvalidMeasurement
from weighbridge.results import derive
from weighbridge.results.derivation import Derived
from weighbridge.results.features.durability import DURABILITY, durability, durability_section
from weighbridge.results.features.keeping import ALL, KEPT, MEMORY
from weighbridge.results.features.open_run import open_run
from weighbridge.results.judge.leads import overall
from weighbridge.results.judge.words import headline
from weighbridge.results.run.durability import (
    MOST_EXAMPLES,
    DaemonMemory,
    Kept,
    KeptObjects,
    read_cuts,
    read_kept,
    record_cut,
    record_kept,
)
from weighbridge.results.run.store import RunStore
from weighbridge.results.show.chart import Chart
from weighbridge.results.show.exports import json_schema, produce
from weighbridge.results.show.feature import Answer, gallery
from weighbridge.results.show.query import ask
from weighbridge.results.show.report import effects_grid, results_grid
from weighbridge.results.show.table import Table
from weighbridge.results.show.tables import EFFECTS, SUMMARY

LAYOUTS = ("rgw-beast", "swift", "rgw-haproxy")
SHORT = tuple(altered(workload, runtime=2.0, workers=(1, 16)) for workload in WORKLOADS[:2])
LOST = "lost acknowledged writes in 3 of 20 power cuts"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    """`rgw-beast` keeps, `swift` loses, `rgw-haproxy` was not tried."""
    store = fake_run(
        tmp_path_factory.mktemp("runs"), layouts=LAYOUTS, workloads=SHORT, telemetry=False
    )
    record_made_cuts(store.folder)
    return store


@pytest.fixture(scope="module")
def derived(run: RunStore) -> Derived:
    return derive(run.folder, pictures=False)


@pytest.fixture(scope="module")
def charts(run: RunStore) -> dict[str, Chart]:
    return {one.key: one for one in gallery(open_run(run.folder)).charts}


@pytest.fixture(scope="module")
def page(derived: Derived) -> str:
    return derived.report.read_text()


@pytest.mark.long
def test_a_layout_that_lost_is_ranked_as_before_and_named_in_the_headline(
    derived: Derived, tmp_path: Path
) -> None:
    store = fake_run(tmp_path, layouts=LAYOUTS, workloads=SHORT, telemetry=False)
    before = open_run(store.folder).comparison
    assert [one.verdict for one in derived.data.comparison.effects] == [
        one.verdict for one in before.effects
    ]
    assert all(
        row.ranked and not row.provisional for row in derived.data.rows if row.power is not None
    )
    assert headline(derived.answered.leads).endswith(f"; swift {LOST}")


def test_sentences_and_cards_of_writes_have_the_marks_of_both_sides_and_reads_have_none(
    derived: Derived,
) -> None:
    marked = set()
    for effect in (one for pairs in overall(derived.data.comparison).values() for one in pairs):
        if effect.operation == "read":
            assert "ower cuts" not in effect.text
            continue
        assert "Power cuts: " in effect.text
        for name in (effect.baseline, effect.subject):
            words = {"rgw-haproxy": "not tried", "swift": LOST}.get(name, "20 cuts: 0 of 17,081")
            assert f"{name} ({words}" in effect.text
            marked.add(name)
    assert marked == set(LAYOUTS)
    assert ["power cuts that lost writes" in one.detail for one in derived.answered.cards] == [
        "writes" in one.about for one in derived.answered.cards
    ]


def test_the_loss_is_a_reason_with_a_letter_beside_its_cells_alone(derived: Derived) -> None:
    (reason,) = [one for one in derived.reasons if one.status == "not durable"]
    assert reason.text.startswith(f"not durable: {LOST}; 4,041 not listed (swift: 1 MB writes")
    assert {layout for layout, _, _ in reason.cells} == {"swift"}
    assert {kind[1] for _, kind, _ in reason.cells} == {"write"}


def test_the_table_of_results_has_words_beside_the_layout_of_each_write(derived: Derived) -> None:
    table = results_grid(derived.data.rows, derived.reasons)
    place = table.head.index("Power cuts")
    for line, row in zip(table.lines, derived.data.rows, strict=True):
        assert line[place - 1] == row.layout
        lost = line[place].startswith("lost acknowledged")
        assert lost == (row.layout == "swift" and row.operation == "write")
        assert (line[place] != "–") == (row.operation == "write")
    alike = [row for row in derived.data.rows if row.power and row.layout == "swift"]
    assert "Power cuts" in results_grid(alike).head, "also where all lines have the same"
    tests = effects_grid(derived.data.comparison, over="repeats", subject="layout").lines
    writes = [line for line in tests if "writes" in line[0]]
    assert writes
    assert all("power cuts that lost writes: " in line[-1] for line in writes)


def test_a_report_has_a_section_with_controls_after_their_stores_and_a_chart(
    page: str, derived: Derived
) -> None:
    assert page.count('id="durability"') == 1
    section = page[page.index('id="durability"') : page.index('id="keeping"')]
    assert "object-0003-4096" in section
    assert 'data-spec="power-cuts-swift"' in section
    grid = durability_section(durability(derived.data)).parts[0].grids[0]
    lines = [dict(zip(grid.head, line, strict=True)) for line in grid.lines]
    assert [(line["Layout"], line["Verdict"], line["Lost"]) for line in lines] == [
        ("rgw-beast", "kept", "0"),
        ("swift", "lost", "10 in 3 cuts"),
        ("rgw-beast, control", "lost", "2,303 in 2 cuts"),
        ("swift, control", "lost", "1,642 in 2 cuts"),
    ]
    assert [line["Acknowledged"] for line in lines[:1]] == ["17,081"]
    assert [line["Cuts that may lose"] for line in lines] == ["14 %", "3.2 % to 38 %", "", ""]
    assert all(text in section for line in grid.lines for text in line)


def test_captions_of_charts_that_may_show_writes_have_the_marks(charts: dict[str, Chart]) -> None:
    said = {one.key for one in charts.values() if f"swift ({LOST}" in one.caption}
    assert {"throughput-by-workers", "latency-by-workers", "throughput-bars", "recap-map"} <= said
    own = {one.key for one in charts.values() if one.section == "durability"}
    assert own == {"power-cuts"}
    assert not own & said


def test_the_chart_has_marks_for_cuts_losses_and_listings_apart(charts: dict[str, Chart]) -> None:
    beast, swift = charts["power-cuts"].panels
    shown = [
        tuple(sum(row[name] > 0 for row in panel.rows) for name in ("lost", "wrong_in_listings"))
        for panel in (beast, swift)
    ]
    assert shown == [(0, 0), (3, 20)]
    assert beast.spec["encoding"] == swift.spec["encoding"]
    assert [len(panel.rows) for panel in (beast, swift)] == [20, 20]


def test_slides_have_the_marks_and_the_first_is_about_power_cuts(run: RunStore) -> None:
    deck = deck_of(run)
    first = deck.slides[0]
    assert first.title == Answer(open_run(run.folder)).headline
    assert f"; swift {LOST}" in first.title
    assert "at most 14 %" in first.caveat
    assert any("At most 14 %" in note for note in first.notes)
    write, read = (of_workload(deck, f"1 MB {what}") for what in ("writes", "reads"))
    assert LOST in write.title
    assert "rgw-haproxy not tried" in write.foot
    assert any(f"swift ({LOST}" in note for note in write.notes)
    assert LOST in text_of(slide(deck, "How sure"))
    assert "ower cuts" not in text_of(read)


def test_notes_have_what_was_lost_in_the_line_and_below(run: RunStore) -> None:
    data = open_run(run.folder)
    text = SUMMARY.markdown(data)
    marked = [line for line in text.splitlines() if line.startswith("|") and LOST in line]
    assert marked
    assert all(line.startswith("| swift |") and "small-write" in line for line in marked)
    for notes in (text, EFFECTS.markdown(data)):
        assert "rgw-haproxy (not tried)" in notes


def test_exports_have_a_line_for_each_cut_and_kind_and_agree_with_each_other(
    run: RunStore, derived: Derived
) -> None:
    data = open_run(run.folder)
    table = DURABILITY.of_runs([data])
    assert len(table.lines) == 2 * (20 + 2) * 3
    assert sum(int(str(one)) for one in table.column("lost")) == 10 + 2303 + 1642
    lines = list(csv.DictReader((derived.folder / "durability.csv").read_text().splitlines()))
    assert [int(line["not_listed"]) for line in lines] == [*table.column("not_listed")]
    assert {line["control"] for line in lines} == {"true", "false"}
    document = json.loads(produce(open_run(run.folder), "json", ["durability"]).files[0].content)
    assert document["tables"]["durability"][0]["layout"] == "rgw-beast"
    assert "durability" in json_schema()["properties"]["tables"]["properties"]
    found = ask("SELECT sum(torn) FROM durability WHERE NOT control AND layout = 'swift'", [data])
    assert found.lines == ((2,),)
    summary = SUMMARY.of_runs([data])
    said = dict(zip(summary.column("layout"), summary.column("power_cuts"), strict=True))
    assert said["swift"] == f"{LOST}; 4,041 not listed"
    assert said["rgw-haproxy"] == "not tried"


def test_a_cut_after_which_nothing_was_read_still_has_a_line(tmp_path: Path) -> None:
    store = fake_run(tmp_path, workloads=SHORT, repeats=1, telemetry=False)
    record_cut(store.folder, dead_cut("swift", 1, objects=()))
    (line,) = DURABILITY.of_runs([open_run(store.folder)]).cells
    assert "osd.0 did not start" in line
    page = derive(store.folder, pictures=False).report.read_text()
    assert "swift, cut 1: osd.0 did not start" in page
    assert "cannot tell: it served after none of 1 cut" in page


def test_that_nothing_can_be_told_is_said_wherever_a_figure_would_be(tmp_path: Path) -> None:
    store = fake_run(tmp_path, workloads=SHORT, telemetry=False)
    for cut in kept_cuts(controls=0):
        record_cut(store.folder, cut)
    made = derive(store.folder, pictures=False)
    words = "cannot tell: there was no control"
    assert words in made.report.read_text()
    assert all("rgw-beast cannot tell" in card for card in _cards(made))
    own = deck_of(store).slides[0]
    assert (
        own.title == "rgw-beast: cannot tell what a power cut destroys, since there was no control"
    )
    assert "not run" in text_of(own)


def test_if_nothing_was_lost_the_slide_says_so_and_nothing_is_marked_lost(tmp_path: Path) -> None:
    store = fake_run(tmp_path, workloads=SHORT, telemetry=False)
    for cut in (*kept_cuts("rgw-beast"), *kept_cuts("swift")):
        record_cut(store.folder, cut)
    made = derive(store.folder, pictures=False)
    assert f"{deck_of(store).slides[0].title}." == made.answer
    assert "lost acknowledged" not in headline(made.answered.leads)
    assert made.answer.count(" lost 0 of 2,000 acknowledged objects in 20 power cuts") == 2
    assert not [one for one in made.reasons if one.status == "not durable"]


def test_texts_from_hosts_are_harmless_on_the_page(tmp_path: Path) -> None:
    store = fake_run(tmp_path, workloads=SHORT, repeats=1, telemetry=False)
    evil = "<script>alert(1)</script>\x1b[31m"
    example = {"finding": "lost", "api": "s3", "container": evil, "name": evil, "what": evil}
    record_cut(store.folder, made_cut("swift", 1, release=evil, lost=1, examples=(example,)))
    record_cut(store.folder, made_cut("swift", 2, serves_s=None, why_not=evil, unreadable=1))
    page = derive(store.folder, pictures=False).report.read_text()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<script>alert(1)" not in page
    assert "\x1b" not in page


def test_examples_are_named_up_to_a_bound_and_the_rest_counted(tmp_path: Path) -> None:
    store = fake_run(tmp_path, workloads=SHORT, repeats=1, telemetry=False)
    for number in (1, 2):
        one = {"finding": "lost", "api": "s3", "container": "c", "what": "404"}
        examples = tuple({**one, "name": f"{number}-{each}"} for each in range(MOST_EXAMPLES))
        record_cut(store.folder, made_cut("swift", number, lost=20, examples=examples))
    section = durability_section(durability(open_run(store.folder)))
    (part,) = [part for part in section.parts if part.title.startswith("Objects")]
    assert len(part.grids[0].lines) == 20
    assert part.foot == "swift: 20 more, in durability.jsonl of the run folder"


def _lines() -> Iterator[str]:
    good = made_cut("swift", 1).model_dump(mode="json")
    (objects,) = good["objects"]
    yield "{"
    for wrong in (
        {"layout": "../x"},
        {"serves_s": None},
        {"number": 0},
        {"objects": [{**objects, "lost": 101}]},
        {"objects": [{**objects, "not_listed": -1}]},
        {"keep": "NaN"},
        {"at_s": 1e999},
    ):
        yield json.dumps({**good, **wrong})


@pytest.mark.parametrize("line", list(_lines()))
def test_a_line_that_cannot_be_right_is_refused_with_its_place(tmp_path: Path, line: str) -> None:
    record_cut(tmp_path, made_cut("swift", 1))
    with (tmp_path / "durability.jsonl").open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(InvalidMeasurement, match=r"durability\.jsonl:2"):
        read_cuts(tmp_path)


def test_the_last_line_of_a_cut_counts(tmp_path: Path) -> None:
    assert read_cuts(tmp_path) == ()
    record_cut(tmp_path, made_cut("swift", 1, lost=1))
    record_cut(tmp_path, made_cut("swift", 1))
    record_cut(tmp_path, made_cut("swift", 1, control=True, lost=2))
    assert [cut.count("lost") for cut in read_cuts(tmp_path)] == [0, 2]


@pytest.mark.long
def test_a_run_without_power_cuts_says_nothing_of_them(tmp_path: Path) -> None:
    store = fake_run(tmp_path, layouts=LAYOUTS, workloads=SHORT, telemetry=False)
    made = derive(store.folder, pictures=False)
    page = made.report.read_text()
    assert "ower cut" not in page
    assert 'id="durability"' not in page
    assert not (made.folder / "durability.csv").exists()
    assert not durability(made.data)
    assert "Power cuts" not in results_grid(made.data.rows).head
    assert not any("ower cut" in text_of(page) for page in deck_of(store).pages)
    assert not any("ower cuts" in one.caption for one in gallery(open_run(store.folder)).charts)
    assert "ower cuts" not in SUMMARY.markdown(open_run(store.folder))
    assert set(SUMMARY.of_runs([open_run(store.folder)]).column("power_cuts")) == {None}


def _cards(made: Derived) -> list[str]:
    return [one.detail for one in made.answered.cards if "writes" in one.about]


MIB = 2**20
PLACE = {"layout": "rgw", "workload": "small-read"}


def kept(repeat: int = 0, grown: int = 3000, **more: Any) -> KeptObjects:
    about = {**PLACE, "repeat": repeat, "api": "swift", "driver": "locust", "how": "OSDs"}
    sizes = {"objects": 10, "stored_bytes": 1000, "before_bytes": 500, "after_bytes": 500 + grown}
    return KeptObjects.model_validate({**about, **sizes, **more})


def memory(daemon: str, size: int | None, repeat: int = 0, **more: Any) -> DaemonMemory:
    role = daemon.partition(".")[0]
    about = {**PLACE, "repeat": repeat, "host": "store-1", "daemon": daemon, "role": role}
    sizes = {"processes": 1 if size is not None else 0, "resident_bytes": size}
    return DaemonMemory.model_validate({**about, **sizes, **more})


Reading = KeptObjects | DaemonMemory


@pytest.fixture
def read_back(tmp_path: Path) -> Callable[..., list[dict[str, Any]]]:
    """The lines of a table of a run with these readings alone: figures by name, texts by head."""

    def lines(table: Table, *readings: Reading) -> list[dict[str, Any]]:
        folder = fake_run(tmp_path, layouts=("rgw", "swift"), workloads=SHORT, repeats=1).folder
        (folder / "kept.jsonl").unlink()
        record_kept(folder, *readings)
        filled = table.of_runs([open_run(folder)])
        heads = [head.title for head in filled.heads]
        return [
            {**figures, **dict(zip(heads, texts, strict=True))}
            for figures, texts in zip(filled.objects, filled.texts, strict=True)
        ]

    return lines


Read = Callable[..., list[dict[str, Any]]]


def test_bytes_on_disks_per_byte_stored_are_means_over_repeats_with_their_range(
    read_back: Read,
) -> None:
    (line,) = read_back(KEPT, kept(0, 3000), kept(1, 3200))
    figures = [line[name] for name in ("times", "least_times", "most_times", "repeats")]
    assert figures == [3.1, 3.0, 3.2, 2]
    assert line["beside_bytes"] is None
    assert (line["Per byte stored"], line["Range"]) == ("3.10", "3.00 to 3.20")


def test_databases_are_beside_and_never_part_of_the_figure_per_byte(read_back: Read) -> None:
    (line,) = read_back(KEPT, kept(beside_before_bytes=100, beside_after_bytes=900))
    assert (line["times"], line["beside_bytes"]) == (3.0, 800)
    ends = {"beside_before_bytes": 900 * MIB, "beside_after_bytes": 100 * MIB}
    (line,) = read_back(KEPT, kept(**ends))
    assert line["Databases beside"] == "-800.0 MiB"


def test_memory_is_the_range_of_one_daemon_and_the_most_of_all_at_the_same_time(
    read_back: Read,
) -> None:
    osd, mon, every = read_back(
        MEMORY,
        memory("osd.0", 1 * MIB),
        memory("osd.1", 5 * MIB, host="store-2", peak_bytes=9 * MIB),
        memory("osd.0", 3 * MIB, 1),
        memory("osd.1", 4 * MIB, 1, host="store-2"),
        memory("mon", 2 * MIB),
        memory("mon", 2 * MIB, 1),
    )
    assert (osd["daemons"], osd["hosts"]) == (2, ["store-1", "store-2"])
    sizes = [osd[name] for name in ("least_bytes", "most_bytes", "sum_bytes")]
    assert sizes == [1 * MIB, 5 * MIB, 7 * MIB]
    assert osd["peak_bytes"] is None  # not known of each
    assert (osd["Each"], osd["All together"]) == ("1.0 to 5.0 MiB", "7.0 MiB")
    assert (mon["sum_bytes"], every["role"], every["sum_bytes"]) == (2 * MIB, ALL, 9 * MIB)


def test_a_daemon_of_unknown_memory_leaves_the_sums_unknown(read_back: Read) -> None:
    readings = (memory("osd.0", MIB), memory("osd.1", None), memory("mon", MIB))
    osd, mon, every = read_back(MEMORY, *readings)
    assert (osd["sum_bytes"], osd["most_bytes"], every["sum_bytes"]) == (None, None, None)
    assert (osd["Each"], mon["sum_bytes"]) == ("–", MIB)


def test_empty_objects_have_no_bytes_on_disks_per_byte(read_back: Read) -> None:
    (line,) = read_back(KEPT, kept(stored_bytes=0))
    assert line["times"] is None
    assert not {"Per byte stored", "Range"} & set(line)


def test_the_last_reading_of_a_visit_counts(tmp_path: Path) -> None:
    assert read_kept(tmp_path) == Kept()
    record_kept(tmp_path, kept(grown=9000), memory("osd.0", 1))
    record_kept(tmp_path, kept(grown=3000), kept(1))
    found = read_kept(tmp_path)
    assert [(one.repeat, one.times) for one in found.objects] == [(0, 3.0), (1, 3.0)]
    assert len(found.memory) == 1
    (tmp_path / "kept.jsonl").write_text('{"kind": "objects", "layout": "../x"}\n')
    with pytest.raises(InvalidMeasurement, match=r"kept\.jsonl:1"):
        read_kept(tmp_path)


def test_the_report_and_exports_show_it_and_runs_without_it_have_no_section(tmp_path: Path) -> None:
    layouts, steps = ("rgw", "swift"), [altered(SHORT[0], workers=(1,))]
    store = fake_run(tmp_path, layouts=layouts, workloads=steps, repeats=1, telemetry=False)
    (store.folder / "kept.jsonl").unlink()
    assert "What it costs to keep" not in derive(store.folder, pictures=False).report.read_text()
    record_kept(store.folder, kept(), memory("osd.0", 3 * MIB))
    page = derive(store.folder, pictures=False).report.read_text()
    assert "What it costs to keep" in page
    assert "3.00" in page
    (line,) = KEPT.of_runs([open_run(store.folder)]).cells
    assert 3.0 in line
