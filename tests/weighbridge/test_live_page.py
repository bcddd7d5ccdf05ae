"""The page of a run that runs, fetched as a browser would."""

from __future__ import annotations

import contextlib
import fcntl
import json
import socket
import struct
import termios
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from made_up import fake_measurement
from stub_run import Run, Seen
from tests.weighbridge.sent_runs import until
from weighbridge import live_page
from weighbridge.conductor.interruption import Interrupted, interruptible
from weighbridge.conductor.time_estimate import TimeEstimate
from weighbridge.drivers.protocol import Progress
from weighbridge.live_page import watching
from weighbridge.results.run.step import StepKey, StepResult

KEY = StepKey(layout="rgw-a", api="swift", workload="small", workers=4, repeat=0)
GOOD = StepResult(key=KEY, measurement=fake_measurement(workload="small"), valid=True, order=0)
LOAD = Progress(phase="measure", done=1, total=5, operations_per_s=100, bytes_per_s=1e8, errors=2)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_page, "LAST_LOOK_S", 0.0)


def fetch(url: str, host: str | None = None, data: bytes | None = None) -> tuple[int, str]:
    request = urllib.request.Request(url, data=data, headers={"Host": host} if host else {})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@contextlib.contextmanager
def page_of(run: Run, folder: Path | None = None) -> Iterator[tuple[Any, Seen, str]]:
    """Of a run that has begun: its display, what is said of it, and the page's address."""
    plan, seen = run.plan(), Seen()
    if folder is None:
        store = run.store()
        store.append(GOOD)
        folder = store.folder
    with watching(seen, folder, plan, TimeEstimate.of(plan), wanted=True) as display:
        (line,) = (one for one in seen.said if one.startswith("watch at "))
        yield display, seen, line.removeprefix("watch at ")


def test_the_page_shows_what_is_measured_and_the_report_as_far_as_it_is(run: Run) -> None:
    with page_of(run) as (display, seen, at):
        assert fetch(f"{at}report") == (200, "")
        display.begins(KEY, 1)
        display.progress(LOAD)
        now = json.loads(fetch(f"{at}now")[1])
        assert (now["state"], now["doing"]) == ("running", "rgw-a swift small x4")
        assert (now["step"], now["steps"], now["report"]) == (1, 6, 0)
        assert (now["progress"]["operations_per_s"], now["progress"]["errors"]) == (100, 2)
        assert now["left_s"] > 0
        display.ended(GOOD)
        now = json.loads(fetch(f"{at}now")[1])
        assert (now["progress"], now["report"]) == (None, 1)
        assert "<!doctype html>" in fetch(f"{at}report")[1]
        assert "live.js" in fetch(at)[1]
        assert "fetch" in fetch(f"{at}live.js")[1]
    others = [one for one in seen.said if not one.startswith("watch")]
    assert others == ["begins 1", "measure", "ended"]
    with pytest.raises(urllib.error.URLError):
        fetch(at)


def test_only_who_knows_the_token_and_the_address_gets_an_answer(run: Run) -> None:
    with page_of(run) as (_, _, at):
        base = at.rstrip("/").rpartition("/")[0]
        assert fetch(f"{at}now")[0] == 200
        wrong = (f"{base}/", f"{base}/now", f"{base}/{'x' * 22}/now", f"{at}/now", f"{at}../now")
        assert {fetch(one)[0] for one in wrong} == {404}
        assert fetch(f"{at}now", host="rebound.example")[0] == 404
        assert fetch(f"{base}/{'x' * 22}/stop", data=b"")[0] == 404
        assert fetch(f"{at}stop")[0] == 404


def test_its_button_stops_the_run_as_an_interrupt_does(run: Run) -> None:
    def pressed() -> None:
        with interruptible(), page_of(run) as (_, _, at):
            pressing = threading.Thread(target=fetch, args=(f"{at}stop", None, b""))
            pressing.start()
            try:
                threading.Event().wait(60)  # the signal ends this
            finally:
                pressing.join()

    with pytest.raises(Interrupted) as stopped:
        pressed()
    assert stopped.value.signal.name == "SIGINT"


def test_its_button_stops_the_run_also_if_the_page_goes_away_at_once(run: Run) -> None:
    def pressed() -> None:
        with interruptible(), page_of(run) as (_, _, address):
            at = urlsplit(address)
            with socket.create_connection((at.hostname, at.port)) as page:
                page.sendall(f"POST {at.path}stop HTTP/1.1\r\nHost: {at.netloc}\r\n\r\n".encode())
                # It is reset, not closed, when what was answered is not read.
                page.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                taken(page)
            threading.Event().wait(60)

    for _ in range(5):
        with pytest.raises(Interrupted):
            pressed()


def taken(connection: socket.socket) -> None:
    """Wait until the kernel has given the other side all that was sent."""
    while fcntl.ioctl(connection, termios.TIOCOUTQ, b"1234") != bytes(4):
        pass


def test_pages_that_go_away_are_no_events_and_leave_nothing_on_the_terminal(
    run: Run, capfd: pytest.CaptureFixture[str]
) -> None:
    with page_of(run) as (_, seen, address):
        at = urlsplit(address)
        host = f"Host: {at.netloc}\r\n\r\n"
        own, odd = f"GET {at.path} HTTP/1.1\r\n", "GET //[ HTTP/1.1\r\n"
        for text in (own, own + host, odd, odd + host, "\x16\x03\x01", ""):
            for _ in range(5):
                with socket.create_connection((at.hostname, at.port)) as page:
                    page.sendall(text.encode("latin-1"))
                    page.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        assert fetch(f"{address}now")[0] == 200
        until(lambda: not handlers())
    assert len(seen.said) == 1
    assert capfd.readouterr() == ("", "")


def handlers() -> list[str]:
    return [one.name for one in threading.enumerate() if "process_request_thread" in one.name]


def test_connections_of_others_take_few_threads_and_keep_nobody_from_the_page(run: Run) -> None:
    with page_of(run) as (_, _, address), contextlib.ExitStack() as others:
        at = urlsplit(address)
        for _ in range(4 * live_page.MAX_OPEN):
            others.enter_context(socket.create_connection((at.hostname, at.port)))
        assert fetch(f"{address}now")[0] == 200
        until(lambda: len(handlers()) <= live_page.MAX_OPEN)


def test_a_run_without_a_report_yet_says_why_and_goes_on(run: Run, tmp_path: Path) -> None:
    with page_of(run, tmp_path / "no-run") as (display, _, at):
        display.ended(GOOD)
        now = json.loads(fetch(f"{at}now")[1])
        assert now["doing"].startswith("no report yet: ")
        assert now["report"] == 0


def test_nothing_is_served_unless_it_is_wanted(run: Run, tmp_path: Path) -> None:
    seen = Seen()
    with watching(seen, tmp_path, run.plan(), TimeEstimate.of(run.plan()), wanted=False) as display:
        assert display is seen
