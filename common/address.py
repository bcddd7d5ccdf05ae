"""Addresses and names of hosts in URLs and before ports, where IPv6 needs brackets (RFC 3986)."""

from __future__ import annotations


def bracketed(host: str) -> str:
    """A host as it is written before a port."""
    return f"[{host}]" if ":" in host else host


def host_port(host: str, port: int) -> str:
    """`10.0.0.1:80`, or `[fd00::1]:80`."""
    return f"{bracketed(host)}:{port}"
