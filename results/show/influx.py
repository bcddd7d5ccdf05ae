"""InfluxDB: the points of a run, the same live and afterwards, and a server that they are sent to.

    weighbridge_run      one per run, at its start: layouts and repeats
    weighbridge_second   one per second and operation, at its start: counts and latencies
    weighbridge_step     one per step and operation, at the end of its window: throughput,
                         percentiles, errors, valid, steady
    weighbridge_host     one per sample of a host: CPU and disk shares, NIC bytes, memory
    weighbridge_live     while a step runs: the rates that its driver reports, only for watching

docs/influxdb.md has their tags and fields. Times are wall clock times in milliseconds
(VictoriaMetrics stores no more): the start of the window as the driver reported it, and seconds
from there. They place points on a screen; nothing is computed from them. All but those of
`weighbridge_live` are the same whenever they are made, so a point that is sent again replaces the
first.

Unknown fields are omitted, never written as 0. A step has the same figures as in the report. A step
without a measurement has no time, and no point.

Lines go to `POST /api/v2/write` by the official client, in its batches, each by one exchange of
bounded time and size, which is tried again while the server is away. InfluxDB 2 and 3 accept this
as it is; VictoriaMetrics ignores bucket and organization; InfluxDB 1.8 takes the token
`USER:PASSWORD` and its database as bucket; older ones need a proxy that translates the call
(tests/system has one). Certificates are verified, by the system's authorities or those in
$SSL_CERT_FILE.
"""

from __future__ import annotations

import json
import logging
import os
import ssl
import stat
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC
from functools import cached_property
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from itertools import count, islice
from pathlib import Path
from typing import Final, Self
from urllib.parse import parse_qsl, urlencode, urlsplit

from pydantic import SecretStr

from weighbridge.common import safe_files
from weighbridge.common.bounded_http import exchanged, in_words, parts_of, trusting
from weighbridge.common.credential import redacted
from weighbridge.common.document import did_you_mean
from weighbridge.common.errors import InvalidMeasurement, TargetError, UsageError
from weighbridge.common.quantities import utc
from weighbridge.common.record import Record
from weighbridge.results.figures.metrics import METRICS, by_column
from weighbridge.results.figures.summary import Point, visit, workloads_of
from weighbridge.results.figures.use import StepUse, step_use
from weighbridge.results.run import (
    HostLimits,
    HostSecond,
    ResolvedPlan,
    RunStore,
    StepKey,
    StepResult,
    Tally,
)

# Points.


Tags = Mapping[str, str | None]


def point(
    name: str, tags: Tags, fields: Mapping[str, int | float | None], at_ms: int
) -> Iterator[str]:
    """A point in the line protocol, `name,tag=value field=1.5,count=3i 1415102400000`; none without
    a field that is known. Ints have a final `i`, floats not: a server keeps the type of a field
    that it saw first. Raises InvalidMeasurement for a text that servers read differently.
    """
    known = ",".join(
        f"{_key(field)}={value}{'i' * isinstance(value, int)}"
        for field, value in fields.items()
        if value is not None
    )
    # The protocol has no empty tags; servers sort tags by name anyway.
    place = "".join(f",{_key(tag)}={_key(value)}" for tag, value in sorted(tags.items()) if value)
    if known:
        yield f"{name}{place} {known} {at_ms}"


def _key(text: str) -> str:
    # A line break ends a point, and a backslash at the end would escape what follows: no form of
    # them is read alike by all servers.
    if not text or text.endswith("\\") or any(ord(one) < 0x20 or ord(one) == 0x7F for one in text):
        why = "it is empty, has a control character or ends in a backslash"
        raise InvalidMeasurement(f"{text!r} cannot be written in line protocol: {why}")
    return text.replace(",", "\\,").replace("=", "\\=").replace(" ", "\\ ")


