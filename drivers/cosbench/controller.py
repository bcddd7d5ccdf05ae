"""COSBench's controller over HTTP; only the body shows a refusal: its status is 200."""

from __future__ import annotations

import http.client
import re
import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import urlencode, urlsplit

from weighbridge.common import bounded_http
from weighbridge.common.credential import redacted
from weighbridge.common.errors import DriverError
from weighbridge.drivers.cosbench.site import SHIPPED_PASSWORD

TIMEOUT_S: Final = 10.0
"""For each complete answer: the controller has all in memory."""

LARGEST_ANSWER_BYTES: Final = 4 * 1024 * 1024
"""Longer answers are refused; the longest is the index, with a line for each active workload."""

FINAL: Final = frozenset({"FINISHED", "FAILED", "TERMINATED", "CANCELLED"})

_ACCEPTED: Final = re.compile(r"Accepted with ID: (w\d+)\s*")
_WORKLOAD: Final = re.compile(r"(w\d+)\t([^\t]+)\t([A-Z]+)(?:\t(\S+))?")


class Unanswered(DriverError):
    """The controller could not be reached, or something else answered. It may be temporary."""


@dataclass(frozen=True)
class WorkloadState:
    """A workload as the controller reports it. `submitted` is in the controller's time zone."""

    id: str
    submitted: datetime
    state: str
    stage: str | None = None
    """While one is running, such as s1-main."""


@dataclass(frozen=True)
class Index:
    """The controller's drivers as names with URLs, and queued and running workloads."""

    drivers: dict[str, str]
    active: tuple[WorkloadState, ...]


class Controller:
    """A controller such as http://host:19088/controller. Raises DriverError, or Unanswered."""

    def __init__(self, url: str, user: str, password: str) -> None:
        self.url = url.rstrip("/")
        parts = urlsplit(self.url)
        try:
            self._port = parts.port
        except ValueError:
            raise DriverError(f"{url}: the port is not valid") from None
        self._host = parts.hostname or ""
        self._tls = parts.scheme == "https"
        self._path = parts.path
        # With a multipart body the controller reads them from the query only.
        self._user = {"username": user, "password": password}

    def submit(self, script: str) -> str:
        boundary = secrets.token_hex(16)
        head = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="config"; '
            'filename="workload.xml"\r\n'
        )
        body = f"{head}Content-Type: text/xml\r\n\r\n{script}\r\n--{boundary}--\r\n"
        answer = self._ask(
            "POST", "submit", body=body.encode(), kind=f"multipart/form-data; boundary={boundary}"
        )
        accepted = _ACCEPTED.fullmatch(answer)
        if accepted is None:
            raise DriverError(
                f"{self.url}: COSBench refused the workload: {self._shown(_first(answer))}"
            )
        return accepted[1]

    def index(self) -> Index:
        """Its drivers, and its active workloads."""
        answer = self._ask("GET", "index")
        if not answer.startswith("Drivers:"):
            raise self._unexpected("index", answer)
        drivers: dict[str, str] = {}
        active: list[WorkloadState] = []
        for line in answer.splitlines():
            fields = line.split("\t")
            if _WORKLOAD.fullmatch(line) and len(fields) == 4:
                active.append(_parsed(line))
            elif len(fields) == 2:
                drivers[fields[0]] = fields[1]
        return Index(drivers, tuple(active))

    def workload(self, number: str) -> WorkloadState | None:
        """A workload by its id, active or ended; None when the controller does not know it."""
        return self._one("workload", self._ask("GET", "workload", {"id": number}))

    def cancel(self, number: str) -> WorkloadState | None:
        """Cancel a workload; no effect on one that has ended."""
        form = urlencode({"id": number}).encode()
        return self._one(
            "cancel",
            self._ask("POST", "cancel", body=form, kind="application/x-www-form-urlencoded"),
        )

    def _one(self, action: str, answer: str) -> WorkloadState | None:
        if answer.strip() == "Not Found":
            return None
        line = answer.strip("\r\n")
        if not _WORKLOAD.fullmatch(line):
            raise self._unexpected(action, answer)
        return _parsed(line)

    def _ask(
        self,
        method: str,
        action: str,
        query: dict[str, str] | None = None,
        *,
        body: bytes = b"",
        kind: str = "",
    ) -> str:
        connection: http.client.HTTPConnection = (
            http.client.HTTPSConnection(self._host, self._port)
            if self._tls
            else http.client.HTTPConnection(self._host, self._port)
        )
        path = f"{self._path}/cli/{action}.action?{urlencode({**self._user, **(query or {})})}"
        try:
            headers = {"Content-Type": kind} if kind else {}
            answer, data = bounded_http.exchanged(
                connection, TIMEOUT_S, method, path, body or None, headers, LARGEST_ANSWER_BYTES
            )
        except (OSError, http.client.HTTPException) as error:
            # http.client's messages about a URL repeat it, with the password in its query.
            reason = self._shown(
                getattr(error, "strerror", None) or str(error) or type(error).__name__
            )
            raise Unanswered(
                f"{self.url}: COSBench's controller does not answer: {reason}",
                advice="Check that it is running, and that the client host can reach it (in a lab, "
                "client hosts are on a network of their own).",
            ) from None
        finally:
            connection.close()
        text = data.decode(errors="replace")
        if answer.status != 200 or "<html" in text[:1000].lower():
            raise self._unexpected(action, text, answer.status)
        self._check_user(text)
        return text

    def _shown(self, text: str) -> str:
        """A text without the password; the one that COSBench ships with is public, and a word."""
        password = self._user["password"]
        return text if password == SHIPPED_PASSWORD else redacted(text, (password,))

    def _check_user(self, answer: str) -> None:
        user = self._user["username"]
        advice = "Set COSBENCH_USER and COSBENCH_PASSWORD to a user of its conf/cosbench-users.xml."
        if not answer.strip():
            raise DriverError(
                f"{self.url}: an empty answer: COSBench refuses user {user!r}",
                advice=advice,
            )
        if answer.startswith(("Please input complete user info", "User info [")):
            raise DriverError(
                f"{self.url}: COSBench refuses user {user!r}: {self._shown(_first(answer))}",
                advice=advice,
            )

    def _unexpected(self, action: str, answer: str, status: int = 200) -> Unanswered:
        return Unanswered(
            f"{self.url}: {action} was answered with HTTP {status}, not by COSBench's controller: "
            f"{self._shown(_first(answer))}",
            advice=(
                "Give its URL as http://HOST:19088/controller; check that there is no proxy in "
                "front of it."
            ),
        )


def _parsed(line: str) -> WorkloadState:
    number, date, state, *stage = line.split("\t")
    return WorkloadState(
        number, java_date(date), state, stage[0] if stage and stage[0] != "None" else None
    )


def java_date(text: str) -> datetime:
    """A date by Java, `Sat Nov 21 00:21:13 UTC 2026`, without its zone. Raises Unanswered."""
    try:
        _, month, day, clock, *_, year = text.split()
        return datetime.strptime(f"{month} {day} {clock} {year}", "%b %d %H:%M:%S %Y")  # noqa: DTZ007 - as in the controller's files
    except ValueError:
        raise Unanswered(f"COSBench sent an invalid date: {text[:60]!r}") from None


def _first(answer: str) -> str:
    lines = [line.strip() for line in answer.splitlines() if line.strip()]
    return lines[0][:300] if lines else "nothing"
