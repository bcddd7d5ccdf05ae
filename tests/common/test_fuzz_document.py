"""Malformed YAML: faults have positions within the file, and what is read has a limited size."""

from __future__ import annotations

import yaml

from tests.mutation import Dice, cases, places, tried, wrong_yaml
from weighbridge.common.document import Document, DocumentError
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
