"""Server URLs and folders in options and files. They may hold no secret: every report shows them.

Error messages never repeat them, since a refused one may hold a secret. Python's own messages about
URLs do.
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
    """A folder on a host reached by ssh; port 0 and an empty user: as ~/.ssh says."""

    user: str
    host: str
    port: int
    path: str


def parts_of(url: str) -> SplitResult:
    """The parts of an ASCII http(s) URL with a host and a valid port or none. Raises ValueError."""
    try:
        parts = urlsplit(url)
        found = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise ValueError(
            "not of the form http://HOST[:PORT][/PATH]: its host or port is invalid"
        ) from None
    if "@" in parts.netloc:
        raise ValueError("contains a user or a password")
    if not found or not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError("not of the form http://HOST[:PORT][/PATH]")
    return parts


def without_query(url: str) -> str:
    """A URL as of `parts_of`, without query or fragment. Raises ValueError."""
    parts_of(url)
    if "?" in url or "#" in url:
        raise ValueError("has a query (?) or a fragment (#), which may contain a password")
    return url


def ssh_place(place: str) -> SshPlace:
    """What ssh://USER@HOST[:PORT]/PATH names. Raises ValueError."""
    found = _SSH.fullmatch(place)
    if found is None or not place.isprintable():
        raise ValueError("not of the form ssh://USER@HOST[:PORT]/PATH (without a password)")
    return SshPlace(
        found["user"] or "",
        found["host"].strip("[]"),
        int(found["port"] or 0),
        found["path"].rstrip("/"),
    )


def folder_or_ssh_place(place: str) -> str:
    """The path of a folder, or a location as of `ssh_place`. Raises ValueError."""
    if "://" in place:
        ssh_place(place)
    return place
