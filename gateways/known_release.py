"""Whose settings a release gets that this suite has none for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar

from weighbridge.common.record import Record
from weighbridge.gateways.gateway import RootImage


class KnownRelease(Record):
    """What is known of a release of a store; subclasses have more."""

    image: RootImage
    settings_of: str = ""
    """The release whose settings it has, as this suite has none of its own for it, nor tests that
    run it; empty: its own.
    """


Of = TypeVar("Of", bound=KnownRelease)

_NAME: Final = re.compile(r"([a-z]+)-([0-9]{1,4}(?:\.[0-9]{1,4}){0,3})")


def taken_as(release: str, known: Iterable[str]) -> str | None:
    """The release, of those `known`, whose settings `release` gets: its own, or those of the last
    one before it, or of the first. None: that is no release of these.

    A release mostly does what the one before it does; what only came later would be missing.
    """
    numbers = {name: _number(name) for name in known}
    own = _number(release)
    kinds = {name.partition("-")[0] for name in numbers}
    if own is None or release.partition("-")[0] not in kinds:
        return release if release in numbers else None
    ordered = sorted((number, name) for name, number in numbers.items() if number is not None)
    before = [name for number, name in ordered if number <= own]
    return before[-1] if before else ordered[0][1]


def settings_of(name: str, releases: Mapping[str, KnownRelease]) -> str | None:
    """See Gateway."""
    if name in releases:
        return name
    return taken_as(name, (known for known, one in releases.items() if not one.settings_of))


def release_of(name: str, releases: Mapping[str, Of], like: RootImage) -> Of:
    """A release: an unknown one has the settings of another, and no image but the packages of
    `like`. Raises KeyError.
    """
    if name in releases:
        return releases[name]
    other = settings_of(name, releases) or name
    image = RootImage(
        name=name, suite="", packages=like.packages, version_packages=like.version_packages
    )
    return releases[other].model_copy(update={"image": image, "settings_of": other})


def _number(release: str) -> tuple[int, ...] | None:
    found = _NAME.fullmatch(release)
    return None if found is None else tuple(int(part) for part in found[2].split("."))


def words(release: str, other: str, ignored: Sequence[str]) -> str:
    """What is said of a release with another's settings; `ignored` are sentences about options of
    this suite that it does not know.
    """
    said = f"those of {other}, the nearest that this suite has for {release}; its own programs "
    if not ignored:
        return f"{said}know every option of them"
    return f"{said}ignore {len(ignored)}: {'; '.join(ignored)}"
