"""The page that shows what is sent is what the engine sends."""

from __future__ import annotations

from tests.drivers.sent_page import ABOUT, PAGE, page
from weighbridge.suites import OPERATIONS


def test_the_page_shows_every_operation_as_the_engine_sends_it() -> None:
    assert set(ABOUT) == set(OPERATIONS)
    again = "write it again: python -m tests.drivers.sent_page"
    assert page() == PAGE.read_text(encoding="utf-8"), again
