import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from weighbridge.common.errors import InvalidMeasurement
from weighbridge.results.influx.line_protocol import InfluxPoint


def point(**changed: object) -> InfluxPoint:
    return InfluxPoint.model_validate(
        {
            "measurement": "m",
            "tags": {"run": "r"},
            "fields": {"ops": 3},
            "at_ms": 1415102400000,
            **changed,
        }
    )


def test_counts_are_integers_and_measures_are_floats() -> None:
    assert (
        point(fields={"ops": 3, "mean_ms": 2.0}).line == "m,run=r ops=3i,mean_ms=2.0 1415102400000"
    )


def test_unknown_fields_are_omitted_and_never_0() -> None:
    assert (
        point(tags={"run": "r", "layer": None}, fields={"ops": 0, "p90_ms": None}).line
        == "m,run=r ops=0i 1415102400000"
    )


def test_a_point_without_known_fields_has_no_line() -> None:
    assert point(fields={"p90_ms": None}).line is None


def test_commas_spaces_and_equals_signs_of_tags_are_escaped() -> None:
    assert point(tags={"a b": "x=1, y"}).line == r"m,a\ b=x\=1\,\ y ops=3i 1415102400000"


@pytest.mark.parametrize("text", ["two\nlines", "ends in a \\", "bell\a"])
def test_a_text_that_servers_read_differently_is_refused(text: str) -> None:
    with pytest.raises(InvalidMeasurement, match="cannot be written in line protocol"):
        _ = point(tags={"run": text}).line


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_field_that_is_not_a_number_is_refused(value: float) -> None:
    with pytest.raises(ValidationError):
        point(fields={"mean_ms": value})


@given(
    st.text(st.characters(min_codepoint=0x20, exclude_characters="\x7f"), min_size=1).filter(
        lambda text: not text.endswith("\\")
    )
)
def test_every_tag_is_read_back_as_it_was(text: str) -> None:
    line = point(tags={"tag": text}).line
    assert line is not None
    tag, _, rest = line.removeprefix("m,tag=").rpartition(" ops=")
    assert rest == "3i 1415102400000"
    assert not re.search(r"(?<!\\)[,= ]", tag)
    assert re.sub(r"\\([,= ])", r"\1", tag) == text
