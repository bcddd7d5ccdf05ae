import csv
import io
import json
import re
import shutil
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import duckdb
import jsonschema
import pytest
from markdown_it import MarkdownIt
from pptx import Presentation
from rich.console import Console

from fake_outages import outage_run
from fake_run import WORKLOADS, fake_run, short_run
from made_cuts import record_made_cuts
from made_rows import altered, changed, csv_of, present
from web_pages import WebPage
from weighbridge.common import csv_text
from weighbridge.common.csv_text import plain
from weighbridge.common.errors import InvalidMeasurement, UsageError
from weighbridge.common.escaping import escape_controls
from weighbridge.results import derive
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.analysis.steps.validity import least_samples
from weighbridge.results.export.csv_format import csv_file
from weighbridge.results.export.data_table import Cell, DataColumn, DataTable, TableSchema, utc
from weighbridge.results.export.database import opened
from weighbridge.results.export.effect_tables import EFFECTS
from weighbridge.results.export.export import export, produce
from weighbridge.results.export.formats import FORMATS, OF_TUNINGS, TABLES
from weighbridge.results.export.host_tables import RUNS
from weighbridge.results.export.json_format import json_schema
from weighbridge.results.export.markdown_format import escape, markdown_file
from weighbridge.results.export.paper import PaperColumn, PaperTable, effects_paper, summary_paper
from weighbridge.results.export.parquet_format import parquet_file
from weighbridge.results.export.run_tables import STEPS, SUMMARY
from weighbridge.results.export.second_table import SECONDS, SecondLine
from weighbridge.results.record.manifest import ConfigFile, Sheet
from weighbridge.results.record.measurement import Second
from weighbridge.results.record.store import RunStore
from weighbridge.results.record.writing import write_atomically
from weighbridge.screen.terminal import InertConsole

HOSTILE = '"; DROP TABLE steps; --\n\x00|&\\end{table}\t∞'


@pytest.fixture(scope="module")
def data(run: RunStore) -> RunData:
    return RunData(run.folder)


@pytest.fixture(scope="module")
def tables(
    data: RunData, tuned_data: RunData, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, DataTable]:
    tuned = tuned_data
    broken = RunData(outage_run(tmp_path_factory.mktemp("broken")).folder)
    cut = tmp_path_factory.mktemp("cut") / data.store.folder.name
    shutil.copytree(data.store.folder, cut)
    record_made_cuts(cut, cuts=2)
    of = {**dict.fromkeys(OF_TUNINGS, tuned), "durability": RunData(cut), "outages": broken}
    return {name: make([of.get(name, data)]) for name, make in TABLES.items()}


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """The folder of a run with one step per layout."""
    return short_run(tmp_path / "runs", repeats=1).folder


def hostile() -> DataTable:
    lines: list[tuple[Cell, ...]] = [
        (HOSTILE, 2**53, 0.1 + 0.2, True, datetime(2014, 11, 4, 12, 0, 0, 5000), (HOSTILE, "")),  # noqa: DTZ001 - UTC, without a zone
        (None, None, None, None, None, ()),
        ("", -1, -1e-300, False, datetime(1970, 1, 1), ("a",)),  # noqa: DTZ001
    ]
    columns: tuple[DataColumn[int], ...] = (
        DataColumn("select", "text", "a", lambda line: lines[line][0]),
        DataColumn('quo"ted', "integer", "b", lambda line: lines[line][1]),
        DataColumn("number", "number", "c", lambda line: lines[line][2]),
        DataColumn("boolean", "boolean", "d", lambda line: lines[line][3]),
        DataColumn("time", "time", "e", lambda line: lines[line][4]),
        DataColumn("texts", "texts", "f", lambda line: lines[line][5]),
    )
    return TableSchema("hostile", "Whatever can stand in a cell.", columns).fill(range(len(lines)))


def read_parquet(
    content: bytes, folder: Path
) -> tuple[list[str], list[str], list[tuple[object, ...]]]:
    path = folder / "back.parquet"
    path.write_bytes(content)
    with opened() as connection:
        found = connection.execute(f"SELECT * FROM '{path}'")
        names = [one[0] for one in found.description]
        kinds = [str(one[1]) for one in found.description]
        return names, kinds, found.fetchall()


