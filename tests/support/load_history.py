"""Operations of one object, as a load reports them."""

from __future__ import annotations

from typing import Any

from weighbridge.drivers.survival import Operation


def operation(version: int, kind: str = "write", **given: Any) -> Operation:
    """An operation of one object: sent and answered at the seconds of its number."""
    usual: dict[str, Any] = {
        "kind": kind,
        "api": "s3",
        "container": "wb-cut-s3-0",
        "name": "w000-0000001",
        "size_bytes": 4096,
        "version": version,
        "sent_s": float(version),
        "answered_s": version + 0.5,
        "acknowledged": True,
    }
    return Operation.model_validate(usual | given)
