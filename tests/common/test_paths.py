from pathlib import Path

from weighbridge.common.paths import expanded, is_file


def test_what_is_too_long_to_be_a_path_or_has_a_nought_in_it_is_no_file(tmp_path: Path) -> None:
    assert not is_file(Path("a" * 5000))
    assert not is_file(Path("a\0b"))
    assert not is_file(tmp_path)
    (tmp_path / "there").touch()
    assert is_file(tmp_path / "there")


def test_a_folder_of_a_user_who_is_not_there_is_left_as_it_is_written() -> None:
    assert expanded("~nobody-at-all/key") == Path("~nobody-at-all/key")
    assert expanded("~/key") == Path.home() / "key"
