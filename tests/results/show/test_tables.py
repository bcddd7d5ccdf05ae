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
from typing import get_args

import duckdb
import jsonschema
import pytest
from markdown_it import MarkdownIt
from pptx import Presentation
from rich.console import Console

from fake_outages import outage_run
from fake_run import WORKLOADS, fake_run, short_run
from made_cuts import record_made_cuts
from made_rows import altered, csv_of, present
from web_pages import WebPage
from weighbridge.common import csv_text
from weighbridge.common.errors import InvalidMeasurement, UsageError
from weighbridge.common.escaping import escape_controls
from weighbridge.results import derive
from weighbridge.results.features.open_run import open_run
from weighbridge.results.judge.run_data import RunData
from weighbridge.results.run.reading import write_atomically
from weighbridge.results.run.resolved import ConfigFile, Sheet
from weighbridge.results.run.step import Second
from weighbridge.results.run.store import RunStore
from weighbridge.results.show.exports import FORMATS, export, json_schema, produce
from weighbridge.results.show.table import (
    Cell,
    Column,
    Filled,
    Kind,
    Table,
    columns,
    database,
    escape,
    line,
)
from weighbridge.results.show.tables import EFFECTS, SUMMARY, tables
from weighbridge.results.show.terminal import InertConsole

HOSTILE = '"; DROP TABLE steps; --\n\x00|&\\end{table}\t∞\x85'


@pytest.fixture(scope="module")
def data(run: RunStore) -> RunData:
    return open_run(run.folder)


@pytest.fixture(scope="module")
def filled(
    data: RunData, tuned_data: RunData, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Filled]:
    broken = open_run(outage_run(tmp_path_factory.mktemp("broken")).folder)
    cut = tmp_path_factory.mktemp("cut") / data.store.folder.name
    shutil.copytree(data.store.folder, cut)
    record_made_cuts(cut, cuts=2)
    of = dict.fromkeys(("ledger", "trials"), tuned_data)
    of |= {"durability": open_run(cut), "outages": broken}
    return {name: one.of_runs([of.get(name, data)]) for name, one in tables().items()}


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return short_run(tmp_path / "runs", repeats=1).folder


def hostile() -> Filled:
    names = ("select", 'quo"ted', "number", "boolean", "time", "texts")
    head = tuple(Column(*each, "A.") for each in zip(names, get_args(Kind), strict=True))
    cells: list[tuple[Cell, ...]] = [
        (HOSTILE, 2**53, 0.1 + 0.2, True, datetime(2014, 11, 4, 12, 0, 0, 5000), (HOSTILE, "")),  # noqa: DTZ001 - UTC, without a zone
        (None, None, None, None, None, ()),
        ("", -1, -1e-300, False, datetime(1970, 1, 1), ("a",)),  # noqa: DTZ001
    ]
    table = Table("hostile", "Whatever can stand in a cell.", head)
    return Filled(table, tuple(line(**dict(zip(names, each, strict=True))) for each in cells))


def read_parquet(
    content: bytes, folder: Path
) -> tuple[list[str], list[str], list[tuple[object, ...]]]:
    path = folder / "back.parquet"
    path.write_bytes(content)
    with database() as connection:
        found = connection.execute(f"SELECT * FROM '{path}'")
        names = [one[0] for one in found.description]
        kinds = [str(one[1]) for one in found.description]
        return names, kinds, found.fetchall()


def as_lines(filled: Filled) -> list[tuple[object, ...]]:
    return [
        tuple(list(cell) if isinstance(cell, tuple) else cell for cell in each)
        for each in filled.cells
    ]


@pytest.mark.parametrize("name", list(tables()))
@pytest.mark.long
def test_a_table_is_read_back_from_parquet_unchanged_with_its_types(
    filled: dict[str, Filled], name: str, tmp_path: Path
) -> None:
    one = filled[name]
    if name not in ("attestation", "events", "kept", "memory", "staircase"):  # may be lacking
        assert one.lines
    names, _, lines = read_parquet(one.parquet, tmp_path)
    assert names == [column.name for column in one.table.columns]
    assert lines == as_lines(one)


