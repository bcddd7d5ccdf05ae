"""A page of a run while it runs: progress, rates and events above the report as far as it is.

It is served on this machine alone, to whoever knows the token in its address. The report is derived
anew between steps, never while one is measured.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from pathlib import Path
from typing import Any, Final, Literal

from weighbridge.common.errors import WeighbridgeError
from weighbridge.common.record import Record
from weighbridge.conductor.step_runner import Display
from weighbridge.display import Steps, TimeLeft, step_name
from weighbridge.drivers.protocol import Progress
from weighbridge.results import derive
from weighbridge.results.run import StepKey, StepResult

LINES: Final = 100
"""How many of the last events the page shows."""
REPORT_EVERY_S: Final = 20.0
"""The report is derived anew after a step if this long has passed since it was last."""
LAST_LOOK_S: Final = 3.0
"""How long the end of a run waits for an open page to fetch the complete report."""
MAX_OPEN: Final = 32
"""Connections to the page at once; a browser opens six."""
SILENCE_S: Final = 10.0
"""How long a request may take to come, or an answer to go."""
_ADDRESS: Final = "127.0.0.1"
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; connect-src 'self'; "
    "frame-src 'self'; base-uri 'none'; form-action 'none'"
)
"""What the page around the report may do; the report has a policy of its own."""
_HTML: Final = "text/html; charset=utf-8"
_FILES: Final = {"": ("live.html", _HTML), "live.js": ("live.js", "text/javascript")}
"""Files of the page, by what is asked for, with their types."""
_STATES = Literal["running", "ended"]


class Line(Record):
    """An event of the run."""

    at: str
    text: str


class Now(Record):
    """What the page shows beside the report, twice a second."""

    state: _STATES
    doing: str
    step: int
    """From 1; 0 before the first."""
    steps: int
    left_s: float
    progress: Progress | None
    lines: tuple[Line, ...]
    report: int
    """How often the report has been derived: another number is another report."""


class LivePage:
    """Shows everything on `shown`, too, and answers requests with what it was told last."""

    def __init__(self, shown: Display, folder: Path, plan: Steps, estimate: TimeLeft) -> None:
        self._shown = shown
        self._folder = folder
        self._plan = plan
        self._estimate = estimate
        self._lock = threading.Lock()
        self._lines: deque[Line] = deque(maxlen=LINES)
        self._state: _STATES = "running"
        self._doing = "starting"
        self._step = 0
        self._progress: Progress | None = None
        self._report, self._derived_at_s = 0, -REPORT_EVERY_S
        self._html = b""
        self._fetched, self._asked_at_s = 0, 0.0

    def say(self, text: str) -> None:
        self._note(text)
        self._shown.say(text)

    def begins(self, key: StepKey, number: int) -> None:
        """From here on, progress is of this step."""
        with self._lock:
            self._step, self._progress = number, None
        self._note(step_name(key))
        self._shown.begins(key, number)

    def progress(self, progress: Progress) -> None:
        with self._lock:
            self._progress = progress
        self._shown.progress(progress)

    def ended(self, result: StepResult) -> None:
        """A step is in the run folder: nothing is measured now, so there is time for the report."""
        with self._lock:
            self._progress = None
        self._shown.ended(result)
        if time.monotonic() - self._derived_at_s >= REPORT_EVERY_S:
            self.derive()

    def derive(self) -> None:
        """Derive the report anew; if it cannot be derived, the page keeps the one it has."""
        try:
            report = derive(self._folder, pictures=False).report
            html = b"" if report is None else report.read_bytes()
        except (WeighbridgeError, OSError) as error:
            self._note(f"no report yet: {error}")
            return
        finally:
            self._derived_at_s = time.monotonic()
        with self._lock:
            self._html, self._report = html, self._report + 1

    def end(self, words: str) -> None:
        """Show the last report and the end; waits at most LAST_LOOK_S for an open page."""
        self.derive()
        with self._lock:
            self._state, self._doing = "ended", words
        until_s = time.monotonic() + LAST_LOOK_S
        while time.monotonic() < until_s:
            with self._lock:
                open_now = time.monotonic() - self._asked_at_s < LAST_LOOK_S
                if not open_now or self._fetched >= self._report:
                    return
            time.sleep(0.05)

    def now(self) -> Now:
        with self._lock:
            self._asked_at_s = time.monotonic()
            return Now(
                state=self._state,
                doing=self._doing,
                step=self._step,
                steps=self._plan.steps,
                left_s=self._estimate.left_s(),
                progress=self._progress,
                lines=tuple(self._lines),
                report=self._report,
            )

    def report(self) -> bytes:
        """The report as far as it is; empty before the first step."""
        with self._lock:
            self._fetched = self._report
            return self._html

    def _note(self, text: str) -> None:
        with self._lock:
            self._doing = text
            self._lines.append(Line(at=time.strftime("%H:%M:%S"), text=text))


class _Server(ThreadingHTTPServer):
    """A server of the page at a free port of the loopback address, which any local user reaches:
    of more than MAX_OPEN connections the oldest is closed, as a page's own take milliseconds.
    """

    daemon_threads = True
    request_queue_size = MAX_OPEN

    def __init__(self, page: LivePage, token: str) -> None:
        self.page = page
        self.token = token.encode()
        self._open: deque[socket.socket] = deque()
        super().__init__((_ADDRESS, 0), _Answering)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.append(request)
        if len(self._open) > MAX_OPEN:
            with suppress(OSError):  # it is just being closed
                self._open.popleft().shutdown(socket.SHUT_RDWR)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with suppress(ValueError):  # it was the oldest
            self._open.remove(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A page that has gone is no event of the run; anything else is one."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            self.page.say(f"the page could not be shown: {error!r}")


class _Answering(BaseHTTPRequestHandler):
    server: _Server
    timeout = SILENCE_S

    def do_GET(self) -> None:
        path = self._path()
        if path in _FILES:
            self._answer(*_file(path), policy=_POLICY)
        elif path == "now":
            self._answer("application/json", self.server.page.now().model_dump_json().encode())
        elif path == "report":
            self._answer(_HTML, self.server.page.report())
        else:
            self.send_error(404)

    def do_POST(self) -> None:
        if self._path() != "stop":
            self.send_error(404)
            return
        # First of all: the page may have gone, and cannot be answered.
        os.kill(os.getpid(), signal.SIGINT)
        self._answer("text/plain", b"stopping\n")

    def _path(self) -> str | None:
        """What is asked for below the token; None without it, or of another Host: another site's
        page may reach this port under a name of its own.
        """
        if self.headers.get("Host") != f"{_ADDRESS}:{self.server.server_port}":
            return None
        given, _, path = self.path.partition("?")[0].removeprefix("/").partition("/")
        return path if secrets.compare_digest(given.encode(), self.server.token) else None

    def _answer(self, kind: str, content: bytes, *, policy: str = "") -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Frame-Options", "SAMEORIGIN")
        self.send_header("X-Content-Type-Options", "nosniff")
        if policy:
            self.send_header("Content-Security-Policy", policy)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Requests are no events of the run."""


@contextmanager
def watching(
    shown: Display, folder: Path, plan: Steps, estimate: TimeLeft, *, wanted: bool
) -> Iterator[Display]:
    """The display with a page at an address that it says; without `wanted`, `shown` itself."""
    if not wanted:
        yield shown
        return
    token = secrets.token_urlsafe(16)
    page = LivePage(shown, folder, plan, estimate)
    with _Server(page, token) as server:
        serving = threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True)
        serving.start()
        words = "the run is complete"
        try:
            page.say(f"watch at http://{_ADDRESS}:{server.server_port}/{token}/")
            yield page
        except BaseException as error:
            words = f"the run has ended: {error}"
            raise
        finally:
            page.end(words)
            server.shutdown()
            serving.join()


@lru_cache(maxsize=len(_FILES))
def _file(path: str) -> tuple[str, bytes]:
    name, kind = _FILES[path]
    return kind, resources.files("weighbridge.results").joinpath("templates", name).read_bytes()
