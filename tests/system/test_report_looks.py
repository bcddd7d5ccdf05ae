"""How the report looks in a real browser: on a wide screen, a phone and paper, light and dark; what
a keyboard and a screen reader find; and what its switches hide.
"""

from __future__ import annotations

import base64
import re
import subprocess
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from browsing import browsing, drawn, opened
from fake_run import WORKLOADS, StepFaults, fake_run
from fake_tuning import fake_tuning
from weighbridge.results import derive

pytestmark = pytest.mark.system

LAYOUT = (Path(__file__).parent.parent / "support" / "layout.js").read_text()
LEAST_CHART_PT = 100
"""What a chart is high on paper, at least."""
_PAGE = re.compile(r'<page width="([\d.]+)" height="([\d.]+)">(.*?)</page>', re.DOTALL)
_WORD = re.compile(
    r'<word xMin="([-\d.]+)" yMin="[-\d.]+" xMax="([-\d.]+)" yMax="([-\d.]+)">(.*?)</word>'
)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    short = [workload.model_copy(update={"runtime": 3.0}) for workload in WORKLOADS]
    spoilt = StepFaults(failed=(("swift", "small-read", 16),))
    run = fake_run(tmp_path_factory.mktemp("runs"), workloads=short, repeats=2, spoilt=spoilt)
    page = derive(run.folder, pictures=False).report
    assert page is not None
    return page


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    with browsing(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture(scope="module")
def tuning(tmp_path_factory: pytest.TempPathFactory) -> Path:
    page = derive(fake_tuning(tmp_path_factory.mktemp("tunings")).folder, pictures=False).report
    assert page is not None
    return page


def seen_at(browser: webdriver.Chrome, width: int, look: str = "light") -> None:
    """The next pages are seen by a browser of this width whose reader prefers this look."""
    size = {"width": width, "height": 1200, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": look}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def rows_of(browser: webdriver.Chrome, table: str) -> list[str]:
    """The layouts of the lines of a table that are not hidden."""
    script = f"""
        const lines = [...document.querySelectorAll("{table} tbody tr")];
        return lines.filter((one) => !one.hidden).map((one) => one.dataset.layout);
    """
    return list(browser.execute_script(script))


@pytest.mark.parametrize(
    ("width", "look"), [pytest.param(1400, "light", marks=pytest.mark.test_all), (400, "dark")]
)
def test_no_text_is_cut_off_or_lies_on_another_and_everybody_can_read_it(
    browser: webdriver.Chrome, report: Path, width: int, look: str
) -> None:
    seen_at(browser, width, look)
    opened(browser, report)
    assert browser.execute_script("return document.documentElement.dataset.look") == look
    found = browser.execute_script(LAYOUT)
    assert found.pop("texts") > 500
    assert found == {"outside": [], "clipped": [], "over": []}
    axe = resources.files("axe_core_python").joinpath("axe.min.js").read_text()
    browser.execute_script(axe)
    checked: dict[str, Any] = browser.execute_async_script(
        """axe.run({exclude: [["svg.marks"], [".cell"]]}, {resultTypes: ["violations"]})
        .then(arguments[arguments.length - 1])"""
    )
    assert len(checked["passes"]) > 20
    assert [(one["id"], one["nodes"][0]["html"]) for one in checked["violations"]] == []


def test_neither_is_any_text_of_a_tuning(browser: webdriver.Chrome, tuning: Path) -> None:
    for width in (1400, 400):
        seen_at(browser, width)
        opened(browser, tuning)
        found = browser.execute_script(LAYOUT)
        assert found.pop("texts") > 500
        assert found == {"outside": [], "clipped": [], "over": []}, width


def test_on_paper_all_words_are_on_their_page_and_beside_each_other(
    browser: webdriver.Chrome, report: Path, tmp_path: Path
) -> None:
    seen_at(browser, 1400)
    opened(browser, report)
    size = {"paperWidth": 8.27, "paperHeight": 11.69, "printBackground": True}
    printed = browser.execute_cdp_cmd("Page.printToPDF", {**size, "preferCSSPageSize": True})
    (tmp_path / "report.pdf").write_bytes(base64.b64decode(printed["data"]))
    subprocess.run(["pdftotext", "-bbox", tmp_path / "report.pdf"], check=True)
    pages = _PAGE.findall((tmp_path / "report.html").read_text())
    assert len(pages) > 5
    titles = browser.execute_script(
        "return [...document.querySelectorAll('section')].filter(s => s.querySelector('.plot'))"
        ".map(s => s.querySelector('h2').textContent.trim())"
    )
    assert len(titles) > 3
    for title in titles:
        below = [room for *_, text in pages if (room := _room_below(title, text)) is not None]
        assert below, title
        assert min(below) > LEAST_CHART_PT, f"{title} stands at the end of a page"
    for number, (wide, high, text) in enumerate(pages, 1):
        assert sorted((float(wide), float(high))) == pytest.approx([595.92, 841.92], abs=1)
        words = [(float(a), float(b), float(y), word) for a, b, y, word in _WORD.findall(text)]
        assert [word for a, b, _, word in words if a < 0 or b > float(wide)] == [], number
        for n, (left, right, foot, word) in enumerate(words):
            for other in words[n + 1 :]:
                same_line = abs(foot - other[2]) < 0.5
                over = min(right, other[1]) - max(left, other[0])
                assert not (same_line and over > 1.5), (number, word, other[3])


def _room_below(title: str, page: str) -> float | None:
    """From a title on a page to the lowest word there, in points; None if it is not there."""
    words = [(float(foot), word) for _, _, foot, word in _WORD.findall(page)]
    wanted = title.split()
    for n in range(len(words)):
        if [word for _, word in words[n : n + len(wanted)]] == wanted:
            return max(foot for foot, _ in words) - words[n][0]
    return None


def test_a_layout_that_is_switched_off_leaves_tables_and_charts_and_comes_back(
    browser: webdriver.Chrome, report: Path
) -> None:
    seen_at(browser, 1400)
    opened(browser, report)
    plot = "#throughput-by-workers svg .mark-line path"
    lines = len(browser.find_elements(By.CSS_SELECTOR, plot))
    switch = browser.find_element(By.CSS_SELECTOR, "[data-switches] input[value=swift]")
    switch.send_keys(Keys.SPACE)
    assert set(rows_of(browser, "#results")) == set(rows_of(browser, "#glance")) == {"rgw-beast"}
    drawn(browser)
    assert len(browser.find_elements(By.CSS_SELECTOR, plot)) == lines / 2
    switch.send_keys(Keys.SPACE)
    drawn(browser)
    assert set(rows_of(browser, "#results")) == {"rgw-beast", "swift"}
    assert len(browser.find_elements(By.CSS_SELECTOR, plot)) == lines


def test_requests_that_are_switched_off_take_their_charts_along(
    browser: webdriver.Chrome, report: Path
) -> None:
    seen_at(browser, 1400)
    opened(browser, report)
    before = len(rows_of(browser, "#results"))
    switches = browser.find_elements(By.CSS_SELECTOR, "[data-switches] input")
    switches[-1].send_keys(Keys.SPACE)
    name = switches[-1].get_attribute("value")
    assert 0 < len(rows_of(browser, "#results")) < before
    titles = browser.find_elements(By.XPATH, f"//figure//h3[starts-with(text(), '{name}')]")
    assert titles
    assert not any(one.is_displayed() for one in titles)


def test_figures_and_findings_lead_to_their_lines(browser: webdriver.Chrome, report: Path) -> None:
    seen_at(browser, 1400)
    opened(browser, report)
    links = browser.find_elements(By.CSS_SELECTOR, "#glance a, #findings a.to, .trust a")
    assert len(links) > 10
    for link in links:
        anchor = str(link.get_attribute("href")).rpartition("#")[2]
        assert browser.find_elements(By.ID, anchor), anchor


def test_the_reader_chooses_the_look(browser: webdriver.Chrome, report: Path) -> None:
    seen_at(browser, 1400)
    opened(browser, report)
    paper = "return getComputedStyle(document.body).backgroundColor"
    assert browser.execute_script(paper) == "rgb(255, 255, 255)"
    browser.find_element(By.CSS_SELECTOR, "button.look").send_keys(Keys.ENTER)
    drawn(browser)
    assert browser.execute_script(paper) == "rgb(20, 22, 26)"
    assert browser.find_element(By.CSS_SELECTOR, "button.look").text == "Light"
