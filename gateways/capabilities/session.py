"""What capabilities of both APIs ask with: objects that are written, read back and compared."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Final

from weighbridge.common import plain_xml
from weighbridge.common.exchange import HttpAnswer, Wire, WrongAnswer, ask, exchanging
from weighbridge.gateways.capabilities.capability import (
    REFUSES_FROM,
    Refused,
    Unknown,
    Wrong,
    refusal,
)

# Names have the forms by which `weighbridge clean` recognises what a killed run left
# (`gateways.existing.leftover_buckets`).


MOST_BUCKETS: Final = 60
"""Buckets of one program that asks; a run may need several programs."""


def buckets_of(prefix: str, programs: int) -> tuple[str, ...]:
    """All buckets that so many programs may make; `prefix` is `wb-` and eight hex digits."""
    return tuple(f"{prefix}-capability-{number}" for number in range(programs * MOST_BUCKETS))


class Names:
    """Names that are each given once. `program`: which program of the run this is, from 0."""

    def __init__(self, prefix: str, program: int) -> None:
        self._buckets = iter(buckets_of(prefix, program + 1)[program * MOST_BUCKETS :])
        self._objects = 0

    def bucket(self) -> str:
        """The name of a new bucket. Raises Unknown when all are used."""
        found = next(self._buckets, None)
        if found is None:
            raise Unknown(f"not asked: more than {MOST_BUCKETS} buckets would be needed")
        return found

    def object(self) -> str:
        self._objects += 1
        return f"object-{self._objects}"


FOLDERS: Final = tuple("abcdefghijklm")
EACH: Final = 100
"""1,300 objects: RGW ends pages short of 1,000 with some 830 to 920 names."""
NAMES: Final = tuple(
    sorted(f"written-{folder}-{number}" for folder in FOLDERS for number in range(EACH))
)
"""With `-` as the delimiter, thirteen folders below `written-`."""
_PARALLEL: Final = 8


def fill(endpoint: Mapping[str, Any], bucket: str) -> None:
    """Write an empty object of each name. Raises Unknown if one was not taken."""
    shares = [NAMES[number::_PARALLEL] for number in range(_PARALLEL)]
    with ThreadPoolExecutor(_PARALLEL) as pool:
        list(pool.map(lambda share: _fill_share(endpoint, bucket, share), shares))


def _fill_share(endpoint: Mapping[str, Any], bucket: str, names: Sequence[str]) -> None:
    try:
        with exchanging(endpoint, bucket) as exchange:
            for name in names:
                ask(exchange, "PUT", "PUT", f"/{bucket}/{name}", (200, 201))
    except WrongAnswer as wrong:
        status = wrong.answer.status if wrong.answer else None
        raise Unknown("not asked: the objects to list were not accepted", status=status) from None


SILENCE_S: Final = 20.0
"""How long a store may be silent within a request."""
NONE: Final[Mapping[str, str]] = MappingProxyType({})


class StoreSession(ABC):
    """One endpoint, and the buckets made in it; `own`: all of it ends with its deployment."""

    def __init__(self, endpoint: Mapping[str, Any], names: Names, *, own: bool) -> None:
        self.own = own
        self.names = names
        self.endpoint = endpoint

    @abstractmethod
    def new_bucket(self) -> str:
        """Make a bucket. Raises Refused or Unknown."""

    @abstractmethod
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
        """Ask for an object, or without a key the bucket. Raises OSError or HTTPException."""

    @functools.cached_property
    def bucket(self) -> str:
        """The bucket that all share which need none of their own. Raises Unknown."""
        with preparing():
            return self.new_bucket()

    @functools.cached_property
    def full_bucket(self) -> str:
        """A bucket with an empty object of each of `filling.NAMES`. Raises Unknown."""
        with preparing():
            name = self.new_bucket()
        fill(self.endpoint, name)
        return name

    def new(self) -> str:
        return self.names.object()

    def wire(self, scheme: str, netloc: str) -> Wire:
        return Wire(scheme, netloc, self.endpoint.get("ca_file"), SILENCE_S)

    def put(
        self, body: bytes, headers: Mapping[str, str] = NONE, *, bucket: str | None = None
    ) -> str:
        """Store an object that a capability needs; returns its name. Raises Unknown if refused."""
        key = self.new()
        with preparing():
            accepted(self.send("PUT", key, "", body, headers, bucket=bucket))
        return key

    def read(self, key: str, *, bucket: str | None = None) -> bytes | None:
        """An object's content; None if there is no such object. Raises Unknown."""
        answer = self.send("GET", key, bucket=bucket)
        if answer.status == HTTPStatus.NOT_FOUND:
            return None
        with preparing():
            return accepted(answer).body

    def expect(
        self, key: str, body: bytes, status: int | None = None, *, bucket: str | None = None
    ) -> None:
        """Raise Wrong unless an object has this content; Unknown."""
        answer = self.send("GET", key, bucket=bucket)
        found = None if answer.status == HTTPStatus.NOT_FOUND else answer.body
        if answer.status >= REFUSES_FROM and found is not None:
            error = fault(answer)
            if isinstance(error, Unknown):
                raise error
            raise Wrong(f"accepted, but GET of it is refused with {answer.status}", status=status)
        if found != body:
            raise Wrong(f"accepted, but {how_it_differs(found, body)}", status=status)

    def stored(self, answer: HttpAnswer, key: str, body: bytes) -> HttpAnswer:
        """The answer to a PUT that was taken and is read back. Raises Refused, Wrong or Unknown."""
        if answer.status >= REFUSES_FROM and self.read(key) is not None:
            raise Wrong("refused, but stored", status=answer.status)
        self.expect(key, body, accepted(answer).status)
        return answer

    def refused(self, answer: HttpAnswer, key: str, before: bytes | None, what: str) -> HttpAnswer:
        """An answer that must refuse `what` and leave the object as it was (None: not there).

        Raises Wrong if it does not, Refused if the store lacks all of this, Unknown.
        """
        if answer.status < REFUSES_FROM:
            changed = self.read(key) != before
            how = ", and stored" if before is None else ", and the object changed"
            raise Wrong(f"{what}: accepted{how if changed else ''}", status=answer.status)
        error = fault(answer)
        if isinstance(error, Unknown) or answer.status == HTTPStatus.NOT_IMPLEMENTED:
            raise error
        if self.read(key) != before:
            raise Wrong(f"{what}: refused, but the object changed", status=answer.status)
        return answer

    def clean(self) -> tuple[str, ...]:
        """Delete what is more than objects in buckets; returns in words what could not be."""
        return ()


