import pytest

from weighbridge.common.errors import DriverError, TargetError
from weighbridge.common.printed import json_object


def test_what_a_tool_says_before_its_json_is_left_out() -> None:
    assert json_object("rados bench", 'hints = 1\n{"a": "1"}\n', DriverError) == {"a": "1"}


@pytest.mark.parametrize(
    ("told", "why"), [("", "is not JSON"), ("[1]", "is not an object"), ('{"a": ', "is not JSON")]
)
def test_what_is_no_object_is_told_with_what_was_printed_by_the_error_that_the_caller_has(
    told: str, why: str
) -> None:
    with pytest.raises(TargetError, match=f"fio: what it printed {why}"):
        json_object("fio", told, TargetError)
