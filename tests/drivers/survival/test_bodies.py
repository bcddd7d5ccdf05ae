"""Bodies of objects, and what a damaged one is taken for."""

from __future__ import annotations

import zlib

import pytest

from weighbridge.drivers.survival.bodies import PIECE_BYTES, SECTOR_BYTES, Bodies

BODIES = Bodies(11)
SIZE = 4096
NAME = "s3/bucket/w000-0000001"


@pytest.mark.parametrize("size", [64, 512, 4096, 70_000, PIECE_BYTES, 2 * PIECE_BYTES + 777])
def test_a_body_has_its_size_and_is_the_same_for_the_same_seed_and_version(size: int) -> None:
    body = BODIES.of(NAME, 1, size)
    assert len(body) == size
    assert body == Bodies(11).of(NAME, 1, size)


def test_no_two_sectors_of_seeds_objects_and_versions_are_the_same() -> None:
    bodies = [
        *(BODIES.of(name, version, 65536) for name in (NAME, "s3/b/x") for version in range(1, 5)),
        Bodies(12).of(NAME, 1, 65536),
    ]
    sectors = {
        body[at : at + SECTOR_BYTES] for body in bodies for at in range(0, 65536, SECTOR_BYTES)
    }
    assert len(sectors) == 9 * 65536 // SECTOR_BYTES


@pytest.mark.parametrize("size", [4096, PIECE_BYTES])
def test_bodies_cannot_be_compressed(size: int) -> None:
    assert len(zlib.compress(BODIES.of(NAME, 1, size), 9)) > 0.95 * size


def look(body: bytes, *versions: int, size: int = SIZE) -> tuple[str, int | None]:
    found = BODIES.look(NAME, size, versions, body)
    return found.what, found.version


def test_a_complete_body_is_the_version_that_it_is_and_sectors_of_two_are_torn() -> None:
    old, new = (BODIES.of(NAME, version, SIZE) for version in (1, 2))
    assert look(new, 1, 2) == ("version", 2)
    assert look(new[:2048] + old[2048:], 1, 2) == ("torn", None)
    said = BODIES.look(NAME, SIZE, (1, 2), new[:1024] + old[1024:]).words
    assert said == "4096 of 4096 bytes; sectors: 2 of version 2, 6 of version 1"


def test_a_large_body_is_compared_to_its_last_piece() -> None:
    size = 2 * PIECE_BYTES + 1000
    old, new = (BODIES.of(NAME, version, size) for version in (1, 2))
    assert look(new, 1, 2, size=size) == ("version", 2)
    cut = 2 * PIECE_BYTES + SECTOR_BYTES
    assert look(new[:cut] + old[cut:], 1, 2, size=size) == ("torn", None)


@pytest.mark.parametrize("kept", [0, 1, 500, 512, 4095])
def test_a_body_that_ends_early_is_torn(kept: int) -> None:
    assert look(BODIES.of(NAME, 1, SIZE)[:kept], 1) == ("torn", None)


def test_sectors_that_were_never_written_are_torn_and_nothing_but_zeros_is_wrong() -> None:
    body = BODIES.of(NAME, 1, SIZE)
    assert look(body[:512] + bytes(SIZE - 512), 1) == ("torn", None)
    assert look(bytes(SIZE), 1) == ("wrong", None)


def test_other_bytes_are_wrong_and_say_where_they_are_from() -> None:
    body = BODIES.of(NAME, 1, SIZE)
    assert look(body[:-1] + bytes([body[-1] ^ 1]), 1) == ("wrong", None)
    assert look(BODIES.of(NAME, 3, SIZE), 1, 2) == ("wrong", None)
    assert look(body + b"x", 1) == ("wrong", None)
    later = BODIES.look(NAME, SIZE, (1, 2), BODIES.of(NAME, 3, SIZE)).words
    assert "8 of no version written by then" in later
    assert "it says version 3 of this object" in later
    other = BODIES.look(NAME, SIZE, (1,), BODIES.of("s3/b/other", 1, SIZE)).words
    assert "it does not say that it is of this object" in other