class RunPoints:
    """The points of one run, as lines."""

    def __init__(self, store: RunStore) -> None:
        self._store = store

    def run(self) -> Iterator[str]:
        """Raises UsageError and InvalidMeasurement where plan or time cannot be read."""
        fields = {"layouts": len(self._plan.layouts), "repeats": self._plan.suite.repeats}
        at_ms = _ms_of(self._store.manifest.created_at)
        yield from point("weighbridge_run", self._tags, fields, at_ms)

    def step(self, step: StepResult) -> Iterator[str]:
        """A step's points, if measured. Raises InvalidMeasurement, UsageError about the plan."""
        measured = step.measurement
        if measured is None:
            return
        tags, began_ms = self._tags_of(step.key), _ms_of(measured.started_at)
        for one in measured.seconds:
            fields = {
                "ops": one.count,
                "bytes": one.bytes,
                "errors": one.errors,
                "mean_ms": one.sum_us / one.count / 1000 if one.count else None,
                "max_ms": one.max_us / 1000 if one.count else None,
            }
            of = {**tags, "operation": one.operation}
            yield from point("weighbridge_second", of, fields, began_ms + one.second * 1000)
        telemetry = self._store.telemetry(step.key, step.time)
        use = None if telemetry is None else step_use(telemetry, measured.window_s)
        workload = workloads_of(self._plan).get(step.key.workload)
        found = visit(step, use, workload=workload)
        ended_ms = began_ms + round(measured.window_s * 1000)
        for tally in measured.tallies:
            figures = _step(tally, found.points[tally.operation], use, measured.window_s)
            of = {**tags, "operation": tally.operation}
            yield from point("weighbridge_step", of, figures, ended_ms)
        if telemetry is not None:
            limits = {one.host: one for one in telemetry.head.hosts}
            for sample in telemetry.hosts:
                # Without a window, the seconds are not relative to its start.
                if sample.phase != "unplaced":
                    of = {**tags, "host": sample.host, "tier": sample.tier, "phase": sample.phase}
                    shares = _host(sample, limits.get(sample.host))
                    at_ms = began_ms + round(sample.at_s * 1000)
                    yield from point("weighbridge_host", of, shares, at_ms)

    def live(
        self, key: StepKey, phase: str, rates: tuple[float, float], errors: int, at_ms: int
    ) -> Iterator[str]:
        """What a driver reports of a running step: operations and bytes per second, and errors."""
        fields = {"ops_s": rates[0], "bytes_s": rates[1], "errors": errors}
        tags = {**self._tags_of(key), "phase": phase}
        yield from point("weighbridge_live", tags, fields, at_ms)

    @cached_property
    def _plan(self) -> ResolvedPlan:
        return self._store.plan()

    @property
    def _tags(self) -> dict[str, str | None]:
        return {"run": self._store.manifest.run_id, "suite": self._store.manifest.suite}

    def _tags_of(self, key: StepKey) -> dict[str, str | None]:
        rate = "" if key.rate_per_s is None else f" at {key.rate_per_s:g}/s"
        return {
            **self._tags,
            "layout": key.layout,
            "api": key.api,
            "driver": key.driver,
            "layer": key.layer,
            "workload": key.workload + rate,
            "workers": str(key.workers),
            "repeat": str(key.repeat + 1),
        }


def _step(
    tally: Tally, found: Point, use: StepUse | None, window_s: float
) -> dict[str, int | float | None]:
    bounds = {
        f"{one.stem}_at_least": int(found.figure(one.key).at_least)
        for one in METRICS.values()
        if one.percent is not None and found.value(one.key) is not None
    }
    return {
        **by_column(found, intervals=False),
        **bounds,
        "bandwidth_bytes_s": tally.bytes / window_s,
        "valid": int(found.valid),
        "steady": None if found.steady is None else int(found.steady),
        "others_share": None if use is None else use.others,
        "window_s": window_s,
    }


def _host(sample: HostSecond, limits: HostLimits | None) -> dict[str, int | float | None]:
    cpus, span_s, disks = None if limits is None else limits.cpus, sample.span_s, sample.disks
    # With short requests the kernel counts too many ticks as busy.
    busy = [min(one.busy_s, one.waited_s, span_s) / span_s for one in disks or ()]
    used = _rate(sample.cpu_s, span_s)
    return {
        "cpus_used": used,
        "cpu_share": None if used is None or cpus is None else used / cpus,
        "disk_busy_share": max(busy, default=None),
        "read_bytes_s": sum(one.read_bytes for one in disks) / span_s if disks else None,
        "written_bytes_s": sum(one.written_bytes for one in disks) / span_s if disks else None,
        "received_bytes_s": _rate(sample.received_bytes, span_s),
        "sent_bytes_s": _rate(sample.sent_bytes, span_s),
        "memory_bytes": sample.memory_bytes,
        "memory_held_bytes": sample.memory_held_bytes,
    }