def as_lines(table: DataTable) -> list[tuple[object, ...]]:
    return [
        tuple(list(cell) if isinstance(cell, tuple) else cell for cell in line)
        for line in table.lines
    ]


@pytest.mark.parametrize("name", list(TABLES))
@pytest.mark.long
def test_a_table_is_read_back_from_parquet_unchanged_with_its_types(
    tables: dict[str, DataTable], name: str, tmp_path: Path
) -> None:
    table = tables[name]
    assert table.lines
    names, _, lines = read_parquet(parquet_file(table).content, tmp_path)
    assert names == [field.name for field in table.fields]
    assert lines == as_lines(table)


def test_the_content_of_cells_is_inert(tmp_path: Path) -> None:
    table = hostile()
    names, kinds, lines = read_parquet(parquet_file(table).content, tmp_path)
    assert names == ["select", 'quo"ted', "number", "boolean", "time", "texts"]
    assert kinds == ["VARCHAR", "BIGINT", "DOUBLE", "BOOLEAN", "TIMESTAMP", "VARCHAR[]"]
    assert lines == as_lines(table)


def test_csv_has_every_digit_and_empty_cells_for_what_is_unknown() -> None:
    text = csv_file(hostile()).content.decode()
    head, first, second, third = csv.reader(io.StringIO(text, newline=""))
    assert head[1] == 'quo"ted'
    assert first[0] == HOSTILE
    assert float(first[2]) == 0.1 + 0.2
    assert first[3:5] == ["true", "2014-11-04T12:00:00.005Z"]
    assert json.loads(first[5]) == [HOSTILE, ""]
    assert second == [""] * 6
    assert third[1:4] == ["-1", "-1e-300", "false"]


def test_the_summary_has_the_rows_of_the_report_unrounded(
    data: RunData, tables: dict[str, DataTable]
) -> None:
    summary = tables["summary"]
    assert summary.column("throughput_ops_s") == tuple(
        row.value("throughput") for row in (*data.rows, *data.layers)
    )
    assert summary.column("ranked") == tuple(row.ranked for row in (*data.rows, *data.layers))
    report = list(csv.DictReader(io.StringIO(csv_of(data.rows))))
    shown = [f"{value:.3f}" if value is not None else "" for value in summary.column("p90_ms")]
    assert [float(line["p90_ms"] or "nan") for line in report] == pytest.approx(
        [float(text or "nan") for text in shown], nan_ok=True
    )
    assert list(report[0]) == [field.name for field in summary.fields]


def test_steps_have_a_line_for_every_repeat_also_without_a_measurement(
    data: RunData, tables: dict[str, DataTable]
) -> None:
    steps = tables["steps"]
    assert len(steps.lines) == len(data.steps) == 2 * 2 * 11 - 2
    names = [field.name for field in steps.fields]
    lines = [dict(zip(names, one, strict=True)) for one in steps.lines]
    (line,) = (one for one in lines if not one["measured"])
    assert (line["layout"], line["operation"], line["repeat"]) == ("swift", "read", 1)
    assert line["notes"] == ("the gateway did not answer for 60 s",)
    unknown = ("throughput_ops_s", "samples", "errors", "p90_ms", "window_s", "started_at")
    assert {line[name] for name in unknown} == {None}
    assert (line["valid"], line["ranked"]) == (False, False)
    erring = [cell for cell in steps.column("error_classes") if cell]
    assert erring == [("http-503: 40", "timeout: 3")]
    assert sorted(steps.column("visit")) == list(range(1, len(steps.lines) + 1))


def test_seconds_add_up_to_their_steps(tables: dict[str, DataTable]) -> None:
    counted = sum(int(str(count)) for count in tables["seconds"].column("operations"))
    assert counted == sum(
        int(str(count)) for count in tables["steps"].column("samples") if count is not None
    )


def test_a_second_in_which_nothing_succeeded_has_no_latency(data: RunData) -> None:
    idle = Second(second=7, operation="read", count=0, bytes=0, errors=2, max_us=0, sum_us=0)
    table = SECONDS.fill([SecondLine(data, next(iter(data.steps)), idle)])
    assert table.column("mean_ms") == table.column("max_ms") == (None,)
    assert (table.column("operations"), table.column("errors")) == ((0,), (2,))


