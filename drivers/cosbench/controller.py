"""COSBench's controller over HTTP.

Every answer of its is 200 and plain text, refusals too: the body alone decides.
"""

from __future__ import annotations

import http.client
import re
import secrets
import ssl
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import urlencode, urlsplit

from weighbridge.common import http_body
from weighbridge.common.credential import redacted
from weighbridge.common.errors import DriverError
from weighbridge.drivers.cosbench.site import SHIPPED_PASSWORD

TIMEOUT_S: Final = 10.0
"""For a connection and for each answer: the controller keeps all it is asked about in memory."""

LARGEST_ANSWER_BYTES: Final = 4 * 1024 * 1024
"""More of an answer is not read; its longest is the index, a line for each workload that it has not
done with.
"""

FINAL: Final = frozenset({"FINISHED", "FAILED", "TERMINATED", "CANCELLED"})

_ACCEPTED: Final = re.compile(r"Accepted with ID: (w\d+)\s*")
_WORKLOAD: Final = re.compile(r"(w\d+)\t([^\t]+)\t([A-Z]+)(?:\t(\S+))?")
_MONTHS: Final = (
    "Jan",
    "Feb",
    "Mar",
    "Apr",
    "May",
    "Jun",
    "Jul",
    "Aug",
    "Sep",
    "Oct",
    "Nov",
    "Dec",
)


class Unanswered(DriverError):
    """The controller could not be reached, or what answered is none. It may pass."""


@dataclass(frozen=True)
class WorkloadState:
    """A workload as the controller tells it. `submitted` is in the controller's own time zone."""

    id: str
    submitted: datetime
    state: str
    stage: str | None = None
    """Such as s1-main, while one runs."""


@dataclass(frozen=True)
class Index:
    """The controller's drivers by name with their URLs, and workloads that wait or run."""

    drivers: dict[str, str]
    active: tuple[WorkloadState, ...]


class Controller:
    """A controller at a URL such as http://host:19088/controller.

    Methods raise DriverError; Unanswered is one.
    """

    def __init__(self, url: str, user: str, password: str, *, timeout_s: float = TIMEOUT_S) -> None:
        self.url = url.rstrip("/")
        parts = urlsplit(self.url)
        try:
            self._port = parts.port
        except ValueError:
            raise DriverError(f"{url}: the port is not one") from None
        self._host = parts.hostname or ""
        self._tls = parts.scheme == "https"
        self._path = parts.path
        # It reads them from the query alone, where the body is a form of several parts.
        self._user = {"username": user, "password": password}
        self._timeout_s = timeout_s

    def submit(self, script: str) -> str:
        """Hand in a workload; returns its id."""
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
        """Its drivers, and the workloads that it has not done with."""
        answer = self._ask("GET", "index")
        if not answer.startswith("Drivers:"):
            raise self._strange("index", answer)
        drivers: dict[str, str] = {}
        active: list[WorkloadState] = []
        for line in answer.splitlines():
            fields = line.split("\t")
            if _WORKLOAD.fullmatch(line) and len(fields) == 4:
                active.append(_seen(line))
            elif len(fields) == 2:
                drivers[fields[0]] = fields[1]
        return Index(drivers, tuple(active))

    def workload(self, number: str) -> WorkloadState | None:
        """One workload by its id, also when it has ended; None when the controller knows none of
        that id (any more).
        """
        return self._one("workload", self._ask("GET", "workload", {"id": number}))

    def cancel(self, number: str) -> WorkloadState | None:
        """Cancel a workload, which is no matter where it has ended already."""
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
            raise self._strange(action, answer)
        return _seen(line)

    def _ask(
        self,
        method: str,
        action: str,
        query: dict[str, str] | None = None,
        *,
        body: bytes = b"",
        kind: str = "",
    ) -> str:
        connection: http.client.HTTPConnection
        if self._tls:
            context = ssl.create_default_context()
            connection = http.client.HTTPSConnection(
                self._host, self._port, timeout=self._timeout_s, context=context
            )
        else:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=self._timeout_s)
        path = f"{self._path}/cli/{action}.action?{urlencode({**self._user, **(query or {})})}"
        try:
            connection.request(method, path, body or None, {"Content-Type": kind} if kind else {})
            answer = connection.getresponse()
            text = http_body.whole(answer, LARGEST_ANSWER_BYTES).decode(errors="replace")
        except (OSError, http.client.HTTPException) as error:
            # http.client's words about a URL repeat it, with the password that COSBench will have
            # in it.
            reason = self._shown(
                getattr(error, "strerror", None) or str(error) or type(error).__name__
            )
            raise Unanswered(
                f"{self.url}: COSBench's controller does not answer: {reason}",
                advice="See that it runs, and that it can be reached from the client host (in a "
                "lab that is a network of its own).",
            ) from None
        finally:
            connection.close()
        if answer.status != 200 or "<html" in text[:1000].lower():
            raise self._strange(action, text, answer.status)
        self._see_that_the_user_is_let_in(text)
        return text

    def _shown(self, text: str) -> str:
        """Words of others without the password; the one that COSBench ships with is a word of many
        texts, and open to all.
        """
        password = self._user["password"]
        return text if password == SHIPPED_PASSWORD else redacted(text, (password,))

    def _see_that_the_user_is_let_in(self, answer: str) -> None:
        user = self._user["username"]
        advice = "Set COSBENCH_USER and COSBENCH_PASSWORD to a user of its conf/cosbench-users.xml."
        if not answer.strip():
            raise DriverError(
                f"{self.url}: an empty answer, which is how COSBench refuses user {user!r}",
                advice=advice,
            )
        if answer.startswith(("Please input complete user info", "User info [")):
            raise DriverError(
                f"{self.url}: COSBench does not let user {user!r} in: {self._shown(_first(answer))}",
                advice=advice,
            )

    def _strange(self, action: str, answer: str, status: int = 200) -> Unanswered:
        return Unanswered(
            f"{self.url}: what answered {action} with HTTP {status} is not COSBench's controller: "
            f"{self._shown(_first(answer))}",
            advice="Give its URL as http://HOST:19088/controller; see that no proxy stands before "
            "it.",
        )


def _seen(line: str) -> WorkloadState:
    number, date, state, *stage = line.split("\t")
    return WorkloadState(
        number, java_date(date), state, stage[0] if stage and stage[0] != "None" else None
    )


def java_date(text: str) -> datetime:
    """A date as Java's Date.toString() writes it, `Sat Nov 21 00:21:13 UTC 2026`, without its zone.

    Raises Unanswered.
    """
    try:
        _, month, day, clock, *_, year = text.split()
        hour, minute, second = (int(part) for part in clock.split(":"))
        return datetime(int(year), _MONTHS.index(month) + 1, int(day), hour, minute, second)  # noqa: DTZ001 - as the controller's files
    except (ValueError, OverflowError):
        raise Unanswered(f"COSBench tells a date that is none: {text[:60]!r}") from None


def _first(answer: str) -> str:
    lines = [line.strip() for line in answer.splitlines() if line.strip()]
    return lines[0][:300] if lines else "nothing"
