"""Make docs/assets/report.png again: the first screen of a report, with a number at each part.

    .venv/bin/python scripts/report_picture.py runs/RUN/derived/report.html

Needs Chromium with its driver, as the system tests do. README and the first tutorial say what the
numbers stand for.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.common.by import By

PARTS = ("h1", ".cards", ".trust, header #doubts", ".remedy")
PICTURE = Path(__file__).parents[1] / "docs" / "assets" / "report.png"
FLAGS = ("headless=new", "no-sandbox", "disable-gpu", "hide-scrollbars", "window-size=1290,1400")
MARK = """
const mark = document.createElement("span");
mark.textContent = arguments[1];
mark.style = "position:absolute; left:-1.9em; top:.1em; width:1.6em; height:1.6em;"
  + "border-radius:50%; background:#0b5cad; color:#fff; text-align:center;"
  + "font:600 16px/1.6em sans-serif";
arguments[0].style.position = "relative";
arguments[0].style.overflow = "visible";
arguments[0].prepend(mark);
"""


def main() -> None:
    """Write the picture of the report that is named on the command line."""
    report = Path(sys.argv[1]).resolve()
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
    for flag in FLAGS:
        options.add_argument(f"--{flag}")
    with tempfile.TemporaryDirectory() as folder:
        options.add_argument(f"--user-data-dir={folder}")
        browser = webdriver.Chrome(options=options, service=service)
        try:
            browser.get(report.as_uri())
            for number, part in enumerate(PARTS, start=1):
                for one in browser.find_elements(By.CSS_SELECTOR, f"header {part}")[:1]:
                    browser.execute_script(MARK, one, str(number))
            browser.execute_script("document.querySelector('header nav').remove()")
            browser.find_element(By.TAG_NAME, "header").screenshot(str(PICTURE))
        finally:
            browser.quit()


if __name__ == "__main__":
    main()
