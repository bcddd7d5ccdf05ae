"""Signed or authenticated requests for objects and containers of one endpoint, over either API."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import SplitResult, urlsplit

from weighbridge.common.endpoint import USUAL_PORTS, Endpoint
from weighbridge.common.exchange import Wire, answered, log_in
from weighbridge.drivers.engine._native import signed_headers
from weighbridge.drivers.survival.connection import Answer, Connection, Place

LARGEST_ANSWER_BYTES: Final = 2**20
"""Of what is no object and no listing."""


@dataclass(frozen=True)
class Access:
    """An endpoint after login: what its requests need."""

    api: str
    place: Place
    host: str
    """As the Host header says it."""
    base_path: str
    region: str
    keys: tuple[str, str, str] = field(repr=False)
    """S3: access key, secret key, session token. Swift: two empty texts, token."""
    secrets: tuple[str, ...] = field(repr=False)
    """What no text may repeat."""

    def lines(self, method: str, path: str, query: str) -> str:
        """The header lines that let a request in."""
        if self.api == "swift":
            return f"X-Auth-Token: {self.keys[2]}\r\n"
        return signed_headers(
            self.keys, self.region, self.host, method, path, query, int(time.time())
        )


def log_in_at(endpoint: Endpoint, timeout_s: float) -> Access:
    """Log in at a single endpoint. Raises WrongAnswer."""
    token = "" if endpoint.token is None else endpoint.token.get_secret_value()
    keys = (endpoint.user, endpoint.key.get_secret_value(), token)
    storage = urlsplit(endpoint.storage_url or endpoint.url)
    if endpoint.api == "swift":
        if endpoint.token is None:
            storage, token = _swift_token(endpoint, timeout_s)
        keys = ("", "", token)
    tls = storage.scheme == "https"
    with answered("auth"):  # whatever storage URL an auth service answers
        port = storage.port or USUAL_PORTS["https" if tls else "http"]
    context = ssl.create_default_context(cafile=endpoint.ca_file) if tls else None
    return Access(
        api=endpoint.api,
        place=Place(storage.hostname or "", port, context),
        host=storage.netloc,
        base_path=storage.path.rstrip("/"),
        region=endpoint.region,
        keys=keys,
        secrets=(*endpoint.secrets, token),
    )


def _swift_token(endpoint: Endpoint, timeout_s: float) -> tuple[SplitResult, str]:
    with ExitStack() as stack:

        def wire(place: SplitResult) -> Wire:
            made = Wire(place.scheme, place.netloc, endpoint.ca_file, timeout_s)
            stack.callback(made.close)
            with answered("connect"):
                made.connect()
            return made

        storage, token, _ = log_in(endpoint.model_dump(mode="json"), wire)
        return storage, token


class Requests:
    """Requests over one connection, for one thread; all raise NoAnswer without an answer."""

    def __init__(self, access: Access, timeout_s: float, give_up_s: Callable[[], float]) -> None:
        self.access = access
        self._connection = Connection(access.place, timeout_s, give_up_s)

    def ask(
        self,
        method: str,
        path: str,
        *,
        query: str = "",
        body: Iterable[bytes] = (),
        body_bytes: int = 0,
        more: str = "",
        most_bytes: int = LARGEST_ANSWER_BYTES,
    ) -> Answer:
        """The answer to a request for `/container/object`. `more`: further header lines."""
        access = self.access
        path = access.base_path + path
        target = f"{path}?{query}" if query else path
        head = (
            f"{method} {target} HTTP/1.1\r\nHost: {access.host}\r\n"
            f"{access.lines(method, path, query)}{more}"
        )
        return self._connection.ask(head, body, body_bytes=body_bytes, most_bytes=most_bytes)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def logged_in(endpoint: Endpoint, timeout_s: float) -> Iterator[Access]:
    """Each endpoint of several, after login. Raises WrongAnswer."""
    for one in endpoint.each():
        yield log_in_at(one, timeout_s)
