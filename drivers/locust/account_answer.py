"""Answers to requests that are made outside of measured windows."""

from __future__ import annotations

import http.client
from dataclasses import dataclass, field

from weighbridge.common.credential import redacted
from weighbridge.common.errors import DriverError


class NotServing(DriverError):
    """A target did not answer in time, or its answer to a request to be let in is a 5xx."""


@dataclass(frozen=True)
class AccountAnswer:
    """An HTTP answer with its complete body."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """What the request carried, which an answer may repeat."""

    def __str__(self) -> str:
        text = redacted(self.body[:4096].decode(errors="replace"), self.secrets)
        return f"HTTP {self.status}: {text[:200].strip()}"
