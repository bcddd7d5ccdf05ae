"""Files below a folder that others filled: plain names, no links, regular files, size limits."""

from __future__ import annotations

import errno
import os
import subprocess
import threading
from pathlib import Path

import pytest

from weighbridge.common.paths import expanded, is_file
from weighbridge.common.safe_files import (
    FolderEntry,
    Refused,
    entries,
    make_folder,
    names,
    open_descriptor,
    open_lock,
    open_to_read,
    parts_of,
    read,
    remove,
    remove_tree,
    write,
)

WRONG_NAMES = (
    "", ".", "..", "../victim", "a/../../victim", "/etc/shadow", "a//b", "a/", "./a", "a\0b",
    "\ud800", "a/" * 3000 + "b",
)  # fmt: skip


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    found = tmp_path / "outside" / "secret"
    found.write_text("secret")
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder"


@pytest.mark.parametrize("name", WRONG_NAMES)
def test_every_function_refuses_a_name_that_is_no_plain_relative_path(
    folder: Path, name: str
) -> None:
    for ask in (
        lambda: parts_of(name),
        lambda: read(folder, name, largest_bytes=9),
        lambda: write(folder, name, b""),
        lambda: make_folder(folder, name),
        lambda: remove(folder, name),
        lambda: names(folder, name),
    ):
        with pytest.raises(Refused, match="not a plain path"):
            ask()
    assert list(folder.iterdir()) == []


def test_writing_a_file_creates_its_folders_and_reading_returns_the_content(
    folder: Path, tmp_path: Path
) -> None:
    """The folder itself may be a link."""
    (tmp_path / "mine").symlink_to(folder)
    write(tmp_path / "mine", "a/b/c", b"content")
    assert read(folder, "a/b/c", largest_bytes=7) == b"content"
    assert names(folder, "a/b") == ("c",)
    assert names(folder, "none") == ()
    remove(folder, "a/b/c")
    remove(folder, "a/b/c")
    assert names(folder, "a/b") == ()


