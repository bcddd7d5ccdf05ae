"""Requests to one bucket of a gateway, in either API, by the standard library and botocore's
signatures.

For the small programs that run on client hosts (`gateways.verify` and others): they start fast and
share no code with the drivers, which are checked by them. An endpoint is here what
`Endpoint.model_dump_json` gives.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urlsplit

from weighbridge.common import http_body

TIMEOUT_S = 60.0
LARGEST_ANSWER_BYTES = 64 * 1024 * 1024
"""More of an answer is not read: what is asked for are lists, and objects of a MiB."""


@dataclass(frozen=True)
class HttpAnswer:
    """An HTTP answer; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class WrongAnswer(Exception):
    """What an operation gave is not what its API promises. `answer` is None when there was none."""

    def __init__(self, operation: str, what: str, answer: HttpAnswer | None) -> None:
        super().__init__(what)
        self.operation = operation
        self.what = what
        self.answer = answer


Exchange = Callable[[str, str, bytes, Mapping[str, str]], HttpAnswer]
"""Method, path, body, extra headers -> answer. Raises OSError or HTTPException."""


class Wire:
    """One connection, kept alive.

    `ca_file`: the authority of an https peer; None: the machine's own.
    """

    def __init__(self, scheme: str, netloc: str, ca_file: str | None) -> None:
        self._connection = (
            http.client.HTTPSConnection(
                netloc, timeout=TIMEOUT_S, context=ssl.create_default_context(cafile=ca_file)
            )
            if scheme == "https"
            else http.client.HTTPConnection(netloc, timeout=TIMEOUT_S)
        )

    def connect(self) -> None:
        """Connect now, and not with the first request. Raises OSError."""
        self._connection.connect()

    def __call__(
        self, method: str, path: str, body: bytes, headers: Mapping[str, str]
    ) -> HttpAnswer:
        """Send one request and read its whole answer."""
        self._connection.request(method, path, body, dict(headers))
        response = self._connection.getresponse()
        found = {name.lower(): value for name, value in response.getheaders()}
        return HttpAnswer(response.status, found, http_body.whole(response, LARGEST_ANSWER_BYTES))

    def secured(self) -> ssl.SSLSocket | None:
        """The connection's TLS socket, where it has one."""
        return self._connection.sock if isinstance(self._connection.sock, ssl.SSLSocket) else None

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


@contextlib.contextmanager
def exchanging(endpoint: Mapping[str, Any], bucket: str) -> Iterator[Exchange]:
    """Requests on `bucket` of an endpoint with its credentials; paths are `/bucket...`.

    Raises WrongAnswer when auth gives no token, or a storage URL that https credentials are not
    meant for.
    """
    with contextlib.ExitStack() as stack:

        def wire(place: SplitResult, host: str = "") -> Wire:
            made = Wire(place.scheme, host + place.netloc, endpoint.get("ca_file"))
            stack.callback(made.close)
            with answered("connect"):
                made.connect()
            return made

        if endpoint["api"] == "swift":
            yield _swift(endpoint, wire)
        else:
            yield _s3(endpoint, wire, bucket)


def _s3(endpoint: Mapping[str, Any], wire: Callable[..., Wire], bucket: str) -> Exchange:
    from botocore.auth import S3SigV4Auth  # noqa: PLC0415 - a quarter of a second of imports that Swift alone does not need
    from botocore.awsrequest import AWSRequest  # noqa: PLC0415
    from botocore.credentials import Credentials  # noqa: PLC0415

    signer = S3SigV4Auth(
        Credentials(endpoint["user"], endpoint["key"], endpoint.get("token")),
        "s3",
        endpoint["region"],
    )
    place = urlsplit(endpoint["url"])
    before = f"{bucket}." if endpoint.get("addressing") == "virtual" else ""
    base = f"{place.scheme}://{before}{place.netloc}"
    send = wire(place, before)

    def exchange(method: str, path: str, body: bytes, headers: Mapping[str, str]) -> HttpAnswer:
        if before:
            path = path.removeprefix(f"/{bucket}")
            path = path if path.startswith("/") else f"/{path}"
        path = place.path.rstrip("/") + path
        request = AWSRequest(method, base + path, data=body, headers=dict(headers))
        # The digest of the body is part of the signature, so the gateway checks the body as well.
        request.context["payload_signing_enabled"] = True
        signer.add_auth(request)
        return send(method, path, body, dict(request.headers.items()))

    return exchange


def _swift(endpoint: Mapping[str, Any], wire: Callable[..., Wire]) -> Exchange:
    if endpoint.get("token"):
        storage, token = urlsplit(endpoint["url"]), endpoint["token"]
        send = wire(storage)
    else:
        storage, token, send = _log_in(endpoint, wire)
    base = storage.path.rstrip("/")

    def exchange(method: str, path: str, body: bytes, headers: Mapping[str, str]) -> HttpAnswer:
        return send(method, base + path, body, {**headers, "X-Auth-Token": token})

    return exchange


def _log_in(
    endpoint: Mapping[str, Any], wire: Callable[..., Wire]
) -> tuple[SplitResult, str, Wire]:
    """Storage URL, token and connection that the v1 auth URL leads to."""
    place = urlsplit(endpoint["url"])
    send = wire(place)
    path = place.path + (f"?{place.query}" if place.query else "")
    with answered("auth"):
        answer = send(
            "GET",
            path or "/",
            b"",
            {"X-Auth-User": endpoint["user"], "X-Auth-Key": endpoint["key"]},
        )
    expect("auth", (200, 204), answer)
    if "x-storage-url" not in answer.headers or "x-auth-token" not in answer.headers:
        raise WrongAnswer("auth", "no X-Storage-Url or no X-Auth-Token in the answer", answer)
    storage = urlsplit(endpoint.get("storage_url") or answer.headers["x-storage-url"])
    if place.scheme == "https" and storage.scheme != "https":
        what = (
            f"the storage URL is {storage.geturl()}, so that tokens and objects would go over "
            "the network in the clear"
        )
        raise WrongAnswer(
            "auth", f"{what}; set `storage_url` to the one that is reached over https", answer
        )
    same = (storage.scheme, storage.netloc) == (place.scheme, place.netloc)
    return storage, answer.headers["x-auth-token"], send if same else wire(storage)


@contextlib.contextmanager
def answered(operation: str) -> Iterator[None]:
    """Turn what keeps an answer away into a WrongAnswer that says so."""
    try:
        yield
    except (OSError, http.client.HTTPException) as error:
        raise WrongAnswer(operation, in_words(error), None) from error
    except ValueError:
        # http.client's own words repeat the field that cannot be sent, which may be a key or a
        # token.
        raise WrongAnswer(
            operation,
            "not asked: its URL or a field of the request holds what HTTP cannot carry",
            None,
        ) from None


def in_words(error: Exception) -> str:
    """Why there was no answer."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {error.verify_message}"
    if isinstance(error, socket.gaierror):
        return "no answer: its name has no address"
    return f"no answer: {error!r}"


def expect(operation: str, wanted: Sequence[int], answer: HttpAnswer) -> HttpAnswer:
    """The answer, when its status is one of those wanted. Raises WrongAnswer."""
    if answer.status not in wanted:
        raise WrongAnswer(operation, f"{' or '.join(map(str, wanted))} was expected", answer)
    return answer
