"""The page docs/what-is-sent.md, with what the engine sends to a socket.

`python -m tests.drivers.sent_page` writes it again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.drivers.conftest import Bench, config_of, serving, until
from tests.drivers.good_answers import BODY, REQUESTS, SENT, SIZE, of_api, well, workload_of
from weighbridge.suites import TRAITS, Operation

PAGE: Final = Path(__file__).parents[2] / "docs" / "what-is-sent.md"
NAMES: Final = {"s3": "S3", "swift": "Swift"}
ABOUT: Final[dict[Operation, str]] = {
    "read": "Reads a complete object. Its length is checked, and a share of its bytes (`verify`).",
    "write": "Writes a new object. An `ETag` that is an MD5 must be that of the body.",
    "delete": "Deletes an object that the worker wrote, or else a prepared one.",
    "list": "Lists the first page of a container. Names must ascend, and must include the keys "
    "that exist.",
    "head": "Asks for an object’s metadata. Its `Content-Length` must be right.",
    "read-range": """\
Reads a part of an object: key `range: {bytes: 64KiB, at: random}` (or `start`, `sequential`).

The answer must be 206 with this `Content-Range` and as many bytes. A 200 is `ignored-range`,
another part is `wrong-range`.""",
    "read-if-none-match": """\
Asks for an object that has not changed: the answer must be 304. A 200 is `ignored-condition`.

Objects need fixed sizes, so that the engine knows their MD5.""",
    "read-if-match": """\
Reads an object on condition that it is the same as before: the answer must be 200 with all of it.
A gateway that takes it for another one answers 412, `http-412`.""",
    "copy": """\
Copies a prepared object to a new one inside the store.

The copy’s `ETag`, if it is an MD5, must be that of the source. A proxy that ignores the header
stores an empty object, which is `wrong-etag`.""",
    "delete-many": """\
Deletes `delete_many` (100) prepared objects of one container by one request.

The answer must say that each was deleted:

- Errors in a 200 are `not-deleted`.
- A success that says nothing, as of a Swift proxy without `bulk`, is `bad-result`.
- A key over S3 that is named twice, or was not asked for, is `bad-result`. Swift’s answer has only
  a count.""",
    "write-multipart": """\
Writes a new object in parts: key `multipart: {part: 8MiB, at_once: 4}`.

- **Parts**: without `at_once` a worker sends them one after the other. With it, it uses that many
  connections, each of which takes the next part as soon as its last is done.
- **Results** have two rows: `write-multipart` is the object from the first request to the last,
  `write-part` each part. An error in the 200 of the last request is `error-body`.
- **A failed upload** ends with its outstanding parts. Its parts stay until its container is
  deleted.
- **Over Swift** it is a static large object, deleted with its segments.""",
    "list-all": """\
Lists a complete container, page by page: key `listing: {page: 1000, prefix: …, delimiter: …}`.

- **Results** have two rows: `list-all` is the listing from the first page to the last, `list-page`
  each page.
- **The last page**: S3 says whether there is more. Over Swift only an empty page is the last, since
  Ceph’s may be shorter than asked for.
- **Checks**: names must ascend by their bytes, on a page and from page to page, and begin with the
  `prefix`; all that exist must come. Otherwise it is `bad-list`.""",
    "write-if-none-match": """\
Writes a new object if there is none. There is none, so the store must accept it; it is checked like
a write.

Refused before the start, like the next operation: radosgw’s Swift API, which ignores the condition,
and s3api before 2.38, which refuses it.""",
    "rewrite-if-none-match": """\
Sends a prepared object once more, which must not be replaced: the answer must be 412, before the
body is sent or after it. A success is `ignored-condition`. No bytes are counted.""",
    "update-metadata": """\
Changes the value of one key of a prepared object’s metadata. S3 replaces the object by a copy of
itself: its `ETag` must stay that of the content.""",
    "tag": "Replaces the tags of a prepared object by another one. Only S3 has tags.",
    "read-part": """\
Reads one part, by its number, of an object that was uploaded in parts: key
`multipart: {part: 8MiB}`. The number is drawn for each request.

- **Objects** need at least two parts. They are uploaded as `write-multipart` does it, over Swift as
  static large objects, and deleted with their segments.
- **Checks**: the answer must be 206 with the `Content-Range` of the part, or as of radosgw 20 a 200
  without one, and have as many bytes. The complete object is `ignored-part`, another part
  `wrong-range`.
- **Refused before the start**: what is known to ignore the number (radosgw 14 to 19, and any over
  its Swift API; Swift before 2.34).""",
    "overwrite": """\
Writes a prepared object again, and checks it like a write.