def _rate(value: float | None, span_s: float) -> float | None:
    return None if value is None else value / span_s


def _ms_of(at: str) -> int:
    """Milliseconds since 1970 of a time in ISO 8601."""
    return round(utc(at).replace(tzinfo=UTC).timestamp() * 1000)


# The server.


TOKEN: Final = ("WEIGHBRIDGE_INFLUX_TOKEN", "INFLUX_TOKEN")
FROM_FILE: Final = "WEIGHBRIDGE_INFLUX_TOKEN_FILE"
DEADLINE_S: Final = 5.0
"""How long a server may take to answer one write, by default."""
BATCH: Final = 5000
"""Lines of one write, as InfluxDB's documentation advises."""
FLUSH_S: Final = 5.0
"""How long lines wait for others: on small machines each write has a cost."""
RETRY_S: Final = 2.0
"""The first wait before a retry; each later one is twice as long."""
RETRIES: Final = 5
LONGEST_WAIT_S: Final = 30.0
GIVEN_UP_S: Final = 120.0
"""No batch is tried again after this."""
_BATCH_AT_FAULT: Final = frozenset({400, 413, 422})
_LONGEST_MESSAGE: Final = 300
_LONGEST_ANSWER_BYTES: Final = 2**20
_LONGEST_TOKEN_BYTES: Final = 64 * 1024


class Away(TargetError):
    """The server cannot be reached, does not answer in time, or cannot write now. It may pass;
    `wait_s`: the time that the server asks for.
    """

    def __init__(self, message: str, *, wait_s: float = 0.0) -> None:
        super().__init__(message)
        self.wait_s = wait_s


class WriteRefused(TargetError):
    """The server does not write, and trying again does not help. `batch`: it refuses these lines,
    some of which it may have written.
    """

    def __init__(self, message: str, *, batch: bool, advice: str = "") -> None:
        super().__init__(message, advice=advice)
        self.batch = batch


class InfluxServer(Record):
    """Where points are sent. `url` is scheme, host, port and path only: it has no secrets."""

    url: str
    bucket: str = "weighbridge"
    org: str = "weighbridge"
    token: SecretStr = SecretStr("")
    """`USER:PASSWORD` for InfluxDB 1; empty for a server without authentication."""

    @classmethod
    def parse(cls, url: str, environment: Mapping[str, str] | None = None) -> Self:
        """A server from `http[s]://HOST:PORT[/PATH][?bucket=B&org=O]`; its token is in the
        environment. Raises UsageError about a bad URL, one with a secret, or a token that is
        missing or readable to others.
        """
        advice = "Set the token as $WEIGHBRIDGE_INFLUX_TOKEN: others can read a command line."
        try:
            parts = parts_of(url)
        except ValueError as error:
            raise UsageError(f"--influx: the URL {error}", advice=advice) from None
        if parts.fragment:
            raise UsageError(
                "--influx: the URL is not of the form http://HOST:PORT[/PATH][?bucket=B&org=O]",
                advice=advice,
            )
        options = parse_qsl(parts.query, keep_blank_values=True)
        for name, value in options:
            if name not in ("bucket", "org"):
                # What it names instead is not repeated: it may be a secret.
                hint = did_you_mean(name, ["bucket", "org"], known=False)
                raise UsageError(
                    f"--influx: the URL may name bucket and org, nothing else{hint}", advice=advice
                )
            if not value:
                raise UsageError(f"--influx: the URL names an empty {name}")
        plain = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        token = _token(os.environ if environment is None else environment)
        if parts.scheme == "https":
            trusting()
        return cls.model_validate({"url": plain, **dict(options), "token": SecretStr(token)})

    @property
    def option(self) -> str:
        """The server as `--influx` takes it, without secrets."""
        own = {"bucket": self.bucket, "org": self.org}
        options = {
            name: value
            for name, value in own.items()
            if value != InfluxServer.model_fields[name].default
        }
        return f"{self.url}?{urlencode(options)}" if options else self.url

    def __str__(self) -> str:
        return f"{self.url}, bucket {self.bucket}"


