"""How the S3 objects of a workload are encrypted: one way, or several to compare."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Annotated, Final

from pydantic import Field

from weighbridge.common.encryption import Encrypted, Encryption
from weighbridge.common.signing import Signing
from weighbridge.suites.operations import Operation
from weighbridge.suites.signing import SeveralSignings, WorkloadSigning

PLAIN: Final[Encryption] = "none"

SeveralEncryptions = Annotated[tuple[Encryption, ...], Field(min_length=1, max_length=3)]

_PLAIN_ONLY: Final[frozenset[Operation]] = frozenset(
    (
        "copy",
        "read-if-match",
        "read-if-none-match",
        "read-part",
        "rewrite-if-none-match",
        "update-metadata",
        "write-if-none-match",
    )
)
"""A copy, such as one onto itself, needs two keys; an encrypted object's ETag need not be the MD5
that is known; conditional writes and reads by part number with a key were not tried.
"""

_WORDS: Final[dict[Encryption, str]] = {
    PLAIN: "not asked for",
    "sse-c": "with a key that each request brings (SSE-C)",
    "sse-s3": "with a key of the store's (SSE-S3)",
}


def encryption_label(encryption: Encryption) -> str:
    """A short name of it, which is also part of a workload's."""
    return "plain" if encryption == PLAIN else encryption


def encryption_words(encryption: Encryption) -> str:
    """How objects are encrypted, in words."""
    return _WORDS[encryption]


def unfit_encryption(
    encryption: Encryption | SeveralEncryptions,
    signing: WorkloadSigning | SeveralSignings,
    asked: AbstractSet[Operation],
) -> str:
    """Why a workload's objects cannot be encrypted so; empty if they can."""
    if all(
        one == PLAIN for one in (encryption if isinstance(encryption, tuple) else (encryption,))
    ):
        return ""
    if unknown := sorted(_PLAIN_ONLY & asked):
        return (
            f"encryption: {', '.join(unknown)} is sent without it only: leave `encryption` out, or "
            "use another workload for it"
        )
    several = signing if isinstance(signing, tuple) else (signing,)
    if any(isinstance(one, Signing) and one.auth != "header" for one in several):
        return "encryption needs `auth: header`, which signs the headers that ask for it"
    return ""


def encryption_needs(encryption: Encryption) -> tuple[Encrypted, ...]:
    """What of it not every store does."""
    return () if encryption == "none" else (encryption,)