def test_effects_are_those_of_the_comparison(data: RunData, tables: dict[str, DataTable]) -> None:
    assert tables["effects"].column("text") == tuple(
        effect.text for effect in present(data.comparison).effects
    )
    assert tables["effects"].column("ratio") == tuple(
        effect.ratio.value if effect.ratio else None for effect in present(data.comparison).effects
    )
    assert None in tables["effects"].column("workers")


def test_json_is_valid_by_the_printed_schema_unless_a_field_is_undocumented(data: RunData) -> None:
    _, made = produce(data.store.folder, "json")
    document = json.loads(made.files[0].content)
    jsonschema.Draft202012Validator.check_schema(json_schema())
    known = jsonschema.Draft202012Validator(json_schema())
    known.validate(document)
    assert document["schema_version"] == 1
    assert document["run"]["run"] == data.manifest.run_id
    assert str(data.store.folder) not in made.files[0].content.decode()
    assert document["tables"]["summary"][0]["throughput_ops_s"] == data.rows[0].value("throughput")
    assert {name: len(lines) for name, lines in document["tables"].items()} == {
        name: len(make([data]).lines) for name, make in TABLES.items()
    }
    document["tables"]["summary"][0]["colour"] = "blue"
    with pytest.raises(jsonschema.ValidationError, match="colour"):
        known.validate(document)


def test_every_field_is_documented_and_has_a_unique_name() -> None:
    for shape in (SUMMARY, STEPS, SECONDS, EFFECTS, RUNS):
        names = [field.name for field in shape.fields]
        assert len(set(names)) == len(names)
        assert all(field.about.endswith(".") for field in shape.fields)
        for field in shape.fields:
            if field.name.endswith("_ms"):
                assert field.unit == "ms"


def test_an_export_goes_into_the_run_by_default_and_replaces_nothing_without_force(
    small: Path, tmp_path: Path
) -> None:
    (path,) = export(small, "csv").paths
    assert path == small / "derived" / "exports" / "summary.csv"
    path.write_text("mine")
    with pytest.raises(UsageError, match=r"exists already(.|\n)*--force"):
        export(small, "csv", ["steps", "summary"])
    assert path.read_text() == "mine"
    assert not (path.parent / "steps.csv").exists()
    export(small, "csv", force=True)
    assert path.read_text().startswith("run,layout")
    one = tmp_path / "new" / "one.json"
    assert export(small, "json", out=one).paths == (one,)
    assert export(small, "csv", out=tmp_path).paths == (tmp_path / "summary.csv",)
    two = tmp_path / "two"
    assert export(small, "csv", ["steps", "seconds"], out=two).paths == (
        two / "steps.csv",
        two / "seconds.csv",
    )


@pytest.mark.parametrize(
    ("form", "tables", "said"),
    [
        ("parqet", (), "did you mean 'parquet'"),
        ("csv", ["second"], "did you mean 'seconds'"),
        ("hgrm", ["steps"], "exports complete runs"),
        ("markdown", ["steps"], "has no table 'steps'"),
    ],
)
def test_an_unknown_format_or_table_is_answered_with_the_closest_one(
    small: Path, form: str, tables: Sequence[str], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        export(small, form, tables)


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "pptx"])
def test_every_format_makes_something_of_a_run_of_one_layout(tmp_path: Path, name: str) -> None:
    alone = short_run(tmp_path / "runs", layouts=("swift",), repeats=1, telemetry=False)
    done = export(alone.folder, name)
    assert all(path.stat().st_size for path in done.paths)
    assert done.remarks == ()


def test_a_run_of_bins_has_intervals_for_figures_and_nothing_for_hgrm(tmp_path: Path) -> None:
    binned = short_run(tmp_path / "runs", workers=(4,), runtime=3.0, repeats=1, driver="cosbench")
    (summary,) = produce(binned.folder, "csv")[1].files
    line = next(csv.DictReader(io.StringIO(summary.content.decode())))
    assert (line["p90_ms"], line["max_ms"]) == ("", "")
    assert float(line["p90_high_ms"]) - float(line["p90_low_ms"]) == 10
    with pytest.raises(InvalidMeasurement, match="nothing to export as hgrm"):
        produce(binned.folder, "hgrm")


