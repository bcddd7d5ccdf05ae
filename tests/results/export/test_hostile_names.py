"""Texts that come from servers, logs and files, such as an error's reason, are inert in whatever
shows them.
"""

from __future__ import annotations

import csv
import io
import json
import re
import xml.etree.ElementTree as ET
import zipfile
from html.parser import HTMLParser
from pathlib import Path

import duckdb
import pytest
from pptx import Presentation
from rich.console import Console

from fake_run import WORKLOADS, fake_run
from made_rows import altered
from weighbridge.common import csv_text
from weighbridge.common.csv_text import plain
from weighbridge.common.escaping import escape_controls
from weighbridge.results import derive
from weighbridge.results.export.export import export
from weighbridge.results.record.manifest import ConfigFile, Sheet
from weighbridge.results.record.store import RunStore
from weighbridge.results.record.writing import write_atomically
from weighbridge.screen.terminal import InertConsole

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
def run(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    """A run in which every text that may come from elsewhere is hostile."""
    workload = altered(WORKLOADS[0], workers=(1, 4), runtime=1.0)
    made = fake_run(tmp_path_factory.mktemp("runs"), workloads=[workload], repeats=2, about=REASON)
    steps = made.steps()
    spoilt = [
        altered(step, valid=False, notes=(REASON,)) if not number else step
        for number, step in enumerate(steps)
    ]
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


class Elements(HTMLParser):
    """What a browser makes elements of."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_a_report_shows_hostile_names_only_as_text(run: RunStore) -> None:
    text = derive(run.folder, pictures=False).report.read_text()
    page = Elements(text)
    assert not OBEYED & set(text), (
        "neither what a terminal obeys nor what turns the order of letters"
    )
    assert "\\u202e" in "".join(page.words), "shown by its number"
    assert [tag for tag, _ in page.found].count("script") == 3, (
        "the data, the library, and the program of the page"
    )
    assert not [attrs for _, attrs in page.found for name in attrs if name.startswith("on")]
    assert not [
        attrs
        for tag, attrs in page.found
        if tag in ("img", "iframe", "object", "base", "link", "form")
    ]
    assert not [
        value
        for _, attrs in page.found
        for value in attrs.values()
        if value and value.strip().startswith("javascript:")
    ]
    assert "document.title='owned'" in "".join(page.words), "shown as text"
    assert "{{ 7*7 }}" in text
    policy = next(
        attrs["content"]
        for tag, attrs in page.found
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
    run: RunStore, tmp_path: Path
) -> None:
    derive(run.folder, pictures=False)
    for table in ("summary", "steps", "seconds", "effects"):
        export(run.folder, "csv", (table,), out=tmp_path / f"{table}.csv")
    files = [*run.derived.rglob("*.csv"), *tmp_path.rglob("*.csv")]
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
    run: RunStore, tmp_path: Path, form: str
) -> None:
    export(run.folder, form, (), out=tmp_path / "out")
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
