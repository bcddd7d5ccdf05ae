"""What dd prints: recorded output, and anything else, which is a tally or a DriverError."""

from __future__ import annotations

import math
from typing import Literal, cast

import pytest

from tests.mutation import Dice, cases, tried, wrong_text
from weighbridge.common.errors import DriverError
from weighbridge.drivers.dd.driver import tally_of
from weighbridge.results.run.step import Tally

BLOCK = 4 * 2**20
# coreutils 9.1, dd of=IMAGE bs=4M count=64 oflag=direct on rbd-fuse.
WRITTEN = """64+0 records in
64+0 records out
268435456 bytes (268 MB, 256 MiB) copied, 23.2027 s, 11.6 MB/s
"""
# The same with bs=64k, interrupted after 3 s.
INTERRUPTED = """140+0 records in
140+0 records out
9175040 bytes (9.2 MB, 8.8 MiB) copied, 3.00303 s, 3.1 MB/s
"""
# status=progress prints totals on the way.
WITH_PROGRESS = """67108864 bytes (67 MB, 64 MiB) copied, 1 s, 65.7 MB/s
16+0 records in
16+0 records out
67108864 bytes (67 MB, 64 MiB) copied, 1.02109 s, 65.7 MB/s
"""


def test_recorded_output_is_a_tally_without_latencies() -> None:
    tally, seconds = tally_of(WRITTEN, "write", BLOCK)
    assert (tally.count, tally.bytes, tally.sum_us, seconds) == (64, 64 * BLOCK, None, 23.2027)
    tally, seconds = tally_of(INTERRUPTED, "write", 65536)
    assert (tally.count, seconds) == (140, 3.00303)
    tally, seconds = tally_of(WITH_PROGRESS, "read", BLOCK)
    assert (tally.count, seconds) == (16, 1.02109)


def test_a_block_that_was_read_but_not_copied_when_dd_was_interrupted_is_no_fault() -> None:
    said = "3+0 records in\n2+0 records out\n8192 bytes (8.2 kB, 8.0 KiB) copied, 0.5 s, 16 kB/s\n"
    assert tally_of(said, "write", 4096)[0].count == 2
    assert tally_of(said, "read", 4096)[0].count == 3


def test_dd_that_copied_nothing_has_no_successes() -> None:
    said = "0+0 records in\n0+0 records out\n0 bytes copied, 0.1 s, 0.0 kB/s\n"
    tally, _ = tally_of(said, "write", BLOCK)
    assert (tally.count, tally.sum_us) == (0, 0)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("", "no total"),
        ("dd: failed to open 'x': No such file or directory\n", "no total"),
        (WRITTEN.replace("268435456", "268435457"), "are not 268435457 bytes"),
        (WRITTEN.replace("64+0", "63+0"), "are not"),
        (WRITTEN.replace("23.2027 s", "0 s"), r"in 0\.0 s"),
        (WRITTEN.replace("23.2027 s", "1e999 s"), "in inf s"),
        (WRITTEN.replace("23.2027 s", "1.2.3 s"), "could not convert"),
        (WRITTEN.replace("copied", "kopiert"), "no total"),
        (WRITTEN.replace("64+0", "6" * 40 + "+0"), "no total"),
    ],
)
def test_other_output_is_refused_with_what_it_said(said: str, words: str) -> None:
    with pytest.raises(DriverError, match=words):
        tally_of(said, "write", BLOCK)


@cases
def test_any_output_of_dd_is_a_tally_or_a_driver_error(dice: Dice) -> None:
    text = wrong_text(dice, WRITTEN)
    operation = cast("Literal['read', 'write']", dice.choice(("read", "write")))
    found = tried(lambda: tally_of(text, operation, BLOCK), DriverError, saying="dd")
    if found is None:
        return
    tally, seconds = found
    assert 0 < seconds < math.inf
    assert tally.bytes == tally.count * BLOCK
    assert Tally.model_validate_json(tally.model_dump_json()) == tally
