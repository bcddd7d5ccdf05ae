"""How S3 requests are signed, and what lets a store check their bodies."""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator

from weighbridge.common.record import Record

SignedWay = Literal["signed chunks", "trailers", "anonymous requests"]
"""What not every store takes. Unsigned payloads, signed ones and checksums in headers are taken by
all.
"""


class Signing(Record):
    """What a request's signature says of its body, and where it is."""

    payload: Literal["unsigned", "signed", "chunks", "trailer"] = "unsigned"
    """`unsigned`: nothing; `signed`: its SHA-256; `chunks`: it is sent in chunks of 64 KiB, each
    with a signature; `trailer`: in chunks of 1 MiB without one, and the checksum comes last.
    """
    checksum: Literal["crc32", "crc64nvme"] | None = None
    """The body's checksum: a header, and of a body in chunks a trailer."""
    auth: Literal["header", "query", "none"] = "header"
    """Where the signature is: in a header, in the query (a presigned URL), or nowhere: requests
    are anonymous.
    """

    @model_validator(mode="after")
    def _fits(self) -> Signing:
        if self.payload == "trailer" and self.checksum is None:
            raise ValueError("a trailer is a checksum: say which, `checksum: crc64nvme`")
        if self.auth != "header" and (self.payload != "unsigned" or self.checksum is not None):
            raise ValueError(
                f"with `auth: {self.auth}` the payload is unsigned, and has no checksum"
            )
        return self

    @property
    def label(self) -> str:
        """A short name, which is also part of a workload's."""
        if self.auth != "header":
            return "presigned" if self.auth == "query" else "anonymous"
        return "-".join([self.payload, *([self.checksum] if self.checksum else [])])

    @property
    def words(self) -> str:
        """What is sent, in words."""
        if self.auth != "header":
            return (
                "presigned URLs, unsigned payload"
                if self.auth == "query"
                else "anonymous: nothing is signed"
            )
        payload = {
            "unsigned": "unsigned payload",
            "signed": "signed payload (its SHA-256)",
            "chunks": "signed chunks of 64 KiB",
            "trailer": "unsigned chunks of 1 MiB",
        }[self.payload]
        if self.checksum is None:
            return payload
        place = "a trailer" if self.payload in ("chunks", "trailer") else "a header"
        return f"{payload}, {self.checksum.upper()} in {place}"

    @property
    def needs(self) -> tuple[SignedWay, ...]:
        """What of it not every store takes, of writes: objects are prepared in the same way."""
        if self.auth == "none":
            return ("anonymous requests",)
        chunks: tuple[SignedWay, ...] = ("signed chunks",) if self.payload == "chunks" else ()
        in_trailer = self.checksum is not None and self.payload in ("chunks", "trailer")
        return (*chunks, "trailers") if in_trailer else chunks
