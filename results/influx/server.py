"""An InfluxDB, or what speaks its write API: where it is, what opens it, and one write at a time
that says how it went.

`POST /api/v2/write` by the official client, one write a call and without the client's own retries
and batches: those wait where nobody can end them, tell of errors in a log alone, and do not try a
POST again unless told so. Who writes decides what is tried again: `Away` may pass, `WriteRefused`
will not by itself.

InfluxDB 2 and 3 take it as it is; VictoriaMetrics too, without regard to bucket or organization;
InfluxDB 1.8 with the token `USER:PASSWORD` and its database as bucket; older ones behind a proxy
that has the two calls agree (tests/system shows one). Certificates are verified, by the authorities
of the system or those of $SSL_CERT_FILE.
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
"""What a server may take to answer one write, unless told otherwise."""
BATCH: Final = 5000
"""Lines of one write, as InfluxDB's own documentation advises."""
_LATER: Final = frozenset({408, 425, 429})
_BATCH_AT_FAULT: Final = frozenset({400, 413, 422})
_TOLD: Final = 300


class Away(TargetError):
    """The server cannot be reached, does not answer in time, or says that it cannot write now. It
    may pass.

    `after_s` is how long it asks to be left alone; None where it does not say.
    """

    def __init__(self, message: str, *, after_s: float | None = None) -> None:
        super().__init__(message)
        self.after_s = after_s


class WriteRefused(TargetError):
    """The server has answered, and will not write: it does not pass by itself.

    `batch`: it is these very lines that it will not have, of which it may have written some; others
    may be taken.
    """

    def __init__(self, message: str, *, batch: bool, advice: str = "") -> None:
        super().__init__(message, advice=advice)
        self.batch = batch


class InfluxServer(Record):
    """Where points go. `url` is scheme, host, port and path alone: nothing that opens anything."""

    url: str
    bucket: str = "weighbridge"
    org: str = "weighbridge"
    token: SecretStr = SecretStr("")
    """`USER:PASSWORD` for InfluxDB 1; empty where the server asks for none."""

    @classmethod
    def parse(cls, url: str, environment: Mapping[str, str] | None = None) -> Self:
        """A server by `http[s]://HOST:PORT[/PATH][?bucket=B&org=O]`, with its token from the
        environment or a file named there.

        Raises UsageError about a URL that is none or has a secret in it, about a token that is not
        given, and about a file of one that others may read.
        """
        advice = (
            "A token is given as $WEIGHBRIDGE_INFLUX_TOKEN: a command line can be read by "
            "everybody."
        )
        try:
            parts = parts_of(url)
        except ValueError as error:
            raise UsageError(f"--influx: the URL {error}", advice=advice) from None
        if parts.fragment:
            raise UsageError(
                "--influx: the URL is not of the form http://HOST:PORT[/PATH][?bucket=B&org=O]",
                advice=advice,
            )
        asked = parse_qsl(parts.query, keep_blank_values=True)
        for name, value in asked:
            if name not in ("bucket", "org"):
                hint = did_you_mean(name, ["bucket", "org"])
                raise UsageError(
                    f"--influx: the URL may name bucket and org, not {name!r}{hint}", advice=advice
                )
            if not value:
                raise UsageError(f"--influx: the URL names an empty {name}")
        plain = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        token = _token(os.environ if environment is None else environment)
        return cls.model_validate({"url": plain, **dict(asked), "token": SecretStr(token)})

    @property
    def option(self) -> str:
        """The server as `--influx` takes it; it holds nothing that opens anything."""
        own = {"bucket": self.bucket, "org": self.org}
        asked = {
            name: value
            for name, value in own.items()
            if value != InfluxServer.model_fields[name].default
        }
        return f"{self.url}?{urlencode(asked)}" if asked else self.url

    def __str__(self) -> str:
        return f"{self.url}, bucket {self.bucket}"

    def connect(self, deadline_s: float = DEADLINE_S) -> InfluxConnection:
        """A connection, that is used by one thread at a time; nothing is sent yet."""
        return InfluxConnection(self, deadline_s)


