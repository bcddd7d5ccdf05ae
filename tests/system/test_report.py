"""The report in a real browser without a network: it draws, sorts, shows its data, and asks nobody
for anything.
"""

from __future__ import annotations

import base64
import json
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
from weighbridge.results.run.resolved import Sheet

pytestmark = pytest.mark.system

SPOILT = StepFaults(failed=(("swift", "small-read", 16),), absent=(("swift", "large-read", 8),))
HOSTILE = (
    "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    short = [workload.model_copy(update={"runtime": 3.0}) for workload in WORKLOADS]
    run = fake_run(
        tmp_path_factory.mktemp("runs"), workloads=short, repeats=2, spoilt=SPOILT, about=HOSTILE
    )
    run.add_facts([Sheet(title="driver", facts={HOSTILE: HOSTILE})])
    page = derive(run.folder, pictures=False).report
    assert page is not None
    return page


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    with browsing(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture(scope="module")
def logs(browser: webdriver.Chrome, report: Path) -> dict[str, list[dict[str, str]]]:
    """What the browser wrote down, by kind, while it opened the report."""
    for kind in ("performance", "browser"):
        log(browser, kind)
    opened(browser, report)
    return {kind: log(browser, kind) for kind in ("performance", "browser")}


@pytest.fixture(scope="module")
def page(browser: webdriver.Chrome, logs: object) -> webdriver.Chrome:
    """The report, opened once: the tests of it come before those of other pages."""
    return browser


def column(page: webdriver.Chrome, title: str) -> list[str]:
    script = """
        const buttons = [...document.querySelectorAll("#results thead th button")];
        const heads = buttons.map((button) => button.textContent);
        const at = heads.indexOf(arguments[0]);
        const rows = [...document.querySelectorAll("#results tbody tr")];
        return rows.map((row) => row.cells[at].dataset.value);
    """
    return list(page.execute_script(script, title))


def log(page: webdriver.Chrome, kind: str) -> list[dict[str, str]]:
    return list(page.get_log(kind))  # type: ignore[no-untyped-call]


def heading(page: webdriver.Chrome, title: str) -> webdriver.remote.webelement.WebElement:
    return page.find_element(By.XPATH, f"//table[@id='results']//th[button[text()='{title}']]")


def test_every_chart_is_drawn_with_its_lines_and_labels(page: webdriver.Chrome) -> None:
    plots = page.find_elements(By.CSS_SELECTOR, "[id$=by-workers] > .panels .plot")
    assert len(plots) == 6
    for plot in plots:
        assert plot.size["width"] > 400
        words = [
            text.get_attribute("textContent")
            for text in plot.find_elements(By.CSS_SELECTOR, "svg text")
        ]
        assert {"rgw-beast", "swift", "workers (log scale)"} <= set(words)
        assert len(plot.find_elements(By.CSS_SELECTOR, "svg .mark-symbol path")) >= 4
    lines = page.find_elements(By.CSS_SELECTOR, "#throughput-by-workers .mark-line path")
    assert len(lines) >= 6


def test_every_figure_is_drawn_and_has_its_data_beside_it(page: webdriver.Chrome) -> None:
    figures = page.find_elements(By.XPATH, "//figure[.//div[contains(@class, 'drawn')]]")
    assert len(figures) >= 12
    for figure in figures:
        assert figure.find_elements(By.CSS_SELECTOR, ".drawn svg .mark-group path"), figure.text
        assert figure.find_element(By.CSS_SELECTOR, ".drawn svg.marks").get_attribute("aria-label")
        if not figure.find_elements(
            By.XPATH, "ancestor::details[@id='certainty']"
        ):  # the map's data are the table above it
            assert figure.find_elements(By.CSS_SELECTOR, "details tbody tr"), figure.text


def test_any_table_that_says_so_is_sorted_by_keyboard(page: webdriver.Chrome) -> None:
    script = """
        const buttons = [...document.querySelectorAll("#effects thead th button")];
        const at = buttons.findIndex((one) => one.textContent === "Ratio");
        const rows = [...document.querySelectorAll("#effects tbody tr")];
        return rows.map((row) => row.cells[at].dataset.value);
    """
    page.find_element(By.CSS_SELECTOR, "#every-test summary").send_keys(Keys.ENTER)
    button = page.find_element(By.XPATH, "//table[@id='effects']//th/button[text()='Ratio']")
    button.send_keys(Keys.ENTER)
    found = [float(value) for value in page.execute_script(script) if value]
    assert found == sorted(found)
    assert len(set(found)) > 1


def test_nothing_is_asked_of_any_network_and_nothing_is_complained_of(
    logs: dict[str, list[dict[str, str]]],
) -> None:
    messages = [json.loads(entry["message"])["message"] for entry in logs["performance"]]
    asked = [
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    ]
    assert asked, "the page itself is a request: a log without it would prove nothing"
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    complained = [one for one in logs["browser"] if one["level"] in ("SEVERE", "WARNING")]
    assert [entry["message"] for entry in complained] == []


def test_the_table_is_sorted_by_click_with_unknown_last_both_ways(page: webdriver.Chrome) -> None:
    heading(page, "Throughput (op/s)").find_element(By.TAG_NAME, "button").click()
    assert heading(page, "Throughput (op/s)").get_attribute("aria-sort") == "ascending"
    up = column(page, "Throughput (op/s)")
    assert up[-1] == ""
    known = [float(value) for value in up if value]
    assert known == sorted(known)
    heading(page, "Throughput (op/s)").find_element(By.TAG_NAME, "button").click()
    assert heading(page, "Throughput (op/s)").get_attribute("aria-sort") == "descending"
    assert column(page, "Throughput (op/s)") == [*(value for value in up[-2::-1]), ""]


def test_the_table_is_sorted_by_keyboard_and_one_heading_says_so(page: webdriver.Chrome) -> None:
    heading(page, "Layout").find_element(By.TAG_NAME, "button").send_keys(Keys.ENTER)
    assert column(page, "Layout") == sorted(column(page, "Layout"))
    sorts = [
        th.get_attribute("aria-sort") for th in page.find_elements(By.CSS_SELECTOR, "#results th")
    ]
    assert sorts.count("ascending") == 1
    assert sorts.count("none") == len(sorts) - 1


def test_the_data_of_a_chart_are_shown_when_asked_for(page: webdriver.Chrome) -> None:
    details = page.find_element(By.CSS_SELECTOR, "#throughput-by-workers figure > details")
    shown = details.find_element(By.TAG_NAME, "table")
    assert not shown.is_displayed()
    details.find_element(By.TAG_NAME, "summary").click()
    assert shown.is_displayed()
    assert len(shown.find_elements(By.CSS_SELECTOR, "tbody tr")) == 8


def test_texts_of_users_do_nothing(page: webdriver.Chrome) -> None:
    assert "owned" not in page.title
    assert page.find_elements(By.TAG_NAME, "img") == []
    assert HOSTILE in page.find_element(By.ID, "repeat").text


def test_the_page_does_not_scroll_sideways(page: webdriver.Chrome) -> None:
    for width in (1360, 800, 420):
        page.set_window_size(width, 1200)
        page.execute_script(
            "return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )
        wide = page.execute_script(
            "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        )
        assert wide[0] <= wide[1], f"{wide} at {width} px"


# How the report looks in a real browser: on a wide screen, a phone and paper, light and dark; what
# a keyboard and a screen reader find; and what its switches hide.

LAYOUT = (Path(__file__).parent.parent / "support" / "layout.js").read_text()
LEAST_CHART_PT = 100
"""What a chart is high on paper, at least."""
_PAGE = re.compile(r'<page width="([\d.]+)" height="([\d.]+)">(.*?)</page>', re.DOTALL)
_WORD = re.compile(
    r'<word xMin="([-\d.]+)" yMin="[-\d.]+" xMax="([-\d.]+)" yMax="([-\d.]+)">(.*?)</word>'
)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # What checks the colours of all words takes half a minute for a run of all steps.
    few = {"runtime": 3.0, "workers": (4, 16)}
    short = [workload.model_copy(update=few) for workload in WORKLOADS]
    spoilt = StepFaults(failed=(("swift", "small-read", 16),))
    run = fake_run(tmp_path_factory.mktemp("runs"), workloads=short, repeats=2, spoilt=spoilt)
    page = derive(run.folder, pictures=False).report
    assert page is not None
    return page


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


@pytest.fixture(scope="module")
def wide(browser: webdriver.Chrome, shown: Path) -> webdriver.Chrome:
    """A page that is opened once: a test of it leaves it as it was, and comes before those of
    other pages.
    """
    seen_at(browser, 1400)
    return opened(browser, shown)


def rows_of(browser: webdriver.Chrome, table: str) -> list[str]:
    """The layouts of the lines of a table that are not hidden."""
    script = f"""
        const lines = [...document.querySelectorAll("{table} tbody tr")];
        return lines.filter((one) => !one.hidden).map((one) => one.dataset.layout);
    """
    return list(browser.execute_script(script))


def test_on_paper_all_words_are_on_their_page_and_beside_each_other(
    wide: webdriver.Chrome, tmp_path: Path
) -> None:
    size = {"paperWidth": 8.27, "paperHeight": 11.69, "printBackground": True}
    printed = wide.execute_cdp_cmd("Page.printToPDF", {**size, "preferCSSPageSize": True})
    (tmp_path / "report.pdf").write_bytes(base64.b64decode(printed["data"]))
    subprocess.run(["pdftotext", "-bbox", tmp_path / "report.pdf"], check=True)
    pages = _PAGE.findall((tmp_path / "report.html").read_text())
    assert len(pages) > 5
    titles = wide.execute_script(
        "return [...document.querySelectorAll('section, details.fold')]"
        ".filter(s => s.querySelector('.plot'))"
        ".map(s => s.querySelector('h2').textContent.trim())"
    )
    assert len(titles) > 3
    for title in titles:
        below = [room for *_, text in pages if (room := _room_below(title, text)) is not None]
        assert below, title
        assert min(below) > LEAST_CHART_PT, f"{title} stands at the end of a page"
    for number, (across, high, text) in enumerate(pages, 1):
        assert sorted((float(across), float(high))) == pytest.approx([595.92, 841.92], abs=1)
        words = [(float(a), float(b), float(y), word) for a, b, y, word in _WORD.findall(text)]
        assert [word for a, b, _, word in words if a < 0 or b > float(across)] == [], number
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
    wide: webdriver.Chrome,
) -> None:
    plot = "#throughput-by-workers svg .mark-line path"
    lines = len(wide.find_elements(By.CSS_SELECTOR, plot))
    switch = wide.find_element(By.CSS_SELECTOR, "[data-switches] input[value=swift]")
    switch.send_keys(Keys.SPACE)
    assert set(rows_of(wide, "#results")) == set(rows_of(wide, "#glance")) == {"rgw-beast"}
    drawn(wide)
    assert len(wide.find_elements(By.CSS_SELECTOR, plot)) == lines / 2
    switch.send_keys(Keys.SPACE)
    drawn(wide)
    assert set(rows_of(wide, "#results")) == {"rgw-beast", "swift"}
    assert len(wide.find_elements(By.CSS_SELECTOR, plot)) == lines


def test_requests_that_are_switched_off_take_their_charts_along_and_come_back(
    wide: webdriver.Chrome,
) -> None:
    before = len(rows_of(wide, "#results"))
    switches = wide.find_elements(By.CSS_SELECTOR, "[data-switches] input")
    switches[-1].send_keys(Keys.SPACE)
    name = switches[-1].get_attribute("value")
    assert 0 < len(rows_of(wide, "#results")) < before
    titles = wide.find_elements(By.XPATH, f"//figure//h3[starts-with(text(), '{name}')]")
    assert titles
    assert not any(one.is_displayed() for one in titles)
    switches[-1].send_keys(Keys.SPACE)
    drawn(wide)
    assert len(rows_of(wide, "#results")) == before
    assert all(one.is_displayed() for one in titles)


def test_figures_and_findings_lead_to_their_lines(wide: webdriver.Chrome) -> None:
    links = wide.find_elements(By.CSS_SELECTOR, "#glance a, #findings a.to, .trust a")
    assert len(links) > 10
    for link in links:
        anchor = str(link.get_attribute("href")).rpartition("#")[2]
        assert wide.find_elements(By.ID, anchor), anchor


def test_the_reader_chooses_the_look(wide: webdriver.Chrome) -> None:
    paper = "return getComputedStyle(document.body).backgroundColor"
    button = wide.find_element(By.CSS_SELECTOR, "button.look")
    assert wide.execute_script(paper) == "rgb(255, 255, 255)"
    button.send_keys(Keys.ENTER)
    drawn(wide)
    assert wide.execute_script(paper) == "rgb(20, 22, 26)"
    assert button.text == "Light"
    button.send_keys(Keys.ENTER)
    drawn(wide)
    assert wide.execute_script(paper) == "rgb(255, 255, 255)"


@pytest.mark.parametrize(
    ("width", "look"), [pytest.param(1400, "light", marks=pytest.mark.test_all), (400, "dark")]
)
def test_no_text_is_cut_off_or_lies_on_another_and_everybody_can_read_it(
    browser: webdriver.Chrome, shown: Path, width: int, look: str
) -> None:
    seen_at(browser, width, look)
    opened(browser, shown)
    assert browser.execute_script("return document.documentElement.dataset.look") == look
    found = browser.execute_script(LAYOUT)
    assert found.pop("texts") > 500
    assert found == {"outside": [], "clipped": [], "over": []}
    axe = resources.files("axe_core_python").joinpath("axe.min.js").read_text()
    browser.execute_script(axe)
    # Words of charts are not asked about; what is excluded only, axe looks at all the same.
    checked: dict[str, Any] = browser.execute_async_script(
        """for (const one of document.querySelectorAll("svg.marks")) one.remove();
        axe.run({exclude: [[".cell"]]}, {resultTypes: ["violations"]})
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


def test_a_report_of_two_layouts_has_at_most_six_screens_and_opens_what_a_link_leads_to(
    browser: webdriver.Chrome, shown: Path
) -> None:
    seen_at(browser, 1400)
    opened(browser, shown, folded=True)
    assert browser.execute_script("return document.documentElement.scrollHeight") < 6 * 900
    link = browser.find_element(By.CSS_SELECTOR, "#findings a.to")
    line = str(link.get_attribute("href")).rpartition("#")[2]
    assert not browser.find_element(By.ID, line).is_displayed()
    link.send_keys(Keys.ENTER)
    assert browser.find_element(By.ID, line).is_displayed()
