"""Signatures of S3 requests that are made outside of measured windows."""

from __future__ import annotations

from weighbridge.drivers.engine._native import signed_headers


def signature(
    keys: tuple[str, str, str],
    region: str,
    host: str,
    method: str,
    path: str,
    query: str,
    unix_s: int,
) -> dict[str, str]:
    """Headers that sign an S3 request by AWS Signature Version 4, by the engine's own signer: the
    payload is UNSIGNED-PAYLOAD.

    `query` is percent-encoded, its keys sorted. No header contains the secret key.
    """
    lines = signed_headers(keys, region, host, method, path or "/", query, unix_s)
    return {
        name: value.strip()
        for name, _, value in (line.partition(":") for line in lines.split("\r\n"))
        if name
    }
