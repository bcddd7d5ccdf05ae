"""How long a worker keeps its connection."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from weighbridge.common.record import Record


class ReconnectEvery(Record):
    """A connection is closed after so many requests, and a new one made for the next."""

    reconnect_every: Annotated[int, Field(ge=2, le=1_000_000)]


Connections = Literal["keep-alive", "per-request"] | ReconnectEvery
"""`keep-alive`: a worker keeps its connection as long as the server does; `per-request`: a
connection for each request; `{reconnect_every: 100}`: one for every 100 requests.
"""


def connection_words(connections: Connections) -> str:
    """How long connections are kept, in words."""
    if isinstance(connections, ReconnectEvery):
        return f"a new one after every {connections.reconnect_every:,} requests of a worker"
    return "kept by each worker" if connections == "keep-alive" else "a new one for every request"