class InfluxConnection:
    """Writes lines to one server, by a thread of the client. Only `settle` and `close` wait for it.

    `given`, `sent` and `lost` are numbers of lines, without live rates; `error` is the first error
    by which lines were lost, `away` whether the server is away now. `tell` is called by another
    thread.
    """

    def __init__(
        self,
        server: InfluxServer,
        tell: Callable[[str], object] = lambda _: None,
        *,
        deadline_s: float = DEADLINE_S,
        retry_s: float = RETRY_S,
    ) -> None:
        # Imported late: this takes 0.2 s, which would delay every verb.
        from influxdb_client.client.influxdb_client import InfluxDBClient  # noqa: PLC0415
        from influxdb_client.client.write_api import WriteOptions  # noqa: PLC0415
        from reactivex.scheduler import EventLoopScheduler  # noqa: PLC0415

        self.given = self.sent = self.lost = 0
        self.error: Away | WriteRefused | None = None
        self.away = False
        self._server = server
        self._tell = tell
        self._change = threading.Condition()
        self._closed = threading.Event()
        # The client's own pool is joined at exit: a server whose answer never ends would keep this
        # process alive.
        self._thread = EventLoopScheduler(
            lambda target: threading.Thread(target=self._run, args=(target,), daemon=True)
        )
        self._options = WriteOptions(
            batch_size=BATCH, flush_interval=round(FLUSH_S * 1000), write_scheduler=self._thread
        )
        token = server.token.get_secret_value()  # no field is sent of an empty one
        self._client = InfluxDBClient(server.url, token, org=server.org, enable_gzip=True)
        exchange = _Exchange(server, deadline_s, retry_s, self._closed, self._retry)
        self._client.api_client.rest_client.pool_manager = exchange  # type: ignore[assignment]
        # Each failed batch is logged; `tell` says it once.
        for logger in self._client.conf.loggers.values():
            logger.setLevel(logging.CRITICAL)
        self._writing = self._client.write_api(
            write_options=self._options,
            success_callback=self._wrote,
            error_callback=lambda _, data, error: self._lose(data, error),
        )

    @property
    def ended(self) -> bool:
        """Whether the server takes no more: it has stayed away, or refuses any write."""
        error = self.error
        return error is not None and not (isinstance(error, WriteRefused) and error.batch)

    def write(self, lines: Iterable[str]) -> None:
        """Have lines of the line protocol written. Does not wait."""
        for line in lines:
            with self._change:
                self.given += _counts(line.encode())
            # With every write, since the client assumes nanoseconds for ready-made lines.
            self._writing.write(self._server.bucket, self._server.org, line, write_precision="ms")  # type: ignore[arg-type]

    def settle(self, within_s: float = 2 * GIVEN_UP_S) -> None:
        """Wait until all complete batches are written or lost."""
        with self._change:
            complete = self.given - self.given % BATCH
            self._change.wait_for(lambda: self.sent + self.lost >= complete, within_s)

    def close(self, within_s: float = 2 * GIVEN_UP_S) -> None:
        """Write what waits, for at most so long."""
        self._options.max_close_wait = round(within_s * 1000)
        self._writing.close()  # type: ignore[no-untyped-call]
        self._closed.set()
        self._thread.dispose()
        self._client.close()  # type: ignore[no-untyped-call]

    # ---- the client's thread

    def _run(self, target: Callable[[], object]) -> None:
        try:
            target()
        except Exception:
            # A client that is closed fails when its last batch ends.
            if not self._closed.is_set():
                raise

    def _say(self, text: str) -> None:
        if not self._closed.is_set():
            self._tell(text)

    def _wrote(self, _: object, data: bytes) -> None:
        if self.away:
            self._say(f"{self._server} answers again")
        with self._change:
            self.away = False
            self.sent += _counts(data)
            self._change.notify_all()

    def _lose(self, data: bytes, error: Exception) -> None:
        if not isinstance(error, Away | WriteRefused):
            error = Away(f"{self._server}: the client fails: {type(error).__name__}")
        if type(self.error) is not type(error):
            self._say(f"{error}\nthese points are not written")
        with self._change:
            self.lost += _counts(data)
            self.error = self.error or error
            self._change.notify_all()

    def _retry(self, error: Away) -> None:
        first, self.away = not self.away, True
        if first:
            self._say(f"{error.message}; it is tried again")


