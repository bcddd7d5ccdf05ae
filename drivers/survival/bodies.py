"""Bodies of objects: each 512 bytes tell object and version, so that a mixture can be seen.

Random bytes that repeat after 4 MiB, the same for the same seed. Every sector begins with 12 bytes
that name the object and 4 that are the version; what follows depends on both.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

SECTOR_BYTES: Final = 512
PIECE_BYTES: Final = 2**20
"""Bodies are made, sent and compared by pieces of this size: many fit into a client's memory."""
_POOL_BYTES: Final = 4 * 2**20
_TAG_BYTES: Final = 12
_HEADER_BYTES: Final = 16


class Look(NamedTuple):
    """What a body is that was read. `words` say so; `version` is set if it is exactly one."""

    what: Literal["version", "torn", "wrong"]
    version: int | None
    words: str


class Bodies:
    """The bodies of all objects of a load."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._pool = random.Random(f"bodies {seed}").randbytes(_POOL_BYTES + PIECE_BYTES)  # noqa: S311

    def pieces(self, name: str, version: int, size_bytes: int) -> Iterator[bytes]:
        """A version of an object; `name` is unique over all APIs and containers."""
        tag, start = self._tag(name, version)
        header = tag + version.to_bytes(4)
        for begin in range(0, size_bytes, PIECE_BYTES):
            yield self._piece(header, start + begin, min(PIECE_BYTES, size_bytes - begin))

    def of(self, name: str, version: int, size_bytes: int) -> bytes:
        return b"".join(self.pieces(name, version, size_bytes))

    def _tag(self, name: str, version: int) -> tuple[bytes, int]:
        tag = hashlib.blake2b(f"{self._seed} {name}".encode(), digest_size=_TAG_BYTES).digest()
        mixed = hashlib.blake2b(tag + version.to_bytes(4), digest_size=8).digest()
        return tag, int.from_bytes(mixed) % _POOL_BYTES

    def _piece(self, header: bytes, start: int, size_bytes: int) -> bytes:
        start %= _POOL_BYTES
        piece = bytearray(self._pool[start : start + size_bytes])
        for at in range(min(_HEADER_BYTES, size_bytes)):
            count = len(range(at, size_bytes, SECTOR_BYTES))
            piece[at::SECTOR_BYTES] = header[at : at + 1] * count
        return bytes(piece)

    def look(self, name: str, size_bytes: int, versions: Sequence[int], body: bytes) -> Look:
        """What a body is, when these versions of the object were written.

        Torn is what begins as one of them and ends early, and what consists of sectors of several,
        or of one and zeros: of blocks that were never written.
        """
        if len(body) > size_bytes:
            return Look("wrong", None, f"more than the {size_bytes} bytes that were written")
        for version in versions:
            if self._is(name, version, size_bytes, body):
                return Look("version", version, f"version {version}")
        if not body:
            return Look("torn", None, "no bytes")
        return self._look_at_sectors(name, size_bytes, versions, body)

    def _is(self, name: str, version: int, size_bytes: int, body: bytes) -> bool:
        if len(body) != size_bytes:
            return False
        seen = memoryview(body)
        return all(
            seen[at * PIECE_BYTES : (at + 1) * PIECE_BYTES] == piece
            for at, piece in enumerate(self.pieces(name, version, size_bytes))
        )

    def _look_at_sectors(
        self, name: str, size_bytes: int, versions: Sequence[int], body: bytes
    ) -> Look:
        counts: dict[int | str, int] = {}
        first_other = ""
        makers = [self.pieces(name, version, size_bytes) for version in versions]
        for begin in range(0, len(body), PIECE_BYTES):
            wanted = [next(maker) for maker in makers]
            for at in range(begin, min(begin + PIECE_BYTES, len(body)), SECTOR_BYTES):
                sector = body[at : min(at + SECTOR_BYTES, begin + PIECE_BYTES)]
                key: int | str = "other"
                for version, piece in zip(versions, wanted, strict=True):
                    if piece[at - begin : at - begin + len(sector)] == sector:
                        key = version
                        break
                else:
                    if not any(sector):
                        key = "zeros"
                    elif not first_other:
                        first_other = f"the first at byte {at}: {self._origin(name, sector)}"
                counts[key] = counts.get(key, 0) + 1
        parts = [
            f"{count} of version {key}" if isinstance(key, int) else f"{count} of {key}"
            for key, count in counts.items()
            if key != "other"
        ]
        words = f"{len(body)} of {size_bytes} bytes; sectors: {', '.join(parts)}"
        if other := counts.get("other", 0):
            more = f"{other} of no version written by then, {first_other}"
            return Look("wrong", None, f"{words}{', ' * bool(parts)}{more}")
        if set(counts) == {"zeros"}:
            return Look("wrong", None, f"{len(body)} of {size_bytes} bytes, all zero")
        return Look("torn", None, words)

    def _origin(self, name: str, sector: bytes) -> str:
        tag, _ = self._tag(name, 0)
        if len(sector) >= _HEADER_BYTES and sector.startswith(tag):
            version = int.from_bytes(sector[_TAG_BYTES:_HEADER_BYTES])
            return f"it says version {version} of this object"
        return "it does not say that it is of this object"
