"""What the Swift capabilities ask with: requests with a token, one connection each."""

from __future__ import annotations

import functools
import json
import secrets
import time
from collections.abc import Mapping
from contextlib import closing
from typing import Any, Final
from urllib.parse import quote, urlsplit

from weighbridge.common.exchange import HttpAnswer, Wire, WrongAnswer, log_in
from weighbridge.gateways.capabilities.capability import Unknown
from weighbridge.gateways.capabilities.session import NAMES, NONE, StoreSession, accepted

LISTED_WITHIN_S: Final = 20.0
_PAUSE_S: Final = 0.2


class SwiftSession(StoreSession):
    """One endpoint with the Swift API. Its buckets are Swift's containers."""

    @functools.cached_property
    def access(self) -> tuple[str, str]:
        """Storage URL and token. Raises Unknown."""
        if self.endpoint.get("token"):
            return self.endpoint["url"].rstrip("/"), self.endpoint["token"]
        wires: list[Wire] = []

        def wire(place: Any, host: str = "") -> Wire:
            wires.append(self.wire(place.scheme, host + place.netloc))
            return wires[-1]

        try:
            storage, token, _ = log_in(self.endpoint, wire)
        except WrongAnswer as wrong:
            status = wrong.answer.status if wrong.answer else None
            raise Unknown(f"not asked: {wrong.operation}: {wrong.what}", status=status) from None
        finally:
            for one in wires:
                one.close()
        return storage.geturl().rstrip("/"), token

    @functools.cached_property
    def full_bucket(self) -> str:
        """As of all sessions, once its listing has all names, or lacks some for LISTED_WITHIN_S: a
        container may hear late of what was taken.
        """
        name = super().full_bucket
        deadline = time.monotonic() + LISTED_WITHIN_S
        count = ""
        while count != str(len(NAMES)) and time.monotonic() < deadline:
            time.sleep(_PAUSE_S)
            count = self.send("HEAD", "", bucket=name).headers.get("x-container-object-count", "")
        return name

    @functools.cached_property
    def signing_key(self) -> str:
        """A key that signs URLs of the shared container, and of the account where that is the
        session's own (RGW knows no container's keys). Raises Refused or Unknown.
        """
        key = secrets.token_hex(16)
        accepted(self.send("POST", "", headers={"X-Container-Meta-Temp-URL-Key": key}))
        if self.own:
            accepted(self.account("POST", headers={"X-Account-Meta-Temp-URL-Key": key}))
        return key

    def new_bucket(self, headers: Mapping[str, str] = NONE) -> str:
        """Make a container. Raises Refused or Unknown."""
        name = self.names.bucket()
        accepted(self.send("PUT", "", bucket=name, headers=headers))
        return name

    def path_of(self, key: str, bucket: str | None = None) -> str:
        """The path of an object (of the container, without a key) from the host on."""
        inside = f"/{quote(key, safe='~/')}" if key else ""
        return f"{urlsplit(self.access[0]).path}/{bucket or self.bucket}{inside}"

    def send(
        self,
        method: str,
        key: str,
        query: str = "",
        body: bytes = b"",
        headers: Mapping[str, str] = NONE,
        *,
        bucket: str | None = None,
    ) -> HttpAnswer:
        """One request with the token. Raises OSError or HTTPException without an answer."""
        path = self.path_of(key, bucket) + (f"?{query}" if query else "")
        return self.deliver(method, path, body, {"X-Auth-Token": self.access[1], **headers})

    def deliver(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] = NONE
    ) -> HttpAnswer:
        """One request with these headers and no token to the host of the storage URL."""
        place = urlsplit(self.access[0])
        with closing(self.wire(place.scheme, place.netloc)) as wire:
            return wire(method, path, body, headers)

    def account(
        self, method: str, query: str = "", body: bytes = b"", headers: Mapping[str, str] = NONE
    ) -> HttpAnswer:
        """One request with the token to the account itself."""
        path = urlsplit(self.access[0]).path + (f"?{query}" if query else "")
        return self.deliver(method, path, body, {"X-Auth-Token": self.access[1], **headers})


def entries(answer: HttpAnswer) -> list[dict[str, Any]]:
    """The entries of a JSON listing. Raises Unknown."""
    try:
        found = json.loads(answer.body or b"[]")
        if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
            raise ValueError("no list of objects")  # noqa: TRY301 - as what cannot be read at all
    except (ValueError, RecursionError) as error:
        raise Unknown(f"its listing cannot be read: {error}", status=answer.status) from None
    return found