@dataclass(frozen=True)
class _Answer:
    """What the client reads of an answer."""

    status: int
    reason: str = ""
    data: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


class _Exchange:
    """How the client sends, in place of a pool of urllib3: that reads and unpacks answers without
    an end, follows redirects with all points, and waits for as long as a server asks.
    """

    def __init__(
        self,
        server: InfluxServer,
        deadline_s: float,
        retry_s: float,
        closed: threading.Event,
        retry: Callable[[Away], None],
    ) -> None:
        self._server = server
        self._deadline_s = deadline_s
        self._retry_s = retry_s
        self._closed = closed
        self._retry = retry
        self._context = trusting() if server.url.startswith("https:") else None
        token = server.token.get_secret_value()
        self._secrets = (token, token.partition(":")[2])

    def request(
        self, method: str, url: str, *, body: bytes, headers: Mapping[str, str], **_: object
    ) -> _Answer:
        """An accepted write, tried again while the server is away. Raises Away, WriteRefused."""
        until_s = time.monotonic() + GIVEN_UP_S
        for number in count():
            try:
                return self._write(method, url, body, headers)
            except Away as error:
                own_s = min(self._retry_s * 2**number, LONGEST_WAIT_S)
                wait_s = max(own_s, error.wait_s)
                if number == RETRIES or wait_s > min(LONGEST_WAIT_S, until_s - time.monotonic()):
                    raise
                if self._closed.is_set():
                    raise
                self._retry(error)
                self._closed.wait(wait_s)
        raise AssertionError  # the last try returns or raises

    def _write(self, method: str, url: str, body: bytes, headers: Mapping[str, str]) -> _Answer:
        parts = urlsplit(url)
        connection = (
            HTTPConnection(parts.netloc)
            if self._context is None
            else HTTPSConnection(parts.netloc, context=self._context)
        )
        path = f"{parts.path}?{parts.query}"
        try:
            answer, data = exchanged(
                connection, self._deadline_s, method, path, body, headers, _LONGEST_ANSWER_BYTES
            )
        except ssl.SSLCertVerificationError as error:
            # It stays so: no other try.
            message = f"{self._server}: its certificate is not accepted: {error.verify_message}"
            raise WriteRefused(message, batch=False, advice=_CERTIFICATE) from None
        except (OSError, HTTPException, ValueError) as error:
            raise Away(f"{self._server}: {in_words(error)}") from None
        finally:
            connection.close()
        status = answer.status
        if status == 204:
            return _Answer(status)
        # A server's text in one short line, without the token in whatever form it repeats that.
        said = redacted(_server_message(data) or answer.reason, self._secrets)
        said = " ".join(said.split())
        said = said if len(said) <= _LONGEST_MESSAGE else f"{said[:_LONGEST_MESSAGE]} ..."
        message = f"{self._server}: answered {status}{f': {said}' if said else ''}"
        if status >= 429:
            raise Away(message, wait_s=_seconds(answer.headers.get("Retry-After", "")))
        advice = _ADVICE.get(status, "")
        if status < 400:
            # InfluxDB 1 answers 200 for "understood and not done"; any web page answers 200, too.
            message += "; an accepted write is answered 204, and no redirect is followed"
            advice = "Is this the address of an InfluxDB?"
        raise WriteRefused(message, batch=status in _BATCH_AT_FAULT, advice=advice)


def _counts(data: bytes) -> int:
    """The lines without live rates, which are for watching only."""
    return sum(not line.startswith(b"weighbridge_live") for line in data.split(b"\n"))


