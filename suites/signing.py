"""How the S3 requests of a workload are signed: one way, or several to compare."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from weighbridge.common.signing import SignedWay, Signing

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
