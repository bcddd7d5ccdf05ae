"""Factors of a workload's requests that may be lists: each way stands for a workload."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from weighbridge.common.endpoint import Encrypted, Encryption, SignedWay, Signing
from weighbridge.suites.operations import Operation

SDK_DEFAULT: Final = "sdk-default"

WorkloadSigning = Signing | Literal["sdk-default"]
"""`sdk-default`, for `users: sdk`: as boto3 is shipped, with a checksum of every write."""

SeveralSignings = Annotated[tuple[WorkloadSigning, ...], Field(min_length=1, max_length=20)]

UNSIGNED: Final = Signing()


def signing_label(signing: WorkloadSigning) -> str:
    """A short name of a way to sign, which is also part of a workload's."""
    return signing.label if isinstance(signing, Signing) else SDK_DEFAULT


def signing_words(signing: WorkloadSigning, users: Literal["engine", "sdk"]) -> str:
    """How requests are signed, in words."""
    if not isinstance(signing, Signing):
        return "as boto3 is shipped: a CRC32 of every write, over https in a trailer"
    if users == "sdk":
        return "as boto3 does, without the checksums that it adds by default"
    return signing.words


def signing_needs(signing: WorkloadSigning, *, tls: bool) -> tuple[SignedWay, ...]:
    """What of it not every store takes; `tls`: over https."""
    if isinstance(signing, Signing):
        return signing.needs
    # botocore sends trailers over https alone; over http the checksum is a header.
    return ("trailers",) if tls else ()


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

ENCRYPTION_WORDS: Final[Mapping[Encryption, str]] = {
    PLAIN: "not asked for",
    "sse-c": "with a key that each request brings (SSE-C)",
    "sse-s3": "with a key of the store's (SSE-S3)",
}
"""How objects are encrypted."""


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


LONGEST_NAME: Final = 40


@dataclass(frozen=True)
class Factor:
    """One of them."""

    key: str
    """The key of a workload."""
    usual: object
    """What it is where a suite says nothing."""
    label: Callable[[Any], str]
    """The short name of a way, which is also part of a workload's."""


SIGNING: Final = Factor("signing", UNSIGNED, signing_label)
ENCRYPTION: Final = Factor("encryption", PLAIN, lambda way: "plain" if way == PLAIN else way)
FACTORS: Final = (SIGNING, ENCRYPTION)


def each_way(workload: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A workload for each combination of its ways. Raises ValueError if a name gets too long."""
    made = [{**workload}]
    for factor in FACTORS:
        if isinstance(workload[factor.key], tuple):
            made = [
                {**one, "name": f"{one['name']}-{factor.label(way)}", factor.key: way}
                for one in made
                for way in workload[factor.key]
            ]
    too_long = [one["name"] for one in made if len(one["name"]) > LONGEST_NAME]
    if too_long:
        raise ValueError(
            f"{', '.join(too_long)}: longer than {LONGEST_NAME} characters; choose a shorter name "
            "for the workload"
        )
    return made
