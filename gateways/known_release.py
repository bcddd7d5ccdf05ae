"""What is known of a release of a store, and of whose settings it gets."""

from __future__ import annotations

from collections.abc import Sequence

from weighbridge.common.record import Record
from weighbridge.gateways.gateway import RootImage


class KnownRelease(Record):
    """What is known of a release of a store; subclasses have more."""

    image: RootImage
    settings_of: str = ""
    """The release whose settings it has, as this suite has none of its own for it, nor tests that
    run it; empty: its own.
    """


def words(release: str, other: str, ignored: Sequence[str]) -> str:
    """What is said of a release with another's settings; `ignored` are sentences about options of
    this suite that it does not know.
    """
    said = f"those of {other}, as this suite has none of {release}'s own; its own programs "
    if not ignored:
        return f"{said}know every option of them"
    return f"{said}ignore {len(ignored)}: {'; '.join(ignored)}"