def test_a_link_anywhere_in_a_path_is_neither_read_nor_written_through(
    folder: Path, outside: Path
) -> None:
    (folder / "file").symlink_to(outside)
    (folder / "inner").symlink_to(outside.parent)
    for name in ("file", "inner/secret"):
        with pytest.raises(Refused, match="is a link, which is not followed"):
            read(folder, name, largest_bytes=100)
        with pytest.raises(Refused, match="is a link"):
            open_descriptor(folder, name, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    for ask in (
        lambda: write(folder, "inner/new", b""),
        lambda: make_folder(folder, "inner/new"),
        lambda: names(folder, "inner"),
    ):
        with pytest.raises(Refused, match="inner"):
            ask()
    with pytest.raises(Refused):
        remove(folder, "inner/secret")
    (folder / ".file.part").symlink_to(outside)
    write(folder, "file", b"ours", mode=0o600)
    assert (folder / "file").stat().st_mode & 0o777 == 0o600
    assert (folder / "file").read_bytes() == b"ours"
    assert not (folder / "file").is_symlink()
    assert outside.read_text() == "secret"
    assert list(outside.parent.iterdir()) == [outside]


def test_anything_but_a_regular_file_is_refused_at_once_and_named(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "inner").mkdir()
    for name, words in (("pipe", "is a pipe"), ("inner", "is a folder")):
        with pytest.raises(Refused, match=words):
            read(folder, name, largest_bytes=100)
    with pytest.raises(Refused, match="is a pipe"):
        open_descriptor(folder, "pipe", os.O_RDWR)
    with pytest.raises(Refused, match="is a device"):
        read(Path("/dev"), "zero", largest_bytes=100)


def test_a_file_above_its_limit_is_refused_before_it_is_read(folder: Path) -> None:
    with (folder / "large").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(Refused, match="is larger than 1 KiB"):
        read(folder, "large", largest_bytes=1024)
    with pytest.raises(Refused, match="is larger than"):
        open_to_read(folder, "large", largest_bytes=1024)


def test_a_file_is_always_complete_while_two_threads_write_it_and_no_partial_file_is_left(
    folder: Path,
) -> None:
    contents = (b"a" * 100_000, b"b" * 100_000)
    write(folder, "file", contents[0])
    writers = [
        threading.Thread(target=lambda one=one: [write(folder, "file", one) for _ in range(8)])
        for one in contents
    ]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        assert read(folder, "file", largest_bytes=10**6) in contents
    for writer in writers:
        writer.join()
    assert list(folder.iterdir()) == [folder / "file"]


def test_entries_below_a_folder_are_listed_with_their_kinds(folder: Path, outside: Path) -> None:
    write(folder, "b/c", b"")
    write(folder, "a", b"")
    (folder / "b" / "link").symlink_to(outside)
    (folder / "linked").symlink_to(outside.parent)
    os.mkfifo(folder / "pipe")
    link = "a link, which is not followed"
    assert list(entries(folder)) == [
        FolderEntry(name="a"),
        FolderEntry(name="linked", otherwise=link),
        FolderEntry(name="pipe", otherwise="a pipe"),
        FolderEntry(name="b/c"),
        FolderEntry(name="b/link", otherwise=link),
    ]


def test_folders_are_listed_down_to_a_maximum_depth(folder: Path) -> None:
    at = os.open(folder, os.O_RDONLY)
    for _ in range(30):
        os.mkdir("d" * 200, dir_fd=at)
        inner = os.open("d" * 200, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = inner
    os.close(at)
    (entry,) = entries(folder)
    assert entry.otherwise == "nested too deeply to be read"


def test_a_path_may_be_any_text(tmp_path: Path) -> None:
    (tmp_path / "there").touch()
    assert is_file(tmp_path / "there")
    assert not any(map(is_file, (Path("a" * 5000), Path("a\0b"), tmp_path)))
    assert expanded("~nobody-at-all/key") == Path("~nobody-at-all/key")
    assert expanded("~/key") == Path.home() / "key"


def test_a_lock_file_is_its_users_alone_keeps_its_content_and_is_no_link(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    os.close(open_lock(lock))
    assert lock.stat().st_mode & 0o777 == 0o600
    lock.write_text("process 1")
    os.close(open_lock(lock))
    assert lock.read_text() == "process 1"
    (tmp_path / "link").symlink_to(lock)
    with pytest.raises(OSError, match="is a link"):
        open_lock(tmp_path / "link")


def test_a_folder_is_removed_however_deep_and_links_in_it_lead_nowhere(
    folder: Path, outside: Path
) -> None:
    at = os.open(folder, os.O_RDONLY)
    for number in range(3000):
        for name in ("d", f"beside {number % 7}"):
            os.mkdir(name, dir_fd=at)
        inner = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = inner
    os.symlink(outside.parent, "link", dir_fd=at)
    os.mkfifo("pipe", dir_fd=at)
    os.close(at)
    remove_tree(folder)
    assert not folder.exists()
    assert outside.read_text() == "secret"
    remove_tree(folder)


def test_a_link_in_place_of_a_folder_is_not_followed(folder: Path, outside: Path) -> None:
    (folder / "link").symlink_to(outside.parent)
    with pytest.raises(OSError, match="link"):
        remove_tree(folder / "link")
    assert outside.read_text() == "secret"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_what_is_mounted_below_a_folder_stays_and_all_else_is_removed(
    folder: Path, outside: Path
) -> None:
    for name in ("a/mounted", "z/also"):
        (folder / name).mkdir(parents=True)
    subprocess.run(["mount", "--bind", outside.parent, folder / "a/mounted"], check=True)
    try:
        with pytest.raises(OSError, match="busy"):
            remove_tree(folder)
        assert outside.read_text() == "secret"
        assert not (folder / "z").exists()
    finally:
        (mounted,) = (path for path in folder.rglob("mounted"))
        subprocess.run(["umount", mounted], check=True)
    remove_tree(folder)
    assert not folder.exists()


@pytest.mark.parametrize("failing", ["open", "fsync", "rename"])
def test_a_file_that_cannot_be_written_is_named_and_its_draft_is_not_left(
    folder: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    make_folder(folder, "a")
    real = getattr(os, failing)

    def full(path: object, *given: object, **more: object) -> object:
        if failing == "open" and not str(path).endswith(".part"):
            return real(path, *given, **more)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, failing, full)
    with pytest.raises(OSError, match="No space left") as error:
        write(folder, "a/b", b"data")
    monkeypatch.undo()
    assert error.value.filename == str(folder / "a/b")
    assert names(folder, "a") == ()