class InfluxConnection:
    """Writes to one server.

    A write is over within about twice the deadline, which counts for connecting and for each wait.
    """

    def __init__(self, server: InfluxServer, deadline_s: float) -> None:
        # Imported here: it takes a fifth of a second, which every verb would wait for.
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
        """Let go of the connection."""
        self._writing.close()  # type: ignore[no-untyped-call]
        self._client.close()  # type: ignore[no-untyped-call]

    def write(self, lines: Sequence[str]) -> None:
        """Write lines of the line protocol; when this returns, the server has said that it has
        them. Raises Away or Refused.
        """
        from influxdb_client.rest import ApiException  # noqa: PLC0415 - as above
        from urllib3.exceptions import HTTPError  # noqa: PLC0415

        try:
            # The precision goes with every write: of lines that are ready the client knows none,
            # and sends them as nanoseconds.
            data = "\n".join(lines).encode()
            self._writing.write(self._server.bucket, self._server.org, data, write_precision="ms")  # type: ignore[arg-type]
        except ApiException as error:
            raise self._answered(error) from None
        except (HTTPError, OSError, ValueError) as error:
            # What urllib3 says has the host and the port in it; a ValueError is an answer that is
            # no text.
            raise Away(f"{self._server}: {self._plain(str(error))}") from None
        status = self._client.api_client.last_response.status
        if status != 204:
            # InfluxDB 1 has 200 for "understood and not done", and of a web page 200 says nothing
            # at all.
            told = f"{self._server}: answered {status}, where a write is answered 204"
            raise WriteRefused(told, batch=False, advice="Is this the address of an InfluxDB?")

    def _answered(self, error: ApiException) -> Away | WriteRefused:
        """The error of an answer with its status; of a broken TLS handshake with none."""
        status = error.status or 0
        said = self._plain(_said(error))
        if not status:
            # A certificate that is not trusted stays so; nothing has been sent.
            return WriteRefused(
                f"{self._server}: {self._plain(error.reason or '')}",
                batch=False,
                advice=_CERTIFICATE,
            )
        told = f"{self._server}: answered {status}{f': {said}' if said else ''}"
        if status >= 500 or status in _LATER:
            return Away(told, after_s=_seconds(error))
        return WriteRefused(told, batch=status in _BATCH_AT_FAULT, advice=_ADVICE.get(status, ""))

    def _plain(self, text: str) -> str:
        """A text of a server or a library, in one short line and without the token, should it have
        been repeated.
        """
        secret = self._server.token.get_secret_value()
        shown = text.replace(secret, "***") if secret else text
        words = " ".join(shown.split())
        return words if len(words) <= _TOLD else f"{words[:_TOLD]} ..."


_CERTIFICATE: Final = (
    "Certificates are verified; name the authority of a site's own by $SSL_CERT_FILE."
)
_OPENS: Final = (
    "The token is $WEIGHBRIDGE_INFLUX_TOKEN, of InfluxDB 1 USER:PASSWORD; it needs "
    "the right to write this bucket."
)
_ADVICE: Final[Mapping[int, str]] = {
    401: _OPENS,
    403: _OPENS,
    404: "The bucket (of InfluxDB 1 the database) has to be there; name another as URL?bucket=NAME.",
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
        advice=f"Set it, or ${FROM_FILE} to a file with mode 0600; set it to nothing for a server "
        "that asks for none.",
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
        raise UsageError(f"{path}: holds no token alone")
    return _printable(text, str(path))


def _printable(token: str, where: str) -> str:
    """A token that can stand in a field of HTTP. Raises UsageError, which does not repeat it."""
    if not token.isascii() or not (token.isprintable() or not token):
        raise UsageError(f"{where}: a token is of ASCII characters that can be printed")
    return token


def _said(error: ApiException) -> str:
    """What the server says of itself: InfluxDB 2 has it as `message`, InfluxDB 1 as `error`."""
    body = error.body
    if str(body).lstrip().startswith("<"):
        # A page, of a proxy for one: made for eyes, and no more than its status.
        return str(error.reason or "")
    try:
        found = json.loads(body) if body else None
    except ValueError:
        return str(body)
    if isinstance(found, dict):
        return str(found.get("message") or found.get("error") or body)
    return str(body or error.reason or "")


def _seconds(error: ApiException) -> float | None:
    """How long the server asks to be left alone.

    A date is not understood, and is as if it had not said.
    """
    try:
        return max(0.0, float(error.retry_after or ""))
    except ValueError:
        return None
