"""Malformed YAML: faults have positions within the file, and what is read has a limited size."""

from __future__ import annotations

import pytest
import yaml
from pydantic import TypeAdapter, ValidationError

from tests.mutation import Dice, bounded, cases, hostile, places, tried, wrong_bytes, wrong_yaml
from weighbridge.common.document import Document, DocumentError
from weighbridge.common.quantities import BitsPerS, Bytes, Seconds, parse_bytes, show_bytes
from weighbridge.common.record import Record

TEXT = """# What is measured
name: &name small-read
about: >
  Many lines
  of text
list: [1, 2.5, 0x10, 1e3, yes, ~, 2026-11-22, "two words", 'it''s']
inner:
  - {key: *name, other: [a, b]}
  - key: |
      kept as it is
  - <<: {key: c}
"""
DOCUMENT = yaml.safe_load(TEXT.replace("2026-11-22, ", ""))


class Inner(Record):
    key: str
    other: tuple[str, ...] = ()


class Outer(Record):
    """A record with a field of every kind."""

    name: str
    about: str
    list: tuple[int | float | bool | str | None, ...]
    inner: tuple[Inner, ...]


@cases
def test_any_file_is_read_or_refused_with_positions_within_it(dice: Dice) -> None:
    text = wrong_yaml(dice, TEXT, DOCUMENT)
    document = tried(lambda: Document("a.yaml", text), DocumentError, saying="a.yaml:", text=text)
    if document is not None:
        assert len(places(document.data)) <= 200_000
        found = tried(lambda: document.into(Outer), DocumentError, saying="a.yaml:", text=text)
        assert found is None or Outer.model_validate_json(found.model_dump_json()) == found


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
