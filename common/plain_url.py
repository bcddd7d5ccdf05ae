"""Where servers are, as options and files name them: nothing that opens anything may stand there,
for it is shown in every report.

What is wrong with one is told without repeating it: it may be that it holds a secret. So do
Python's own words about a URL.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, urlsplit

_SSH: Final = re.compile(
    r"ssh://(?:(?P<user>[^@/:%;?#\s]+)@)?(?P<host>\[[^]@\s]+]|[^@/:?#\s]+)(?::(?P<port>\d+))?(?P<path>/[^?#]*)"
)


@dataclass(frozen=True)
class SshPlace:
    """A folder on a host that is reached by ssh; port 0 and no user: as ~/.ssh has it."""

    user: str
    host: str
    port: int
    path: str


def parts_of(url: str) -> SplitResult:
    """The parts of an http or https URL of ASCII characters that has a host and, if any, a port
    that is one. Raises ValueError.
    """
    try:
        parts = urlsplit(url)
        found = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise ValueError(
            "not of the form http://HOST[:PORT][/PATH]: its host or its port is none"
        ) from None
    if "@" in parts.netloc:
        raise ValueError("holds a user or a password")
    if not found or not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError("not of the form http://HOST[:PORT][/PATH]")
    return parts


def without_query(url: str) -> str:
    """A URL as of `parts_of` that ends with its path. Raises ValueError."""
    parts_of(url)
    if "?" in url or "#" in url:
        raise ValueError(
            "goes on after its path with ? or #, and what stands there may be a password"
        )
    return url


def ssh_place(place: str) -> SshPlace:
    """What ssh://USER@HOST[:PORT]/PATH names. Raises ValueError."""
    found = _SSH.fullmatch(place)
    if found is None or not place.isprintable():
        raise ValueError(
            "not of the form ssh://USER@HOST[:PORT]/PATH, in which no password may stand"
        )
    return SshPlace(
        found["user"] or "",
        found["host"].strip("[]"),
        int(found["port"] or 0),
        found["path"].rstrip("/"),
    )


def folder_or_ssh_place(place: str) -> str:
    """The path of a folder, or a place as of `ssh_place`. Raises ValueError."""
    if "://" in place:
        ssh_place(place)
    return place
