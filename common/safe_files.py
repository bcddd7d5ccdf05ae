"""Files below a folder that others filled: a measured host, or the sender of a run folder.

A name is a plain path relative to the folder. No link on the way to it is followed, only regular
files are opened, and what is read has a limit. Anything else raises an OSError whose `strerror` is
a sentence: callers turn it into their room's error. The folder itself comes from the user: links to
it are the user's own.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

LONGEST_NAME: Final = 4096
"""Characters of a path; Linux allows no more."""

DRAFT: Final = ".part"
"""Suffix of a file while it is written; a killed process leaves it."""

# Open pipes without waiting for a writer, and never acquire a controlling terminal.
_CAREFULLY: Final = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | _CAREFULLY
_NEITHER: Final = (errno.ELOOP, errno.ENOTDIR, errno.ENXIO, errno.ENODEV)
"""Errors of the kernel for what is neither a file nor a folder."""
_KINDS: Final = (
    (stat.S_ISLNK, "a link, which is not followed"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class Refused(OSError):
    """What is there is left alone; `strerror` says why, and `filename` where it is."""


@dataclass(frozen=True)
class FolderEntry:
    """An entry below a folder: its path in it, and what it is ("" for a regular file)."""

    name: str
    otherwise: str = ""


def parts_of(name: str) -> tuple[str, ...]:
    """The parts of a plain relative path that leads nowhere but down. Raises Refused."""
    parts = tuple(name.split("/"))
    try:
        os.fsencode(name)
    except UnicodeEncodeError:
        parts = ()
    if (
        not parts
        or len(name) > LONGEST_NAME
        or "\0" in name
        or any(part in ("", ".", "..") for part in parts)
    ):
        raise Refused(errno.EINVAL, "is not a plain path below a folder", name)
    return parts


def read(folder: Path, name: str, *, largest_bytes: int) -> bytes:
    """The content of a file. Raises OSError."""
    with open_to_read(folder, name, largest_bytes=largest_bytes) as file:
        data = file.read(largest_bytes + 1)
    if len(data) > largest_bytes:  # it has grown since it was opened
        raise _too_large(folder / name, largest_bytes)
    return data


def read_given(path: Path, *, largest_bytes: int) -> bytes:
    """The content of a file that the user named, maybe by a link. Raises OSError, also where
    opening it would wait, as for a pipe.
    """
    there = path.resolve()
    return read(there.parent, there.name, largest_bytes=largest_bytes)


def open_to_read(folder: Path, name: str, *, largest_bytes: int) -> BinaryIO:
    """A file to read piece by piece, refused if it is too large now. Raises OSError."""
    descriptor = open_descriptor(folder, name, os.O_RDONLY)
    if os.fstat(descriptor).st_size > largest_bytes:
        os.close(descriptor)
        raise _too_large(folder / name, largest_bytes)
    return os.fdopen(descriptor, "rb")


def open_descriptor(
    folder: Path, name: str, flags: int, *, mode: int = 0o644, make_folders: bool = False
) -> int:
    """The descriptor of a regular file, opened or created by os.open's flags. Raises OSError."""
    *above, last = parts_of(name)
    with _below(folder, above, make=make_folders) as parent:
        try:
            # It is truncated below, once it is known to be a regular file.
            descriptor = os.open(last, (flags & ~os.O_TRUNC) | _CAREFULLY, mode, dir_fd=parent)
        except OSError as error:
            raise _described(error, parent, last, folder / name) from None
    try:
        otherwise = _otherwise(os.fstat(descriptor).st_mode)
        if otherwise:
            raise Refused(errno.EINVAL, f"is {otherwise}, not a regular file", str(folder / name))
        if flags & os.O_TRUNC:
            os.ftruncate(descriptor, 0)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def write(folder: Path, name: str, data: bytes, *, mode: int = 0o644) -> None:
    """Write a file atomically, with its parents, in place of any file or link. Raises OSError."""
    *above, last = parts_of(name)
    with _below(folder, above, make=True) as parent:
        # A random name: two processes may write the same file.
        part = f".{secrets.token_hex(8)}{DRAFT}"
        try:
            descriptor = os.open(
                part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _CAREFULLY, mode, dir_fd=parent
            )
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.rename(part, last, src_dir_fd=parent, dst_dir_fd=parent)
        except BaseException as error:
            with suppress(OSError):
                os.unlink(part, dir_fd=parent)
            if isinstance(error, OSError):  # of the draft, or of no name at all
                raise OSError(error.errno, error.strerror, str(folder / name)) from None
            raise


def make_folder(folder: Path, name: str) -> Path:
    """Create a folder and its parents where missing. Raises OSError, also where one is a link."""
    with _below(folder, parts_of(name), make=True):
        return folder / name