def test_times_are_in_utc_and_invalid_ones_are_refused() -> None:
    assert (
        utc("2014-11-04T13:00:00+01:00") == utc("2014-11-04T12:00:00Z") == datetime(2014, 11, 4, 12)  # noqa: DTZ001 - in UTC
    )
    assert utc(None) is None
    with pytest.raises(InvalidMeasurement, match="not a time"):
        utc("yesterday")


PAPER_HOSTILE = "a|b \\input{/etc/passwd} $x$ 50% #1 _y_ ~ ^ <script>&amp;`c`\n\\end{table}"
TABLE = PaperTable(
    name="hostile",
    caption=PAPER_HOSTILE,
    columns=(PaperColumn(title="Layout"), PaperColumn(title="p90", unit="ms", numeric=True)),
    groups=((("[x]", "n<200"), (PAPER_HOSTILE, "1")), (("*", "–"),)),
    notes=(PAPER_HOSTILE,),
)


def test_the_table_has_units_in_its_heads_and_a_line_for_each_row(data: RunData) -> None:
    text = markdown_file(summary_paper(data)).content.decode()
    lines = [line for line in text.splitlines() if line.startswith("|")]
    heads = (
        "Requests, Workers, Layout, Throughput (op/s), Bandwidth (MB/s), p50 (ms), p90 (ms), "
        "p99 (ms), Max (ms), Errors, Repeats"
    )
    assert lines[0] == f"| {heads.replace(', ', ' | ')} |"
    assert len(lines) == 2 + len(data.rows)
    assert data.manifest.run_id in text


def test_a_percentile_with_too_few_samples_says_how_many_it_needs(data: RunData) -> None:
    scarce = RunData(data.store.folder)
    scarce.rows = tuple(
        changed(
            row,
            p90_ms=None,
            points=tuple(changed(one, samples=3, p90_ms=None) for one in row.points),
        )
        for row in data.rows
    )
    table = summary_paper(scarce)
    heads = [column.title for column in table.columns]
    cells = [line for group in table.groups for line in group]
    few = [line for line in cells if line[0] == "64 MB reads" and line[1] == "1"]
    assert {line[heads.index("p90")] for line in few} == {f"n<{least_samples(90)}"}
    assert any(
        f"n<{least_samples(90)}" in note and "fewer operations" in note for note in table.notes
    )


def test_what_is_not_ranked_is_marked_and_a_note_says_why(tmp_path: Path) -> None:
    store = short_run(tmp_path / "runs", kind=1, runtime=2.0, repeats=1)
    steps = store.folder / "steps.jsonl"
    first, second = steps.read_text().splitlines()
    first = first.replace('"valid":true,"notes":[]', '"valid":false,"notes":["it broke"]')
    steps.write_text(f"{first}\n{second}\n")
    table = summary_paper(RunData(store.folder))
    ((beast, swift),) = table.groups
    assert (beast[2], swift[2]) == ("rgw-beast †", "swift °")
    assert "†: invalid, not ranked." in table.notes
    assert any(
        note.startswith("Not valid: it broke") and note.endswith("(all of rgw-beast).")
        for note in table.notes
    )
    assert any(note.startswith("Provisional: steadiness not known: ") for note in table.notes)


def test_an_a_a_control_is_in_a_note_and_not_in_the_table(tmp_path: Path) -> None:
    workload = altered(WORKLOADS[0], workers=(1,), runtime=1.0)
    layouts = ("swift", "rgw-beast", "swift-again")
    store = fake_run(tmp_path / "runs", layouts=layouts, workloads=[workload], repeats=2)
    plan = store.folder / "plan.resolved.json"
    plan.write_text(re.sub(r'"twins": \{\}', '"twins": {"swift-again": "swift"}', plan.read_text()))
    data = RunData(store.folder)
    assert [line[2] for line in summary_paper(data).groups[0]] == ["swift °", "rgw-beast °"]
    left_out = "swift-again is left out: an A/A control of swift"
    assert any(note.startswith(left_out) for note in summary_paper(data).notes)
    effects = effects_paper(data, present(data.comparison))
    assert {line[3] for group in effects.groups for line in group} == {"rgw-beast"}
    assert any(
        note.startswith("Noise floor of throughput: swift vs itself") for note in effects.notes
    )


