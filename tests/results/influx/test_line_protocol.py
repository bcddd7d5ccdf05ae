import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from weighbridge.common.errors import InvalidMeasurement
from weighbridge.results.influx.line_protocol import InfluxPoint


def point(**changed: object) -> InfluxPoint:
    usual = {"measurement": "m", "tags": {"run": "r"}, "fields": {"ops": 3}, "at_ms": 1415102400000}
    return InfluxPoint.model_validate({**usual, **changed})


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"fields": {"ops": 3, "mean_ms": 2.0}}, "m,run=r ops=3i,mean_ms=2.0"),
        # What is unknown is omitted and never 0.
        (
            {"tags": {"run": "r", "layer": None}, "fields": {"ops": 0, "p90": None}},
            "m,run=r ops=0i",
        ),
        ({"tags": {"a b": "x=1, y"}}, r"m,a\ b=x\=1\,\ y ops=3i"),
    ],
)
def test_a_point_is_a_line_of_what_is_known_of_it(changed: dict[str, object], line: str) -> None:
    assert point(**changed).line == f"{line} 1415102400000"
    assert point(fields={"p90_ms": None}).line is None


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
