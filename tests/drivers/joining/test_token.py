from __future__ import annotations

import os
from pathlib import Path

import pytest

from weighbridge.common.errors import UsageError
from weighbridge.drivers.joining.token import Token, read_or_make_token, read_token


def test_a_missing_token_is_made_for_its_owner_alone_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "token"
    made = read_or_make_token(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(made.text) == 64
    assert read_or_make_token(path) == made == read_token(path)


def test_the_keys_follow_from_the_token_and_differ_between_tokens() -> None:
    assert Token("a" * 32).keys == Token("a" * 32).keys
    assert Token("a" * 32).keys.public != Token("b" * 32).keys.public


def test_a_token_and_its_key_are_in_no_repr() -> None:
    token = Token("a" * 32)
    assert "aaaa" not in repr(token)
    assert repr(token.keys.secret) not in repr(token.keys)


@pytest.mark.parametrize(
    ("content", "mode", "why"),
    [
        (b"a" * 64, 0o640, "can be read by others"),
        (b"short\n", 0o600, "32 characters or more"),
        (b"a" * 40 + b" " + b"b" * 40, 0o600, "without spaces"),
        (b"a" * 40 + b"\n" + b"b" * 40, 0o600, "one line"),
        ("ä".encode() * 40, 0o600, "not a line of ASCII"),
    ],
)
def test_a_token_that_others_know_or_could_guess_is_refused(
    content: bytes, mode: int, why: str, tmp_path: Path
) -> None:
    path = tmp_path / "token"
    path.write_bytes(content)
    path.chmod(mode)
    with pytest.raises(UsageError, match=why) as refused:
        read_token(path)
    assert content.decode("utf-8").strip() not in str(refused.value)


def test_a_token_that_is_missing_or_a_folder_is_refused_by_a_client(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(UsageError, match="the token "):
            read_token(path)


def test_a_token_of_another_user_and_a_pipe_are_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe, 0o600)
    with pytest.raises(UsageError, match="is not a file"):
        read_token(pipe)
    path = tmp_path / "token"
    path.write_text("a" * 64)
    path.chmod(0o600)
    owner = path.stat()
    strange = os.stat_result((*owner[:4], 4242, *owner[5:]))
    monkeypatch.setattr(os, "fstat", lambda _: strange)
    with pytest.raises(UsageError, match="belongs to another user"):
        read_token(path)
