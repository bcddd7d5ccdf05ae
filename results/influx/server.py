"""An InfluxDB or a compatible server: its address, its token, and single writes with clear results.

`POST /api/v2/write` by the official client, one write per call, without the client's own retries
and batches: their waits cannot be ended, their errors are only logged, and they do not repeat a
POST by default. The caller decides what is tried again: `Away` may pass, `WriteRefused` does not by
itself.

InfluxDB 2 and 3 accept this as it is; VictoriaMetrics ignores bucket and organization; InfluxDB 1.8
takes the token `USER:PASSWORD` and its database as bucket; older ones need a proxy that translates
the call (tests/system has one). Certificates are verified, by the system's authorities or those in
$SSL_CERT_FILE.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import parse_qsl, urlencode

from pydantic import SecretStr

from weighbridge.common.document import did_you_mean
from weighbridge.common.errors import TargetError, UsageError
from weighbridge.common.plain_url import parts_of
from weighbridge.common.record import Record

if TYPE_CHECKING:
    from types import TracebackType

    from influxdb_client.rest import ApiException

TOKEN: Final = ("WEIGHBRIDGE_INFLUX_TOKEN", "INFLUX_TOKEN")
FROM_FILE: Final = "WEIGHBRIDGE_INFLUX_TOKEN_FILE"
DEADLINE_S: Final = 5.0
"""How long a server may take to answer one write, by default."""
BATCH: Final = 5000
"""Lines of one write, as InfluxDB's documentation advises."""
_LATER: Final = frozenset({408, 425, 429})
_BATCH_AT_FAULT: Final = frozenset({400, 413, 422})
_LONGEST_MESSAGE: Final = 300


class Away(TargetError):
    """The server cannot be reached, does not answer in time, or cannot write now. It may pass.

    `after_s` is how long it asks to wait; None where it does not say.
    """

    def __init__(self, message: str, *, after_s: float | None = None) -> None:
        super().__init__(message)
        self.after_s = after_s


class WriteRefused(TargetError):
    """The server answered that it does not write; trying again does not help.

    `batch`: it refuses these lines, of which it may have written some; others may be accepted.
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
        """A server from `http[s]://HOST:PORT[/PATH][?bucket=B&org=O]`, with its token from the
        environment.

        Raises UsageError about an invalid URL or one with a secret, a missing token, and a token's
        file that others may read.
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
                hint = did_you_mean(name, ["bucket", "org"])
                raise UsageError(
                    f"--influx: the URL may name bucket and org, not {name!r}{hint}", advice=advice
                )
            if not value:
                raise UsageError(f"--influx: the URL names an empty {name}")
        plain = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        token = _token(os.environ if environment is None else environment)
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

    def connect(self, deadline_s: float = DEADLINE_S) -> InfluxConnection:
        """A connection for one thread at a time; nothing is sent yet."""
        return InfluxConnection(self, deadline_s)


class InfluxConnection:
    """Writes to one server.

    A write takes at most about twice the deadline, which applies to connecting and to each wait.
    """

    def __init__(self, server: InfluxServer, deadline_s: float) -> None:
        # Imported late: this takes 0.2 s, which would delay every verb.
        from influxdb_client.client.influxdb_client import InfluxDBClient  # noqa: PLC0415
        from influxdb_client.client.write_api import SYNCHRONOUS  # noqa: PLC0415

        self._server = server
        token = server.token.get_secret_value()  # no field is sent of an empty one
        timeout_ms = round(deadline_s * 1000)
        self._client = InfluxDBClient(
            server.url, token, org=server.org, timeout=timeout_ms, enable_gzip=True
        )
        self._writing = self._client.write_api(write_options=SYNCHRONOUS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._writing.close()  # type: ignore[no-untyped-call]
        self._client.close()  # type: ignore[no-untyped-call]

    def write(self, lines: Sequence[str]) -> None:
        """Write lines of the line protocol; returns when the server has acknowledged them.

        Raises Away or WriteRefused.
        """
        from influxdb_client.rest import ApiException  # noqa: PLC0415 - as above
        from urllib3.exceptions import HTTPError  # noqa: PLC0415

        try:
            # With every write, since the client assumes nanoseconds for ready-made lines.
            data = "\n".join(lines).encode()
            self._writing.write(self._server.bucket, self._server.org, data, write_precision="ms")  # type: ignore[arg-type]
        except ApiException as error:
            raise self._error_of(error) from None
        except (HTTPError, OSError, ValueError) as error:
            # urllib3's message has host and port; a ValueError is an answer that is not text.
            raise Away(f"{self._server}: {self._one_line(str(error))}") from None
        status = self._client.api_client.last_response.status
        if status != 204:
            # InfluxDB 1 answers 200 for "understood and not done"; any web page answers 200, too.
            message = f"{self._server}: answered {status}, but an accepted write is answered 204"
            raise WriteRefused(message, batch=False, advice="Is this the address of an InfluxDB?")

    def _error_of(self, error: ApiException) -> Away | WriteRefused:
        """The error for an answer with its status; a broken TLS handshake has none."""
        status = error.status or 0
        said = self._one_line(_server_message(error))
        if not status:
            # A certificate that is not trusted stays so; nothing has been sent.
            return WriteRefused(
                f"{self._server}: {self._one_line(error.reason or '')}",
                batch=False,
                advice=_CERTIFICATE,
            )
        message = f"{self._server}: answered {status}{f': {said}' if said else ''}"
        if status >= 500 or status in _LATER:
            return Away(message, after_s=_seconds(error))
        return WriteRefused(
            message, batch=status in _BATCH_AT_FAULT, advice=_ADVICE.get(status, "")
        )

    def _one_line(self, text: str) -> str:
        """A server's or library's text, in one short line, without the token if it was repeated."""
        secret = self._server.token.get_secret_value()
        shown = text.replace(secret, "***") if secret else text
        words = " ".join(shown.split())
        return words if len(words) <= _LONGEST_MESSAGE else f"{words[:_LONGEST_MESSAGE]} ..."


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
        with path.open(encoding="utf-8") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if mode & 0o077:
                raise UsageError(
                    f"{path}: others may read it (mode {mode:04o})", advice=f"chmod 600 {path}"
                )
            text = file.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: no token can be read: {error}") from error
    if not text or len(text.split()) > 1:
        raise UsageError(f"{path}: must contain only a token")
    return _printable(text, str(path))


def _printable(token: str, where: str) -> str:
    """A token that can be sent in an HTTP header. Raises UsageError, which does not repeat it."""
    if not token.isascii() or not (token.isprintable() or not token):
        raise UsageError(f"{where}: a token consists of printable ASCII characters")
    return token


def _server_message(error: ApiException) -> str:
    """The server's own message: `message` in InfluxDB 2, `error` in InfluxDB 1."""
    body = error.body
    if str(body).lstrip().startswith("<"):
        # A web page, for example of a proxy: its status is enough.
        return str(error.reason or "")
    try:
        found = json.loads(body) if body else None
    except ValueError:
        return str(body)
    if isinstance(found, dict):
        return str(found.get("message") or found.get("error") or body)
    return str(body or error.reason or "")


def _seconds(error: ApiException) -> float | None:
    """How long the server asks to wait.

    A date is not supported and is ignored.
    """
    try:
        return max(0.0, float(error.retry_after or ""))
    except ValueError:
        return None