- **Without versions** the new object has the same content and replaces the old one.
- **With `versions: 3`** the containers keep versions, and each prepared object has three, of
  different content. `overwrite` adds one with the content of the latest. An answer without the ID
  of a version is `bad-result`. What a step adds is deleted after it.""",
    "read-version": """\
Reads one of the prepared versions of an object, by its ID. Needs `versions`; IDs are listed before
a step.

The answer must name this ID and have all bytes of that version: another one is `wrong-content`.
`versions` is refused before the start over radosgw’s Swift API, which keeps none, and over Swift
unless the layout’s setting `versions` is on.""",
    "list-versions": """\
Lists all versions of a container, page by page. Needs `versions`; `listing` may say `page` and
`prefix`.

- **Results** have two rows: `list-versions` is the listing from the first page to the last,
  `versions-page` each page. Delete markers are versions, too.
- **Checks**: names must ascend, no version may come twice, all that were prepared must come, and no
  more if the workload changes nothing. Otherwise it is `bad-list`.
- **The next page** begins after the last version of the one before, not where
  `NextVersionIdMarker` points. s3api before 2.38 says `null` there, and a client that follows it
  gets versions twice.""",
}
HEAD: Final = """\
# What is sent

The bytes of each kind of request, as a socket received them from the engine. A suite names these
operations in `operations:`, the same for both APIs.

- Objects here have 1,000 bytes and parts 400. Dates and signatures are left out; bodies of objects
  are `(… bytes)`. The summary’s column `sent` has the same in words.
- A worker has one request outstanding on a connection that it keeps. The last request of a
  connection (`connections`) has `Connection: close`.
- Payloads over S3 are not hashed: see `x-amz-content-sha256`.
- COSBench, SDK users (`users: sdk`), object servers and the tools below gateways know only some of
  the first five. A suite that asks more of them is refused before anything starts.

A test compares this page with the engine (`tests/drivers/test_engine.py`);
`python -m tests.drivers.sent_page` writes it again.
"""


def sent_by(operation: Operation, api: str) -> list[str]:
    """The requests of one operation, as text without what differs from run to run."""
    with serving(well(operation, api)) as served:
        keys = {"access_key": "KEY", "secret_key": "SECRET", **of_api(api)}
        bench = Bench(config_of(served.port, workload_of(operation), **keys))
        bench.engine.add_worker(0, 1, 0)
        count = REQUESTS.get(operation, {}).get(api, 1)
        until(lambda: len(served.asked) >= count, "requests")
        bench.engine.stop(5.0)
        pairs = list(zip(served.asked, served.bodies, strict=False))[:count]
        return [_text(head, body, served.port) for head, body in pairs]


_PATTERNS: Final[tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...]] = (
    (r"127\.0\.0\.1:\d+", "gateway"),
    (r"\d{8}T\d{6}Z", "(date)"),
    (r"/\d{8}/us-east-1", "/(day)/us-east-1"),
    (r"Signature=[0-9a-f]{64}", "Signature=(64 digits)"),
    (r"weighbridge/[0-9.]+", "weighbridge/(version)"),
    (r"Content-MD5: \S+", "Content-MD5: (base64)"),
)
_FORM_PATTERNS: Final[tuple[tuple[str, str], ...]] = (
    (r"/\d{8}/us-east-1", "/(day)/us-east-1"),
    (r"\d{8}T\d{6}Z", "(date)"),
    (r'(name="policy"\n\n)\S+', r"\1(base64)"),
    (r'(name="(?:x-amz-)?signature"\n\n)([0-9a-f]+)', r"\1(hexadecimal)"),
    (r'(name="expires"\n\n)\d+', r"\1(seconds since 1970)"),
)


def _text(head: bytes, body: bytes, port: int) -> str:
    text = head.decode().replace("\r\n", "\n").rstrip("\n")
    for pattern, instead in _PATTERNS:
        text = re.sub(pattern, instead, text)
    if not body:
        return text
    if body.startswith(b"--"):
        form = body.replace(BODY, f"({SIZE} bytes)".encode()).decode().replace("\r\n", "\n")
        for pattern, instead in _FORM_PATTERNS:
            form = re.sub(pattern, instead, form)
        return f"{text}\n\n{form.rstrip()}"
    readable = body[:1] in (b"<", b"[", b"/")
    return f"{text}\n\n{body.decode().rstrip() if readable else f'({len(body)} bytes)'}"


def page() -> str:
    parts = [HEAD]
    for operation, about in ABOUT.items():
        parts.append(f"## {operation}\n\n{about}\n")
        for api, name in NAMES.items():
            if (operation, api) not in SENT:
                continue
            requests = "\n\n\n".join(sent_by(operation, api))
            parts.append(f"Over {name}:\n\n```http\n{requests}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    assert set(ABOUT) == {name for name, one in TRAITS.items() if one.part_of is None}
    PAGE.write_text(page(), encoding="utf-8")
