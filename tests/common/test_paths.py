from pathlib import Path

from weighbridge.common.paths import expanded, is_file


def test_a_name_that_is_too_long_or_contains_a_null_byte_is_no_file(tmp_path: Path) -> None:
    assert not is_file(Path("a" * 5000))
    assert not is_file(Path("a\0b"))
    assert not is_file(tmp_path)
    (tmp_path / "there").touch()
    assert is_file(tmp_path / "there")


def test_the_home_folder_of_an_unknown_user_is_left_unchanged() -> None:
    assert expanded("~nobody-at-all/key") == Path("~nobody-at-all/key")
    assert expanded("~/key") == Path.home() / "key"