def test_the_content_of_cells_is_inert(tmp_path: Path) -> None:
    names, kinds, lines = read_parquet(hostile().parquet, tmp_path)
    assert names == ["select", 'quo"ted', "number", "boolean", "time", "texts"]
    assert kinds == ["VARCHAR", "BIGINT", "DOUBLE", "BOOLEAN", "TIMESTAMP", "VARCHAR[]"]
    assert lines == as_lines(hostile())


def test_csv_has_every_digit_and_empty_cells_for_what_is_unknown() -> None:
    head, first, second, third = csv.reader(io.StringIO(hostile().csv, newline=""))
    assert head[1] == 'quo"ted'
    assert first[0] == escape_controls(HOSTILE)
    assert float(first[2]) == 0.1 + 0.2
    assert first[3:5] == ["true", "2014-11-04T12:00:00.005Z"]
    assert json.loads(first[5]) == [HOSTILE, ""]
    assert second == [""] * 6
    assert third[1:4] == ["-1", "-1e-300", "false"]


def test_the_summary_has_the_rows_of_the_report_unrounded(
    data: RunData, filled: dict[str, Filled]
) -> None:
    summary = filled["summary"]
    assert summary.column("throughput_ops_s") == tuple(
        row.value("throughput") for row in (*data.rows, *data.layers)
    )
    assert summary.column("ranked") == tuple(row.ranked for row in (*data.rows, *data.layers))
    report = list(csv.DictReader(io.StringIO(csv_of(data.rows))))
    known = ["" if value is None else repr(value) for value in summary.column("p90_ms")]
    assert [one["p90_ms"] for one in report] == known
    assert list(report[0]) == [column.name for column in summary.table.columns]


def test_steps_have_a_line_for_every_repeat_also_without_a_measurement_and_add_up_seconds(
    data: RunData, filled: dict[str, Filled]
) -> None:
    steps = filled["steps"]
    assert len(steps.lines) == len(data.steps) == 2 * 2 * 11 - 2
    (failed,) = (one for one in steps.objects if not one["measured"])
    assert (failed["layout"], failed["operation"], failed["repeat"]) == ("swift", "read", 1)
    assert failed["notes"] == ["the gateway did not answer for 60 s"]
    unknown = ("throughput_ops_s", "samples", "errors", "p90_ms", "window_s", "started_at")
    assert {failed[name] for name in unknown} == {None}
    assert (failed["valid"], failed["ranked"]) == (False, False)
    erring = [cell for cell in steps.column("error_classes") if cell]
    assert erring == [("http-503: 40", "timeout: 3")]
    assert sorted(steps.column("visit")) == list(range(1, len(steps.lines) + 1))
    counted = sum(int(str(count)) for count in filled["seconds"].column("operations"))
    assert counted == sum(int(str(count)) for count in steps.column("samples") if count)


def test_a_second_in_which_nothing_succeeded_has_no_latency(small: Path) -> None:
    data = open_run(small)
    idle = Second(second=7, operation="read", count=0, bytes=0, errors=2, max_us=0, sum_us=0)
    key, step = next(iter(data.steps.items()))
    data.steps[key] = altered(step, measurement=altered(present(step.measurement), seconds=(idle,)))
    found = tables()["seconds"].of_runs([data])
    place = found.column("second").index(7)
    shown = [found.column(name)[place] for name in ("mean_ms", "max_ms", "operations", "errors")]
    assert shown == [None, None, 0, 2]


def test_effects_are_those_of_the_comparison(data: RunData, filled: dict[str, Filled]) -> None:
    effects = present(data.comparison).effects
    assert filled["effects"].column("text") == tuple(one.text for one in effects)
    ratios = tuple(one.ratio.value if one.ratio else None for one in effects)
    assert filled["effects"].column("ratio") == ratios
    assert None in filled["effects"].column("workers")