def test_effects_are_grouped_by_requests_and_metric_with_their_intervals(data: RunData) -> None:
    table = effects_paper(data, present(data.comparison))
    assert [(group[0][0], group[0][1]) for group in table.groups][:2] == [
        ("1 MB reads", "throughput"),
        ("1 MB reads", "p90"),
    ]
    assert table.groups[0][0][2] == "all"
    assert re.fullmatch(r"[0-9.]+ to [0-9.]+", table.groups[0][1][5])


def test_a_markdown_reader_finds_only_the_texts_of_the_table() -> None:
    tokens = (
        MarkdownIt("commonmark", {"html": True})
        .enable("table")
        .parse(markdown_file(TABLE).content.decode())
    )
    inline = [token.children or [] for token in tokens if token.type == "inline"]
    kinds = {child.type for children in inline for child in children}
    assert kinds == {"text", "strong_open", "strong_close"}
    read = ["".join(child.content for child in children) for children in inline]
    hostile = PAPER_HOSTILE.replace("\n", " ")
    assert read == [hostile, "Layout", "p90 (ms)", "[x]", "n<200", hostile, "1", "*", "–", hostile]


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("50 % & $x_1", r"50 % \& \$x\_1"),
        ("a\nb\tc\x00d", "a b c d"),
        ("(10, ∞)", "(10, ∞)"),
        ("rgw–beast’s 1.8×", "rgw–beast’s 1.8×"),
    ],
)
def test_texts_are_escaped(text: str, escaped: str) -> None:
    assert escape(text) == escaped


# Texts that come from servers, logs and files, such as an error's reason, are inert in whatever
# shows them.

REASON = (
    "=cmd|' /C calc'!A0 </script></style><script>document.title='owned'</script><img src=x "
    "onerror=alert(1)>"
    "<a href=javascript:alert(1)>x</a> {{ 7*7 }} {% raw %} \x1b[2J\x1b]0;owned\x07 "
    "[red]bold[/red] \x00\x0b\ufffe\u202e\u2028 "
    "| **b** ``` \n---\n# h \\input{/etc/passwd} $x^2$ & % # _ ~ \\end{document} --> ]]> <!-- "
    "\ud7ff"
)
FORMULAS = (
    "=1+1", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "'=1", "''@x", '=HYPERLINK("http://x","y")',
    "\n=1", "\nx", "\r\n=1", "\uff1d1+1", "\uff0b1", "\uff0d1", "\uff201", " =1", "\u3000=1",
    "\ufeff=1", "\u200b@x", "'\n=1", "\x00=1",
)  # fmt: skip
PLAIN = (
    "", " ", " a", "\u3000a", "a", "a\n=1", "'", "'a", "1", "-1", "+1.5", "-1e-9", "3e+9", "–",
    "a=b", "1-2", "*", "yes",
)  # fmt: skip
OBEYED = set(
    "\x00\x07\x0b\x1b\x9b\u202a\u202b\u202d\u202e\u2066\u2067\u2068\u200e\u200f\u2028\u2029"
)


