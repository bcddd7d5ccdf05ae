import pytest

from weighbridge.common.errors import DriverError, TargetError
from weighbridge.common.tool_output import json_object


def test_output_before_the_json_is_skipped() -> None:
    assert json_object("rados bench", 'hints = 1\n{"a": "1"}\n', DriverError) == {"a": "1"}


@pytest.mark.parametrize(
    ("printed", "why"),
    [("", "is not JSON"), ("[1]", "is not a JSON object"), ('{"a": ', "is not JSON")],
)
def test_output_without_an_object_raises_the_given_error_with_the_output(
    printed: str, why: str
) -> None:
    with pytest.raises(TargetError, match=f"fio: what it printed {why}"):
        json_object("fio", printed, TargetError)