def test_json_is_valid_by_the_printed_schema_unless_a_field_is_undocumented(data: RunData) -> None:
    made = produce(open_run(data.store.folder), "json")
    document = json.loads(made.files[0].content)
    jsonschema.Draft202012Validator.check_schema(json_schema())
    known = jsonschema.Draft202012Validator(json_schema())
    known.validate(document)
    assert document["schema_version"] == 1
    assert document["run"]["run"] == data.manifest.run_id
    assert str(data.store.folder) not in made.files[0].content.decode()
    assert document["tables"]["summary"][0]["throughput_ops_s"] == data.rows[0].value("throughput")
    assert {name: len(lines) for name, lines in document["tables"].items()} == {
        name: len(one.of_runs([data]).lines)
        for name, one in tables().items()
        if name not in ("runs", "hosts")
    }
    document["tables"]["summary"][0]["colour"] = "blue"
    with pytest.raises(jsonschema.ValidationError, match="colour"):
        known.validate(document)


def test_every_column_is_documented_and_has_a_unique_name() -> None:
    for table in tables().values():
        names = [one.name for one in table.columns]
        assert len(set(names)) == len(names)
        assert names[0] == "run"
        assert all(one.about.endswith(".") for one in table.columns)
        assert {one.unit for one in table.columns if one.name.endswith("_ms")} <= {"ms"}


@pytest.mark.parametrize("text", ["a texte | A.", "a text | No stop", "a | text."])
def test_a_column_that_is_declared_wrongly_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"column|unpack"):
        columns(text)


def test_an_export_goes_into_the_run_by_default_and_replaces_nothing_without_force(
    small: Path, tmp_path: Path
) -> None:
    (path,) = export(open_run(small), "csv").paths
    assert path == small / "derived" / "exports" / "summary.csv"
    path.write_text("mine")
    with pytest.raises(UsageError, match=r"exists already(.|\n)*--force"):
        export(open_run(small), "csv", ["steps", "summary"])
    assert path.read_text() == "mine"
    assert not (path.parent / "steps.csv").exists()
    export(open_run(small), "csv", force=True)
    assert path.read_text().startswith("run,layout")
    one = tmp_path / "new" / "one.json"
    assert export(open_run(small), "json", out=one).paths == (one,)
    assert export(open_run(small), "csv", out=tmp_path).paths == (tmp_path / "summary.csv",)
    two = tmp_path / "two"
    assert export(open_run(small), "csv", ["steps", "seconds"], out=two).paths == (
        two / "steps.csv",
        two / "seconds.csv",
    )


@pytest.mark.parametrize(
    ("form", "names", "said"),
    [
        ("parqet", (), "did you mean 'parquet'"),
        ("csv", ["second"], "did you mean 'seconds'"),
        ("hgrm", ["steps"], "exports complete runs"),
    ],
)
def test_an_unknown_format_or_table_is_answered_with_the_closest_one(
    small: Path, form: str, names: Sequence[str], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        export(open_run(small), form, names)


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "pptx"])
def test_every_format_makes_something_of_a_run_of_one_layout(tmp_path: Path, name: str) -> None:
    alone = short_run(tmp_path / "runs", layouts=("swift",), repeats=1, telemetry=False)
    done = export(open_run(alone.folder), name)
    assert all(path.stat().st_size for path in done.paths)
    assert done.remarks == ()


def test_a_run_of_bins_has_intervals_for_figures_and_nothing_for_hgrm(tmp_path: Path) -> None:
    binned = short_run(tmp_path / "runs", workers=(4,), runtime=3.0, repeats=1, driver="cosbench")
    (summary,) = produce(open_run(binned.folder), "csv").files
    line = next(csv.DictReader(io.StringIO(summary.content.decode())))
    assert (line["p90_ms"], line["max_ms"]) == ("", "")
    assert float(line["p90_high_ms"]) - float(line["p90_low_ms"]) == 10
    with pytest.raises(InvalidMeasurement, match="nothing to export as hgrm"):
        produce(open_run(binned.folder), "hgrm")