@pytest.fixture(scope="module")
def hostile_run(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    """A run in which every text that may come from elsewhere is hostile."""
    made = short_run(tmp_path_factory.mktemp("runs"), workers=(1, 4), repeats=2, about=REASON)
    first, *others = made.steps()
    spoilt = [altered(first, valid=False, notes=(REASON,)), *others]
    write_atomically(
        made.folder / "steps.jsonl", "".join(f"{one.model_dump_json()}\n" for one in spoilt)
    )
    made.add_facts(
        [
            Sheet(title=REASON, facts={REASON: REASON}),
            Sheet(title=REASON, layout="swift", facts={REASON: REASON}),
        ],
        [ConfigFile(layout="swift", host="gateway-1", path=f"/etc/{REASON}", text=REASON)],
    )
    made.event("telemetry", REASON, layout="swift")
    made.event("resumed", REASON)
    made.set_state("failed", error=REASON)
    made.write_manifest(altered(made.manifest, command=("weighbridge", "compare", REASON)))
    return RunStore.open(made.folder)


def test_a_report_shows_hostile_names_only_as_text(hostile_run: RunStore) -> None:
    text = derive(hostile_run.folder, pictures=False).report.read_text()
    page = WebPage(text)
    assert not OBEYED & set(text), (
        "neither what a terminal obeys nor what turns the order of letters"
    )
    assert "\\u202e" in "".join(page.words), "shown by its number"
    assert [tag for tag, _ in page.elements].count("script") == 3, (
        "the data, the library, and the program of the page"
    )
    assert not [attrs for _, attrs in page.elements for name in attrs if name.startswith("on")]
    assert not [
        attrs
        for tag, attrs in page.elements
        if tag in ("img", "iframe", "object", "base", "link", "form")
    ]
    assert not [
        value
        for _, attrs in page.elements
        for value in attrs.values()
        if value and value.strip().startswith("javascript:")
    ]
    assert "document.title='owned'" in "".join(page.words), "shown as text"
    assert "{{ 7*7 }}" in text
    policy = next(
        attrs["content"]
        for tag, attrs in page.elements
        if attrs.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    assert "'unsafe-inline'" not in policy.split("script-src")[1].split(";")[0]
    assert "unsafe-eval" not in policy


def test_formulas_are_texts_in_csv_and_can_be_restored() -> None:
    for text in FORMULAS:
        assert csv_text.formula_safe(text).startswith("'")
    for text in PLAIN:
        assert csv_text.formula_safe(text) == text
    for text in (*FORMULAS, *PLAIN, REASON):
        assert plain(csv_text.formula_safe(text)) == text


def test_no_cell_of_any_csv_is_a_formula_and_numbers_are_numbers_to_programs(
    hostile_run: RunStore, tmp_path: Path
) -> None:
    derive(hostile_run.folder, pictures=False)
    for table in ("summary", "steps", "seconds", "effects"):
        export(hostile_run.folder, "csv", (table,), out=tmp_path / f"{table}.csv")
    files = [*hostile_run.derived.rglob("*.csv"), *tmp_path.rglob("*.csv")]
    assert len(files) == 6
    for path in files:
        for line in csv.reader(io.StringIO(path.read_text(), newline="")):
            for cell in line:
                assert cell[:1] not in {"=", "+", "-", "@", "\t", "\r"} or re.fullmatch(
                    r"[+-]?[\d.]+(e[+-]?\d+)?", cell
                ), path
    with duckdb.connect() as asked:
        found = asked.execute("SELECT * FROM read_csv(?)", [str(next(tmp_path.rglob("steps.csv")))])
        kinds = {name: str(kind) for name, kind, *_ in found.description or ()}
    assert (kinds["throughput_ops_s"], kinds["workers"]) == ("DOUBLE", "BIGINT"), kinds
    with next(tmp_path.rglob("steps.csv")).open(newline="") as file:
        notes = [json.loads(plain(line["notes"])) for line in csv.DictReader(file) if line["notes"]]
    assert [REASON] in notes


@pytest.mark.parametrize("form", ["markdown", "pptx"])
def test_papers_and_slides_have_hostile_names_as_text(
    hostile_run: RunStore, tmp_path: Path, form: str
) -> None:
    export(hostile_run.folder, form, (), out=tmp_path / "out")
    (path,) = [one for one in (tmp_path / "out", *(tmp_path / "out").rglob("*")) if one.is_file()]
    if form == "pptx":
        Presentation(str(path))
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if name.endswith((".xml", ".rels")):
                    text = "".join(ET.fromstring(archive.read(name)).itertext())
                    assert not set(text) & OBEYED, name
        return
    text = path.read_text()
    assert not set(text) & OBEYED
    assert not re.search(r"(?<!\\)<", text)
    assert "\n# h" not in text


def test_a_terminal_gets_no_control_characters() -> None:
    out = io.StringIO()
    screen: Console = InertConsole(file=out, force_terminal=True, width=400, color_system=None)
    screen.print(REASON, markup=False, highlight=False, soft_wrap=True)
    assert not {"\x1b", "\x07", "\x00", "\x0b", "\u202e", "\u2028"} & set(out.getvalue())
    assert "[red]bold[/red]" in out.getvalue()
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(escape_controls(REASON + "\x9b31m"))
    assert escape_controls("a\tb\nä – …\u00a0\u2009\u202f") == "a\tb\nä – …\u00a0\u2009\u202f"
