"""The report in a real browser without a network: it draws, sorts, shows its data, and asks nobody
for anything.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from browsing import browsing, opened
from fake_run import WORKLOADS, StepFaults, fake_run
from weighbridge.results import derive
from weighbridge.results.record.manifest import Sheet

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


@pytest.fixture
def page(browser: webdriver.Chrome, report: Path) -> webdriver.Chrome:
    opened(browser, report)
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
    plots = page.find_elements(By.CSS_SELECTOR, ".plot:not(.drawn)")
    assert len(plots) == 6
    for plot in plots:
        assert plot.size["width"] > 400
        words = [
            text.get_attribute("textContent")
            for text in plot.find_elements(By.CSS_SELECTOR, "svg text")
        ]
        assert {"rgw-beast", "swift", "workers"} <= set(words)
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
            By.XPATH, "ancestor::section[@id='certainty']"
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
    browser: webdriver.Chrome, report: Path
) -> None:
    log(browser, "performance")
    log(browser, "browser")
    opened(browser, report)
    messages = [json.loads(entry["message"])["message"] for entry in log(browser, "performance")]
    asked = [
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    ]
    assert asked, "the page itself is a request: a log without it would prove nothing"
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    assert [
        entry["message"]
        for entry in log(browser, "browser")
        if entry["level"] in ("SEVERE", "WARNING")
    ] == []


def test_the_table_is_sorted_by_click_with_unknown_last_both_ways(page: webdriver.Chrome) -> None:
    heading(page, "Throughput").find_element(By.TAG_NAME, "button").click()
    assert heading(page, "Throughput").get_attribute("aria-sort") == "ascending"
    up = column(page, "Throughput")
    assert up[-1] == ""
    known = [float(value) for value in up if value]
    assert known == sorted(known)
    heading(page, "Throughput").find_element(By.TAG_NAME, "button").click()
    assert heading(page, "Throughput").get_attribute("aria-sort") == "descending"
    assert column(page, "Throughput") == [*(value for value in up[-2::-1]), ""]


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
    assert HOSTILE in page.find_element(By.CSS_SELECTOR, ".lead").text


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


def test_it_can_be_printed(page: webdriver.Chrome) -> None:
    printed = page.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"]
    assert printed.startswith("JVBERi0")
