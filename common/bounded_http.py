"""HTTP with one deadline: Python's timeouts begin again with every byte that a server drips."""

from __future__ import annotations

import http.client
import io
import os
import re
import socket
import ssl
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from weighbridge.common import safe_files
from weighbridge.common.errors import UsageError
from weighbridge.common.tool_output import printable


def read_limited(answer: http.client.HTTPResponse, most_bytes: int) -> bytes:
    """A response's body. Raises HTTPException if it ends early or beyond `most_bytes`; OSError."""
    if answer.length is not None and answer.length > most_bytes:
        raise http.client.HTTPException(
            f"an answer of {answer.length} bytes: more than {most_bytes} are not read"
        )
    # A 204 has length 0, also where chunks follow.
    if answer.length is not None and not answer.chunked:
        return answer.read()  # given a size, it would not raise for a body that ends early
    body = answer.read(most_bytes + 1)
    if len(body) > most_bytes:
        raise http.client.HTTPException(
            f"an answer of more than {most_bytes} bytes: more are not read"
        )
    return body


_LEAST_S: Final = 0.001
"""A timeout of 0 would mean not to wait at all."""


class _UntilDeadline(io.RawIOBase):
    """What a socket receives before a moment of the monotonic clock."""

    def __init__(self, sock: socket.socket, deadline_s: float) -> None:
        self._sock, self._deadline_s = sock, deadline_s
        self._raw = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(_left_s(self._deadline_s))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


def exchanged(
    connection: http.client.HTTPConnection,
    within_s: float,
    method: str,
    path: str,
    body: bytes | None,
    headers: Mapping[str, str],
    most_bytes: int,
) -> tuple[http.client.HTTPResponse, bytes]:
    """The response to a request and its complete body, connecting first where that is needed.

    Raises TimeoutError `within_s` after the call, whatever has arrived by then; HTTPException, also
    for a longer body than `most_bytes`; OSError; ValueError for what HTTP cannot carry.
    """
    deadline_s = time.monotonic() + within_s

    class Response(http.client.HTTPResponse):
        def __init__(self, sock: socket.socket, *of: Any, **more: Any) -> None:
            super().__init__(sock, *of, **more)
            self.fp.close()
            self.fp = io.BufferedReader(_UntilDeadline(sock, deadline_s))

    connection.response_class = Response
    response: http.client.HTTPResponse | None = None
    try:
        # It connects by itself, after it has refused what HTTP cannot carry.
        if connection.sock is None:
            connection.timeout = _each_s(connection, within_s)
        else:
            connection.sock.settimeout(_left_s(deadline_s))
        # As bytes of UTF-8, which curl and python-swiftclient send: http.client would take Latin-1.
        fields = {name: value.encode() for name, value in headers.items()}
        connection.request(method, path, body, fields)
        try:
            with connection.getresponse() as response:
                return response, read_limited(response, most_bytes)
        except (ValueError, ArithmeticError):  # such as a chunk of -5 bytes
            raise http.client.BadStatusLine("") from None
    except TimeoutError:
        connected = connection.sock is not None or response is not None  # it may take the socket
        what = "complete answer" if connected else "connection"
        # What is still to come must not be taken for the next answer.
        connection.close()
        raise TimeoutError(f"no {what} within {within_s:.3g} s") from None


_NO_TLS: Final = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"})
_TLS_FAULTS: Final = {
    "UNSUPPORTED_PROTOCOL": "it speaks no TLS 1.2 or 1.3; allow one there",
    "TLSV1_ALERT_PROTOCOL_VERSION": "it speaks no TLS 1.2 or 1.3; allow one there",
    "TLSV1_UNRECOGNIZED_NAME": "it serves nothing by this name (TLS' SNI); use a name that it has",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "it wants a client certificate; use a port without one",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "it takes no cipher of ours (ECDHE with AES-GCM or ChaCha20), "
    "or wants a client certificate; allow such a cipher, or use a port that asks for none",
}
"""By OpenSSL's names."""
_TLS_ALERT: Final = "\x15\x03"
_NO_ROOT, _NOT_YET_VALID, _EXPIRED, _OTHER_PURPOSE, _OTHER_NAME, _OTHER_ADDRESS = (
    *(2, 9, 10),
    *(26, 62, 64),
)
"""OpenSSL's numbers of what is wrong with a certificate."""
_TRUST: Final = (
    "name a file with its CA, or with itself: $AWS_CA_BUNDLE for S3, $OS_CACERT for Swift, "
    "`ca_file` in a layout"
)