def remove(folder: Path, name: str) -> None:
    """Remove a file, or a link itself; a missing one is no error. Raises OSError."""
    *above, last = parts_of(name)
    with suppress(FileNotFoundError), _below(folder, above) as parent:
        os.unlink(last, dir_fd=parent)


def remove_tree(folder: Path) -> None:
    """Remove a folder with all below it; a missing one is no error.

    A folder below that has something in it moves up into `folder` first: no depth needs recursion,
    long paths or many descriptors. What is mounted below cannot move, and stays. Removes all that
    can be removed, then raises the first OSError.
    """
    try:
        top = os.open(folder, _FOLDER)
    except FileNotFoundError:
        return
    faults: list[OSError] = []
    waiting = ["."]
    try:
        while waiting:
            at = waiting.pop()
            inner = os.open(at, _FOLDER, dir_fd=top)
            try:
                for name in os.listdir(inner):  # noqa: PTH208 - a descriptor, not a path
                    try:
                        waiting += _remove_or_move(inner, name, top)
                    except FileNotFoundError:
                        continue  # another process removes it as well
                    except OSError as error:
                        faults.append(OSError(error.errno, error.strerror, str(folder / name)))
            finally:
                os.close(inner)
            if at != "." and not faults:
                os.rmdir(at, dir_fd=top)
    finally:
        os.close(top)
    if faults:
        raise faults[0]
    folder.rmdir()


def _remove_or_move(parent: int, name: str, top: int) -> tuple[str, ...]:
    try:
        os.unlink(name, dir_fd=parent)
    except IsADirectoryError:
        try:
            os.rmdir(name, dir_fd=parent)
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:
                raise
            moved = secrets.token_hex(8)
            os.rename(name, moved, src_dir_fd=parent, dst_dir_fd=top)
            return (moved,)
    return ()


def names(folder: Path, name: str) -> tuple[str, ...]:
    """The sorted names in a folder; empty if there is none. Raises OSError."""
    try:
        with _below(folder, parts_of(name)) as inner:
            return tuple(sorted(os.listdir(inner)))  # noqa: PTH208 - a descriptor, not a path
    except FileNotFoundError:
        return ()


def entries(folder: Path) -> Iterator[FolderEntry]:
    """Everything below a folder but folders, sorted by name within each. Raises OSError."""
    waiting: list[str] = [""]
    while waiting:
        at = waiting.pop()
        # The folder may still change: skip what disappears while it is read.
        with suppress(FileNotFoundError), _below(folder, parts_of(at) if at else ()) as inner:
            inside = []
            for one in sorted(os.listdir(inner)):  # noqa: PTH208 - as above
                with suppress(FileNotFoundError):
                    mode = os.stat(one, dir_fd=inner, follow_symlinks=False).st_mode
                    name = f"{at}/{one}" if at else one
                    if not stat.S_ISDIR(mode):
                        yield FolderEntry(name=name, otherwise=_otherwise(mode))
                    elif len(name) > LONGEST_NAME // 2:
                        yield FolderEntry(name=name, otherwise="nested too deeply to be read")
                    else:
                        inside.append(name)
            waiting += reversed(inside)


@contextmanager
def _below(folder: Path, parts: Sequence[str], *, make: bool = False) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for number, part in enumerate(parts):
            if make:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=descriptor)
            try:
                inner = os.open(part, _FOLDER, dir_fd=descriptor)
            except OSError as error:
                raise _described(
                    error, descriptor, part, folder.joinpath(*parts[: number + 1])
                ) from None
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def _described(error: OSError, parent: int, last: str, path: Path) -> OSError:
    if error.errno in _NEITHER:
        with suppress(OSError):
            otherwise = _otherwise(os.stat(last, dir_fd=parent, follow_symlinks=False).st_mode)
            if otherwise:
                return Refused(error.errno, f"is {otherwise}", str(path))
    return OSError(error.errno, error.strerror, str(path))


def _otherwise(mode: int) -> str:
    return next((words for is_one, words in _KINDS if is_one(mode)), "")


def _too_large(path: Path, largest_bytes: int) -> Refused:
    from weighbridge.common.quantities import show_bytes  # noqa: PLC0415 - small programs on hosts read files without pydantic

    return Refused(
        errno.EFBIG,
        f"is larger than {show_bytes(largest_bytes)}, the limit for such a file",
        str(path),
    )


# Lock files: whoever can open one, even read-only, can lock it and block everybody else.


def open_lock(path: Path, flags: int = 0) -> int:
    """The descriptor of a lock file, created if missing, for this user only. Raises OSError."""
    return open_descriptor(path.parent, path.name, os.O_RDWR | os.O_CREAT | flags, mode=0o600)
