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
    "a\n\n", "\na", "a\nX-Other: b", "a\rb", "a\0", "a\x1b[2J", "a\x7f", "a\u2028b", "a\u20ac",
    "a\udcff",
)  # fmt: skip
FORMS = (
    SECRET,
    repr(SECRET),
    json.dumps(SECRET),
    quote(SECRET),
    quote(SECRET, safe=""),
    escape(SECRET),
)


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_the_line_end_after_a_key_is_removed(end: str) -> None:
    assert credential("$KEY", SECRET + end) == SECRET


@pytest.mark.parametrize("value", UNSENDABLE)
def test_a_key_that_no_header_can_carry_is_refused_with_its_origin_and_never_shown(
    value: str,
) -> None:
    with pytest.raises(UsageError) as error:
        credential("swift: $ST_KEY", f"planted{value}")
    assert str(error.value).startswith("swift: $ST_KEY: contains")
    assert "planted" not in str(error.value)


@pytest.mark.parametrize("form", FORMS)
def test_a_secret_is_removed_from_a_text_in_every_encoding(form: str) -> None:
    text = redacted(f"Invalid header value b'{form}' of {form}", (SECRET, ""))
    assert "planted" not in text
    assert text.startswith("Invalid header value b'")


def test_of_secrets_within_each_other_the_longer_one_is_removed_first() -> None:
    assert redacted("abc ab", ("ab", "abc")) == "*** ***"
