"""The versions that a bucket keeps of its objects, asked over an exchange."""

from __future__ import annotations

from collections.abc import Iterator

from weighbridge.common import plain_xml
from weighbridge.common.exchange import Exchange, HttpAnswer, WrongAnswer, ask
from weighbridge.common.object_versions import ObjectVersion, versions_of

_KEPT = ("Enabled", "Suspended")
_MISSING = 404
_UNKNOWN = range(400, 502)
"""What a store without versions may answer to a question about them."""


def keeps_versions(exchange: Exchange, api: str, bucket: str) -> bool:
    """Whether a bucket keeps versions, or kept some. Raises WrongAnswer."""
    asked = "versions kept"
    if api == "swift":
        said = ask(exchange, asked, "HEAD", f"/{bucket}", (200, 204, _MISSING))
        return "x-versions-enabled" in said.headers
    answer = ask(exchange, asked, "GET", f"/{bucket}?versioning=", (200, *_UNKNOWN))
    if answer.status in _UNKNOWN:
        return False
    try:
        return (plain_xml.parse(answer.body).findtext("{*}Status") or "").strip() in _KEPT
    except ValueError:
        return False


def kept_versions(exchange: Exchange, api: str, bucket: str) -> Iterator[ObjectVersion]:
    """All versions of a bucket's objects; none without such a bucket. Raises WrongAnswer."""
    asked = "LIST versions"
    last: HttpAnswer | None = None

    def get(query: str) -> bytes:
        nonlocal last
        last = ask(exchange, asked, "GET", f"/{bucket}?{query}", (200, 204, _MISSING))
        return last.body if last.status == 200 else b""

    try:
        yield from versions_of(api, get)
    except ValueError as error:
        raise WrongAnswer(asked, f"the list cannot be read: {error}", last) from error
