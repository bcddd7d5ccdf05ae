import re
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from fake_run import WORKLOADS, fake_run
from made_rows import altered, changed
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.analysis.steps.validity import least_samples
from weighbridge.results.export.markdown_format import escape, markdown_file
from weighbridge.results.export.paper import PaperColumn, PaperTable, effects_paper, summary_paper
from weighbridge.results.record.store import RunStore

HOSTILE = "a|b \\input{/etc/passwd} $x$ 50% #1 _y_ ~ ^ <script>&amp;`c`\n\\end{table}"
TABLE = PaperTable(
    name="hostile",
    caption=HOSTILE,
    columns=(PaperColumn(title="Layout"), PaperColumn(title="p90", unit="ms", numeric=True)),
    groups=((("[x]", "n<200"), (HOSTILE, "1")), (("*", "–"),)),
    notes=(HOSTILE,),
)


@pytest.fixture(scope="module")
def data(run: RunStore) -> RunData:
    return RunData(run.folder)


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
    workload = altered(WORKLOADS[1], workers=(1,), runtime=2.0)
    store = fake_run(tmp_path / "runs", workloads=[workload], repeats=1)
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
    assert data.comparison is not None
    effects = effects_paper(data, data.comparison)
    assert {line[3] for group in effects.groups for line in group} == {"rgw-beast"}
    assert any(
        note.startswith("Noise floor of throughput: swift vs itself") for note in effects.notes
    )


def test_effects_are_grouped_by_requests_and_metric_with_their_intervals(data: RunData) -> None:
    assert data.comparison is not None
    table = effects_paper(data, data.comparison)
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
    hostile = HOSTILE.replace("\n", " ")
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
