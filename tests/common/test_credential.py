"""Keys, passwords and tokens as they come from files and the environment."""

from __future__ import annotations

import json
from urllib.parse import quote
from xml.sax.saxutils import escape

import pytest

from weighbridge.common.credential import credential, redacted
from weighbridge.common.errors import UsageError

SECRET = 'planted/secret+of=a "test" & more'
UNSENDABLE = (
    "a\n\n",
    "\na",
    "a\nX-Other: b",
    "a\rb",
    "a\0",
    "a\x1b[2J",
    "a\x7f",
    "a\u2028b",
    "a\u20ac",
    "a\udcff",
)
FORMS = (
    SECRET,
    repr(SECRET),
    json.dumps(SECRET),
    quote(SECRET),
    quote(SECRET, safe=""),
    escape(SECRET),
)


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_the_end_of_a_line_that_a_file_leaves_on_a_key_is_none_of_it(end: str) -> None:
    assert credential("$KEY", SECRET + end) == SECRET


@pytest.mark.parametrize("value", UNSENDABLE)
def test_a_key_that_no_request_can_carry_is_refused_with_its_origin_and_never_shown(
    value: str,
) -> None:
    with pytest.raises(UsageError) as error:
        credential("swift: $ST_KEY", f"planted{value}")
    assert str(error.value).startswith("swift: $ST_KEY: holds")
    assert "planted" not in str(error.value)


@pytest.mark.parametrize("form", FORMS)
def test_a_secret_is_taken_out_of_a_text_however_it_is_written_there(form: str) -> None:
    told = redacted(f"Invalid header value b'{form}' of {form}", (SECRET, ""))
    assert "planted" not in told
    assert told.startswith("Invalid header value b'")


def test_of_secrets_within_each_other_the_longer_one_goes_first() -> None:
    assert redacted("abc ab", ("ab", "abc")) == "*** ***"