_CERTIFICATE: Final = "Certificates are verified; name a site's own authority in $SSL_CERT_FILE."
_AUTHORIZATION: Final = (
    "The token is $WEIGHBRIDGE_INFLUX_TOKEN, for InfluxDB 1 USER:PASSWORD; it needs the right to "
    "write to this bucket."
)
_ADVICE: Final[Mapping[int, str]] = {
    401: _AUTHORIZATION,
    403: _AUTHORIZATION,
    404: "The bucket (for InfluxDB 1 the database) must exist; name another as URL?bucket=NAME.",
}


def _token(environment: Mapping[str, str]) -> str:
    for name in TOKEN:
        if name in environment:
            return _printable(environment[name].strip(), f"${name}")
    path = environment.get(FROM_FILE)
    if path is not None:
        return _token_of(Path(path))
    raise UsageError(
        f"--influx: no token: ${TOKEN[0]} is not set",
        advice=f"Set it, or ${FROM_FILE} to a file with mode 0600; set it to an empty text for a "
        "server without authentication.",
    )


def _token_of(path: Path) -> str:
    """The token in a file that only its owner may read. Raises UsageError."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & 0o077:
            raise UsageError(
                f"{path}: others may read it (mode {mode:04o})", advice=f"chmod 600 {path}"
            )
        data = safe_files.read_given(path, largest_bytes=_LONGEST_TOKEN_BYTES)
        text = data.decode().strip()
    except OSError as error:
        raise UsageError(f"{path}: no token can be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: no token can be read: it is no text") from error
    if not text or len(text.split()) > 1:
        raise UsageError(f"{path}: must contain only a token")
    return _printable(text, str(path))


def _printable(token: str, where: str) -> str:
    """A token that can be sent in an HTTP header. Raises UsageError, which does not repeat it."""
    if not token.isascii() or not (token.isprintable() or not token):
        raise UsageError(f"{where}: a token consists of printable ASCII characters")
    return token


def _server_message(body: bytes) -> str:
    """The server's own message: `message` in InfluxDB 2, `error` in InfluxDB 1; "" where the body
    is no text, or a web page, for example of a proxy.
    """
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return ""  # also what is packed
    if text.lstrip().startswith("<") or "\0" in text:
        return ""
    try:
        found = json.loads(text) if text else None
    except (ValueError, RecursionError):
        return text
    if isinstance(found, dict):
        return str(found.get("message") or found.get("error") or text)
    return text


def _seconds(retry_after: str) -> float:
    """How long the server asks to wait; 0 where it does not say, or as a date."""
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        return 0.0


# A run that has ended.


@dataclass(frozen=True)
class Sent:
    """The result of sending. `unplaced` steps have no measurement, so no time and no point."""

    points: int
    steps: int
    unplaced: int = 0

    @property
    def words(self) -> str:
        without = (
            f"; {self.unplaced} steps without a measurement have no point" if self.unplaced else ""
        )
        return f"{self.points} points of {self.steps} steps sent{without}"


def send_run(store: RunStore, server: InfluxServer, *, retry_s: float = RETRY_S) -> Sent:
    """Send every point of a run, including those that a live run could not send.

    Of a step that was measured again, the last result is sent. Raises TargetError when the server
    stays away, refuses to write, or refuses some of the lines (points that are sent again replace
    the first ones); InvalidMeasurement, UsageError or StoreError when the run cannot be read.
    """
    of, points = Counter[bool](), RunPoints(store)

    def lines() -> Iterator[str]:
        yield from points.run()
        for step in store.latest().values():
            of[step.measurement is not None] += 1
            yield from points.step(step)

    connection = InfluxConnection(server, retry_s=retry_s)
    try:
        made = lines()
        while not connection.ended and (batch := list(islice(made, BATCH))):
            connection.write(batch)
            connection.settle()
    finally:
        connection.close()
    error, sent = connection.error, f"{connection.sent} points were sent"
    if isinstance(error, Away):
        advice = "Nothing is lost: send the run again when the server answers."
        raise TargetError(f"{error.message}\n{sent} before that", advice=advice) from error
    if error is not None and connection.ended:
        raise error
    if rest := connection.given - connection.sent:
        why = "no answer in time" if error is None else error.message
        raise TargetError(f"{why}\n{sent}; of {rest} others the server refused some or all")
    return Sent(points=connection.sent, steps=of[True], unplaced=of[False])