def in_words(error: Exception) -> str:
    """Why there is no complete answer, and what to do, without a word of the server's."""
    if isinstance(error, ssl.SSLCertVerificationError):
        do = {
            **dict.fromkeys((_NOT_YET_VALID, _EXPIRED), "renew it, or set this machine's clock"),
            **dict.fromkeys((_OTHER_NAME, _OTHER_ADDRESS), "use a name in its subjectAltName"),
            _OTHER_PURPOSE: "use one for servers (extendedKeyUsage serverAuth)",
            _NO_ROOT: "its CA is in the file, but not who signed that: add the root to the file",
        }
        return (
            f"its certificate is not accepted: {error.verify_message.rstrip('.')}; "
            f"{do.get(error.verify_code, _TRUST)}"
        )
    if isinstance(error, TimeoutError) and error.args and error.errno is None:  # this module's own
        return str(error)
    return f"no answer: {_reason(error)}"


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        if error.reason in _NO_TLS:
            return "this port speaks no TLS; use http://, or the port of https"
        reason = error.reason or "closed in the handshake"
        return _TLS_FAULTS.get(reason, f"TLS fails: {reason.replace('_', ' ').lower()}")
    if isinstance(error, socket.gaierror):
        return "its name does not resolve; check the name, and this machine's DNS"
    if isinstance(error, ConnectionRefusedError):
        return "connection refused: nothing listens there; check the port, and that it runs"
    if isinstance(error, http.client.BadStatusLine) and str(error).startswith(_TLS_ALERT):
        return "this port speaks TLS; use https://"
    if isinstance(error, ConnectionError):  # RemoteDisconnected as well
        return "it closed the connection; if this port speaks TLS, use https://"
    if isinstance(error, http.client.BadStatusLine):
        return "what it sends is not HTTP; check the port"
    if isinstance(error, http.client.IncompleteRead):
        return "what it sends ends early"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[0].lower() + error.strerror[1:]
    return printable(error) or type(error).__name__


_LARGEST_AUTHORITIES_BYTES: Final = 16 * 2**20


def trusting(ca_file: str | None = None) -> ssl.SSLContext:
    """A context that trusts the authorities in a file; without one those of this machine, or in
    $SSL_CERT_FILE. Raises UsageError about that file, for whose writer OpenSSL would wait if it is
    a pipe; OSError.
    """
    given = os.environ.get("SSL_CERT_FILE", "")
    if given and ca_file is None:
        try:
            safe_files.read_given(Path(given), largest_bytes=_LARGEST_AUTHORITIES_BYTES)
        except FileNotFoundError:
            pass  # OpenSSL ignores it: no authority is trusted
        except OSError as error:
            raise UsageError(f"$SSL_CERT_FILE: {given}: {error.strerror}") from None
    context = ssl.create_default_context(cafile=ca_file)
    # The engine takes names from subjectAltName only.
    context.hostname_checks_common_name = False
    return context


def connect(connection: http.client.HTTPConnection, within_s: float) -> None:
    """Connect now. Raises OSError, TimeoutError after that time."""
    try:
        connection.timeout = _each_s(connection, within_s)
        connection.connect()
    except TimeoutError:
        raise TimeoutError(f"no connection within {within_s:.3g} s") from None


def _each_s(connection: http.client.HTTPConnection, within_s: float) -> float:
    try:
        addresses = socket.getaddrinfo(connection.host, connection.port, type=socket.SOCK_STREAM)
    except UnicodeError:  # an empty label, or one of more than 63 letters
        raise socket.gaierror(socket.EAI_NONAME, "not a host name") from None
    return max(within_s, _LEAST_S) / len(addresses)


def _left_s(deadline_s: float) -> float:
    left_s = deadline_s - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    return left_s


# URLs in options may hold no secret: every report shows them. Error messages never repeat them,
# since a refused one may hold a secret. Python's own messages about URLs do.


_HOST: Final = re.compile(
    r"(?=.{1,253}$)([0-9a-f.]*:[0-9a-f:.]+|[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?)"
)
"""A name (RFC 1123 with DNS' lengths, and `_`), or an address without a zone."""


def parts_of(url: str) -> SplitResult:
    """The parts, the scheme in lower case, of an ASCII http(s) URL with a host and a valid port or
    none. Raises ValueError.
    """
    try:
        parts = urlsplit(url)
        is_web = parts.scheme in ("http", "https") and parts.port != 0
        usable = is_web and _HOST.fullmatch(parts.hostname or "")
    except ValueError:
        raise ValueError(
            "not of the form http://HOST[:PORT][/PATH]: its host or port is invalid"
        ) from None
    if "@" in parts.netloc:
        raise ValueError("contains a user or a password")
    if not usable or not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError("not of the form http://HOST[:PORT][/PATH]")
    return parts


def without_query(url: str) -> str:
    """A URL as of `parts_of`, without query or fragment. Raises ValueError."""
    parts = parts_of(url)
    if "?" in url or "#" in url:
        raise ValueError("has a query (?) or a fragment (#), which may contain a password")
    return parts.geturl()


def storage_url_of(url: str) -> str:
    """A storage URL that a server named, of Keystone or of auth v1. Raises ValueError."""
    return without_query(url).rstrip("/")
