"""README, docs/ and the texts of the command line: their site, their links, and their words.

Nothing is built here: `make docs` does that, with its own check of links.
"""

from __future__ import annotations

import ast
import functools
import re
import runpy
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
PAGES = [README, *sorted(DOCS.rglob("*.md"))]
LINKING = [*PAGES, *(ROOT / f"{name}.md" for name in ("ARCHITECTURE", "CONTRIBUTING", "CHANGELOG"))]
ROOMS = ("common", "suites", "gateways", "topologies", "drivers", "results", "weighbridge")
MARKDOWN = MarkdownIt("commonmark").enable("table")
BANNED = re.compile(
    r"""\b(?: weigh(?:s|ed|ing)? | st(?:an|oo)ds?\ up | standing\ up | t(?:ake[sn]?|ook)\ away
      | told | ledgers?(?!\.csv) | twins? | rigs? | anew | one['’]s\ own | of\ old | saturated\ at
      | whole(?!\ (?:per\ cent|(?:milli)?seconds|number|bytes|[km]i?b\b|ms|cpus|cores))
      | in\ vain | otherwise\ than | nowhere\ but | so\ long\ took | so\ many\ per\ cent
      )\b | \d\ (?:ms\ |s\ )?against\ \d""",
    re.VERBOSE | re.IGNORECASE,
)
"""Words for which these texts have others; "whole" is an integer's."""
TRANSLATED = re.compile(
    r"""\b(?: this\ suite['’]s\ to | all\ the\ same(?=[:;,.`)]|$) | any\ more(?=[:;,.)]|$)
      | but\ for | whoever | somebody\ else | something\ else\ than | does\ not\ let\ in
      | (?:for|after|most|takes?)\ so\ long | has\ not(?=\ (?:the|an?)\b|[:;,.)]|$)
      | is\ no\ (?:plain|line|number|listing|key|name|JSON|XML)\b | are\ no\ (?:runs|versions)\b
      )| \bsay\ `""",
    re.VERBOSE | re.IGNORECASE,
)
"""Phrases that read like a translation: texts of the code have others for them."""
MADE_OF_CODE = ("reference.md", "verbs.md", "layouts.md")
NAMES = re.compile(r"`[^`\n]*`|<code>.*?</code>")


def parsed(page: Path) -> list[Token]:
    return MARKDOWN.parse(page.read_text(encoding="utf-8"))


def said_by(page: Path) -> str:
    return "\n".join(
        " ".join(one.content for one in block.children or [] if one.type == "text")
        for block in parsed(page)
    )


def links(page: Path) -> Iterator[str]:
    for block in parsed(page):
        for one in block.children or []:
            yield from (str(one.attrs[key]) for key in ("href", "src") if key in one.attrs)


@functools.cache
def anchors(page: Path) -> set[str]:
    """Names of a page's headings, as on GitHub and on the site."""
    tokens = parsed(page)
    titles = [
        "".join(one.content for one in inline.children or [])
        for opening, inline in pairwise(tokens)
        if opening.type == "heading_open"
    ]
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def wrong_links(page: Path) -> Iterator[str]:
    for link in links(page):
        path, _, anchor = link.partition("#")
        there = (page.parent / path).resolve() if path else page
        if ":" in path:
            continue
        lost = not there.exists() or not there.is_relative_to(ROOT)
        if lost or (anchor and there.suffix == ".md" and anchor not in anchors(there)):
            yield link


def in_nav(entry: Any) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    else:
        for one in entry.values() if isinstance(entry, dict) else entry:
            yield from in_nav(one)


@functools.cache
def texts_of_code() -> list[tuple[str, str]]:
    """The texts in the code of all rooms but docstrings: where each is, and what it says."""
    found = []
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            if any(part.is_symlink() for part in path.parents):
                continue
            nodes = list(ast.walk(ast.parse(path.read_bytes())))
            docstrings = {id(one.value) for one in nodes if isinstance(one, ast.Expr)}
            for one in nodes:
                text = one.value if isinstance(one, ast.Constant) else None
                if isinstance(text, str) and " " in text.strip() and id(one) not in docstrings:
                    found.append((f"{path.relative_to(ROOT)}:{getattr(one, 'lineno', '')}", text))
    for path in sorted((ROOT / "results" / "templates").glob("*.j2")):
        text = re.sub(r"\{[{%#].*?[}%#]\}", "", path.read_text(), flags=re.DOTALL)
        found.append((path.name, text))
    return found


def test_the_tutorial_that_needs_no_root_begins_without_it() -> None:
    page = (ROOT / "docs" / "tutorial" / "own-endpoints.md").read_text(encoding="utf-8")
    first = page.partition("```sh\n")[2].partition("```")[0]
    # Each target of make that builds something installs packages of the system first.
    assert not re.search(r"\b(make|sudo|apt|apt-get|docker)\b", first)
    assert "weighbridge" in first


def test_lines_of_the_readme_are_not_too_long_for_a_screen() -> None:
    lines = README.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if len(line) > 120 and line[0] != "|"] == []


@pytest.mark.parametrize("page", LINKING, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    assert list(wrong_links(page)) == []


def test_every_page_is_in_the_navigation_once() -> None:
    named = list(in_nav(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]))
    assert len(named) == len({*named})
    added = re.findall(
        r'^    "([\w/-]+\.md)":', (ROOT / "scripts" / "mkdocs_hook.py").read_text(), re.MULTILINE
    )
    assert "index.md" in added
    assert {*named} == {*added, *(str(page.relative_to(DOCS)) for page in PAGES[1:])}


def test_every_suite_that_ships_is_on_its_page() -> None:
    page = (DOCS / "suites.md").read_text(encoding="utf-8")
    shipped = {path.stem for path in (ROOT / "suites").glob("*.yaml")}
    assert {name for name in shipped if f"`{name}`" not in page} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_say_things_in_the_words_of_the_glossary(page: Path) -> None:
    """Names in code are those of the code; pages made of the help and of records show theirs."""
    assert [found[0] for found in BANNED.finditer(said_by(page))] == []


def test_what_the_command_prints_and_reports_say_is_in_the_words_of_the_glossary() -> None:
    texts = texts_of_code()
    assert len(texts) > 5000
    assert [(where, text) for where, text in texts if BANNED.search(NAMES.sub("", text))] == []


def test_no_text_of_the_code_reads_like_a_translation() -> None:
    texts = [*texts_of_code(), *((name, said_by(DOCS / name)) for name in MADE_OF_CODE)]
    assert [(where, found[0]) for where, text in texts for found in TRANSLATED.finditer(text)] == []


@pytest.mark.parametrize("toy", ["toy_store", "toy_front", "toy_driver", "toy_metric", "toy_chart"])
def test_every_toy_is_documented_and_has_an_entry_point(toy: str) -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text()
    assert f"tests/support/{toy}" in page
    (points,) = (ROOT / "tests" / "support" / toy).glob("*.dist-info/entry_points.txt")
    group = re.search(r"\[(weighbridge\.\w+)\]", points.read_text())
    assert group is not None
    assert group[1] in page


def test_every_attack_names_a_test_that_exists() -> None:
    tests = ROOT / "tests"
    attacks = runpy.run_path(str(tests / "system" / "attacks.py"))["ATTACKS"]
    targets = " ".join(attacks.values()).split()
    assert targets
    for target in targets:
        file, _, name = target.partition("::")
        names = re.findall(r"^def (test_\w+)", (tests / file).read_text(), re.MULTILINE)
        assert any(name.strip("*") in one for one in names), target