@contextmanager
def preparing() -> Iterator[None]:
    """Turn a refusal of what a capability needs first into Unknown: it was not asked."""
    try:
        yield
    except (Refused, Wrong) as error:
        said = f"{error.status} {error.code} {error.text}"
        raise Unknown(f"not asked: a request that it needs first failed: {said}") from error


def accepted(answer: HttpAnswer) -> HttpAnswer:
    """The answer if its status is 2xx. Raises Refused or Unknown."""
    if answer.status >= REFUSES_FROM:
        raise fault(answer)
    if answer.status >= HTTPStatus.MULTIPLE_CHOICES:
        raise Unknown("redirected", status=answer.status)
    return answer


def fault(answer: HttpAnswer) -> Exception:
    """The exception for an answer with an error status, with S3's own code where it has one."""
    code, text = "", ""
    with suppress(ValueError):
        root = plain_xml.parse(answer.body)
        code = root.findtext("{*}Code") or ""
        text = root.findtext("{*}Message") or ""
    return refusal(answer.status, code, text or answer.body[:200].decode(errors="replace"))


def how_it_differs(found: bytes | None, body: bytes) -> str:
    """In words what was read in place of `body`."""
    if found is None:
        return "there is no such object"
    if len(found) != len(body):
        return f"{len(found)} bytes were read instead of {len(body)}"
    return "the bytes read are not those that were sent"
