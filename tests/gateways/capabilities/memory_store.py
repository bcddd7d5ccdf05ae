"""Both stores in memory behind one server, and who asks them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import SecretStr

from http_stub import Request, Response, Server
from tests.gateways.capabilities import memory_s3, memory_swift
from weighbridge.common.endpoint import Endpoint
from weighbridge.gateways.capabilities.asking import CAPABILITIES, Asker, AskingOrder
from weighbridge.gateways.capabilities.capability import Answer

PREFIX = "wb-0123abcd"


class MemoryStore:
    """What is left in it shows in `s3.buckets` and `swift.buckets`."""

    def __init__(self) -> None:
        self.s3, self.swift = memory_s3.MemoryS3(), memory_swift.MemorySwift()
        self.server = Server(self.respond)

    def respond(self, request: Request) -> Response:
        swift = request.path.startswith(("/auth/", "/v1/", "/info"))
        return self.swift.respond(request) if swift else self.s3.respond(request)

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        url = self.server.url
        s3_key, swift_key = SecretStr(memory_s3.KEY), SecretStr(memory_swift.KEY)
        return (
            Endpoint(api="s3", url=url, user=memory_s3.USER, key=s3_key),
            Endpoint(api="swift", url=f"{url}/auth/v1.0", user=memory_swift.USER, key=swift_key),
        )

    def asker(self, deadline_s: float = 60) -> Asker:
        return Asker(
            AskingOrder(
                endpoints=self.endpoints, prefix=PREFIX, program=0, own=True, deadline_s=deadline_s
            )
        )


@contextmanager
def memory_store() -> Iterator[MemoryStore]:
    store = MemoryStore()
    with store.server.serving():
        yield store


def ask(store: MemoryStore, *keys: str) -> dict[str, Answer]:
    asker = store.asker()
    return {key: asker.ask(CAPABILITIES[key]).answer for key in keys}
