"""S3: conditional reads, writes and deletes."""

from __future__ import annotations

import hashlib
from typing import Final

from weighbridge.common.endpoint import ObjectApi
from weighbridge.gateways.capabilities.capability import (
    Answer,
    Capability,
    Wrong,
    capability,
    works,
)
from weighbridge.gateways.capabilities.s3_session import S3Session
from weighbridge.gateways.capabilities.session import StoreSession, accepted

FALSE: Final = 412
UNCHANGED: Final = 304
PAST: Final = "Mon, 01 Jan 2001 00:00:00 GMT"
OTHER_ETAG: Final = '"00000000000000000000000000000000"'
OLD: Final = b"the old content"
NEW: Final = b"the new content!"


def etag(body: bytes) -> str:
    """The ETag of a plain object, in quotes, as HTTP has it."""
    return f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'


def _reads(store: StoreSession) -> Answer:
    """200 where the condition is true, 304 or 412 where it is not."""
    key = store.put(OLD)
    for name, value, status in (
        ("If-None-Match", etag(OLD), UNCHANGED),
        ("If-None-Match", OTHER_ETAG, 200),
        ("If-Match", OTHER_ETAG, FALSE),
        ("If-Match", etag(OLD), 200),
        ("If-Unmodified-Since", PAST, FALSE),
        ("If-Modified-Since", PAST, 200),
    ):
        answer = store.send("GET", key, headers={name: value})
        if answer.status != status:
            if answer.status not in (FALSE, UNCHANGED):
                accepted(answer)
            raise Wrong(f"{name}: {value}: {status} was expected", status=answer.status)
    return works()


def _creates_only(store: StoreSession) -> Answer:
    """A new object is stored; an object that is there is left: 412."""
    only_new, key = {"If-None-Match": "*"}, store.new()
    store.stored(store.send("PUT", key, "", OLD, only_new), key, OLD)
    answer = store.send("PUT", key, "", NEW, only_new)
    store.refused(answer, key, OLD, "onto an object that is there")
    return works(status=answer.status)


def conditions(api: ObjectApi) -> tuple[Capability, ...]:
    """What is asked of conditions over either API alike."""
    reads = "GET with If-Match, If-None-Match, If-(Un)modified-Since"
    new = "Create only: If-None-Match: *"
    writes = "PUT with If-None-Match: *"
    return (
        capability(api, "conditions", "Conditional reads", asks=reads, key="get-conditions")(
            _reads
        ),
        capability(api, "conditions", new, asks=writes, key="put-if-none-match")(_creates_only),
    )


CONDITIONS: Final = conditions("s3")


@capability("s3", "conditions", 'Replace only: If-Match: "etag"', asks='PUT with If-Match: "etag"')
def put_if_match(store: S3Session) -> Answer:
    """The object is replaced if it has this ETag, and left otherwise: 412."""
    key = store.put(OLD)
    store.refused(
        store.send("PUT", key, body=NEW, headers={"If-Match": OTHER_ETAG}), key, OLD, "a wrong ETag"
    )
    answer = store.send("PUT", key, body=NEW, headers={"If-Match": etag(OLD)})
    if answer.status == FALSE:
        raise Wrong("its own ETag, in quotes, is said not to match", status=FALSE)
    accepted(answer)
    store.expect(key, NEW, answer.status)
    return works(status=answer.status)


@capability("s3", "conditions", "DELETE with If-Match", asks='DELETE with If-Match: "etag"')
def delete_if_match(store: S3Session) -> Answer:
    """The object is left if it has another ETag: 412; and deleted if it has this one."""
    key = store.put(OLD)
    answer = store.send("DELETE", key, headers={"If-Match": OTHER_ETAG})
    store.refused(answer, key, OLD, "a wrong ETag")
    right = store.send("DELETE", key, headers={"If-Match": etag(OLD)})
    if right.status == FALSE:
        raise Wrong("its own ETag, in quotes, is said not to match", status=FALSE)
    accepted(right)
    if store.read(key) is not None:
        raise Wrong("the object can still be read", status=right.status)
    return works(status=answer.status)
