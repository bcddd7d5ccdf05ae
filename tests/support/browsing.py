"""A real browser without a network, and a page of ours in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.support.ui import WebDriverWait

from packaged import packaged

DEADLINE_S = 60


@contextmanager
def browsing(profile: Path) -> Iterator[webdriver.Chrome]:
    """Chromium that resolves no name but this machine's, with logs of its console and network."""
    chromium = packaged("chromium", "chromium")
    driver = packaged("chromedriver", "chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (
        "headless",
        "no-sandbox",  # tests run as root in a container
        "disable-gpu",
        "disable-quic",
        "no-first-run",
        "disable-background-networking",
        "disable-component-update",
        "disable-sync",
        "host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
        "window-size=1360,2400",
        f"user-data-dir={profile}",
    ):
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    found = webdriver.Chrome(
        options=options, service=webdriver.ChromeService(executable_path=driver)
    )
    found.set_script_timeout(4 * DEADLINE_S)
    try:
        yield found
    finally:
        found.quit()


def opened(browser: webdriver.Chrome, page: Path, *, folded: bool = False) -> webdriver.Chrome:
    """The browser once it has drawn all of a page; unless `folded` also what the page folds."""
    browser.get(page.as_uri())
    drawn(browser)
    if not folded:
        browser.execute_script(
            "const folds = [...document.querySelectorAll('details:not([open])')]"
            "  .filter((fold) => fold.matches('.fold') || fold.querySelector('.plot'));"
            "if (folds.some((fold) => fold.querySelector('.plot, .cell')))"
            "  document.documentElement.dataset.ready = 'no';"
            "for (const fold of folds) fold.open = true;"
        )
        drawn(browser)
    return browser


def drawn(browser: webdriver.Chrome) -> webdriver.Chrome:
    """The browser once all plots of its page are drawn."""
    WebDriverWait(browser, DEADLINE_S).until(
        lambda one: one.execute_script("return document.documentElement.dataset.ready") == "yes"
    )
    return browser