def test_times_are_in_utc_and_a_cell_that_nothing_has_is_an_error_unless_unknown() -> None:
    (at,) = columns("at time | When.")
    noon = datetime(2014, 11, 4, 12)  # noqa: DTZ001 - in UTC
    for text in ("2014-11-04T13:00:00+01:00", "2014-11-04T12:00:00Z"):
        assert line(at=text).cell(at) == noon
    assert line(at=None).cell(at) is None
    with pytest.raises(InvalidMeasurement, match="not a time"):
        line(at="yesterday").cell(at)
    (name,) = columns("name text | A name.")
    with pytest.raises(AttributeError, match="name"):
        line(object()).cell(name)
    assert line(object(), None).cell(name) is None


def markdown_lines(text: str) -> list[list[str]]:
    rows = [one for one in text.splitlines() if one.startswith("| ")]
    return [[cell.strip().replace("\\", "") for cell in one.split(" | ")] for one in rows]


def test_markdown_has_units_in_its_heads_a_line_for_each_row_and_caveats(data: RunData) -> None:
    head, *lines = markdown_lines(SUMMARY.markdown(data))
    assert {"API", "Workers", "Throughput (op/s)", "p90 (ms)", "Repeats"} <= set(head)
    assert len(lines) == len((*data.rows, *data.layers))
    assert any(one[-1].startswith("provisional: ") for one in lines)
    assert data.manifest.run_id in SUMMARY.markdown(data)


def test_what_is_not_ranked_says_why_in_its_line_and_below(tmp_path: Path) -> None:
    store = short_run(tmp_path / "runs", kind=1, runtime=2.0, repeats=1)
    steps = store.folder / "steps.jsonl"
    first, second = steps.read_text().splitlines()
    first = first.replace('"valid":true,"notes":[]', '"valid":false,"notes":["it broke"]')
    steps.write_text(f"{first}\n{second}\n")
    text = SUMMARY.markdown(open_run(store.folder))
    _, beast, _ = markdown_lines(text)
    assert beast[-1].startswith("not valid")
    assert "- Not valid: it broke" in text


def test_an_a_a_control_is_marked_and_compared_with_its_own_layout_alone(tmp_path: Path) -> None:
    workload = altered(WORKLOADS[0], workers=(1,), runtime=1.0)
    layouts = ("swift", "rgw-beast", "swift-again")
    store = fake_run(tmp_path / "runs", layouts=layouts, workloads=[workload], repeats=2)
    plan = store.folder / "plan.resolved.json"
    plan.write_text(re.sub(r'"twins": \{\}', '"twins": {"swift-again": "swift"}', plan.read_text()))
    data = open_run(store.folder)
    head, *lines = markdown_lines(SUMMARY.markdown(data))
    place = head.index("A/A control of")
    assert {(one[0].strip("| "), one[place]) for one in lines} == {
        ("swift", "–"), ("rgw-beast", "–"), ("swift-again", "swift")
    }  # fmt: skip
    assert "A/A control: swift measured again gave " in EFFECTS.markdown(data)
    effects = EFFECTS.of_runs([data])
    assert set(effects.column("subject")) == {"rgw-beast"}
    assert set(effects.column("workers")) == {1}, "all of one worker count are not there twice"


PAPER_HOSTILE = "a|b \\input{/etc/passwd} $x$ 50% #1 _y_ ~ ^ <script>&amp;`c`\n\\end{table}"
PAPER = Filled(
    Table("hostile", "A.", columns("layout text | A. | Layout\np90 number ms | B. | p90")),
    (
        line(layout="[x]", p90=1.0).showing({"p90": "n<200"}),
        line(layout=PAPER_HOSTILE, p90=1.0),
        line(layout="*", p90=None),
    ),
)


