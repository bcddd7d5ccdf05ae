"""Malformed quantities."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from tests.mutation import Dice, bounded, cases, hostile, wrong_bytes
from weighbridge.common.quantities import BitsPerS, Bytes, Seconds, parse_bytes, show_bytes

WRITTEN = ("64MiB", "1.5 GB", "0B", "500ms", "20s", "1.25h", "10Gbit", "100 Mbit", "4096", "5TiB")
ADAPTERS: tuple[TypeAdapter[float], ...] = (
    TypeAdapter(Bytes),
    TypeAdapter(Seconds),
    TypeAdapter(BitsPerS),
)


@cases
def test_any_text_is_a_quantity_within_its_limits_or_refused(dice: Dice) -> None:
    value = (
        hostile(dice)
        if dice.random() < 0.3
        else wrong_bytes(dice, dice.choice(WRITTEN).encode()).decode(errors="replace")
    )
    for adapter in ADAPTERS:
        with bounded():
            try:
                found = adapter.validate_python(value)
            except ValidationError:
                continue
        assert found >= 0
        assert adapter.validate_json(adapter.dump_json(found)) == found
        assert show_bytes(found)


def test_a_quantity_with_too_many_digits_is_refused() -> None:
    with pytest.raises(ValueError, match="larger than any quantity"):
        parse_bytes("9" * 400 + "TB")