def test_a_markdown_reader_finds_only_the_texts_of_the_table() -> None:
    tokens = (
        MarkdownIt("commonmark", {"html": True})
        .enable("table")
        .parse(PAPER.markdown(PAPER_HOSTILE, [PAPER_HOSTILE]))
    )
    inline = [token.children or [] for token in tokens if token.type == "inline"]
    kinds = {child.type for children in inline for child in children}
    assert kinds == {"text", "strong_open", "strong_close"}
    read = ["".join(child.content for child in children) for children in inline]
    texts = ["", "Layout", "p90 (ms)", "[x]", "n<200", "", "1.00", "*", "–", ""]
    assert read == [one or PAPER_HOSTILE.replace("\n", " ") for one in texts]


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
    facts = {REASON: REASON}
    made.add_facts(
        [Sheet(title=REASON, facts=facts), Sheet(title=REASON, layout="swift", facts=facts)],
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
    assert not OBEYED & set(text)
    assert "\\u202e" in "".join(page.words), "shown by its number"
    # The data, the library, and the program of the page.
    assert len(page.all("script")) == 3
    assert not {tag for tag, _ in page.elements} & {
        *("img", "iframe", "object", "base", "link", "form")
    }
    for _, attrs in page.elements:
        assert not [name for name in attrs if name.startswith("on")]
        assert not [
            value for value in attrs.values() if value and value.strip().startswith("javascript:")
        ]
    assert "document.title='owned'" in "".join(page.words), "shown as text"
    assert "{{ 7*7 }}" in text
    (policy,) = (attrs["content"] or "" for attrs in page.all("meta") if "http-equiv" in attrs)
    assert "'unsafe-inline'" not in policy.split("script-src")[1].split(";")[0]
    assert "unsafe-eval" not in policy


def test_formulas_are_texts_in_csv_and_can_be_restored() -> None:
    for text in (*FORMULAS, REASON):
        assert csv_text.formula_safe(text) == f"'{escape_controls(text)}"
    for text in PLAIN:
        assert csv_text.formula_safe(text) == text


def test_no_cell_of_any_csv_is_a_formula_and_numbers_are_numbers_to_programs(
    hostile_run: RunStore, tmp_path: Path
) -> None:
    derive(hostile_run.folder, pictures=False)
    for table in ("summary", "steps", "seconds", "effects"):
        export(open_run(hostile_run.folder), "csv", (table,), out=tmp_path / f"{table}.csv")
    files = [*hostile_run.derived.rglob("*.csv"), *tmp_path.rglob("*.csv")]
    assert len(files) == 8
    for path in files:
        for cells in csv.reader(io.StringIO(path.read_text(), newline="")):
            for cell in cells:
                assert cell[:1] not in {"=", "+", "-", "@", "\t", "\r"} or re.fullmatch(
                    r"[+-]?[\d.]+(e[+-]?\d+)?", cell
                ), path
                assert not set(cell) & OBEYED, path
    with duckdb.connect() as asked:
        found = asked.execute("SELECT * FROM read_csv(?)", [str(next(tmp_path.rglob("steps.csv")))])
        kinds = {name: str(kind) for name, kind, *_ in found.description or ()}
    assert (kinds["throughput_ops_s"], kinds["workers"]) == ("DOUBLE", "BIGINT"), kinds
    with next(tmp_path.rglob("steps.csv")).open(newline="") as file:
        notes = [json.loads(line["notes"]) for line in csv.DictReader(file) if line["notes"]]
    assert [REASON] in notes


@pytest.mark.parametrize("form", ["markdown", "pptx"])
def test_papers_and_slides_have_hostile_names_as_text(
    hostile_run: RunStore, tmp_path: Path, form: str
) -> None:
    export(open_run(hostile_run.folder), form, (), out=tmp_path / "out")
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
