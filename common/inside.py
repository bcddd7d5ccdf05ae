"""Files below a folder that others filled: a host that is measured, or whoever sent a run folder.

A name is a plain path relative to the folder. On the way to it no link is followed, what is opened
is a regular file, and what is read has a bound. Whatever is otherwise is an OSError whose
`strerror` is a sentence: callers make the error of their room of it. The folder itself is as its
user names it: links to it are the user's own.
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
"""Characters of a path, as Linux has it."""

DRAFT: Final = ".part"
"""How the name of a file ends while it is written, which a process that is killed leaves."""

# A pipe is opened without waiting for who writes to it, and no terminal becomes this program's.
_CAREFULLY: Final = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | _CAREFULLY
_NEITHER: Final = (errno.ELOOP, errno.ENOTDIR, errno.ENXIO, errno.ENODEV)
"""What the kernel says of what is opened as a file or a folder and is neither."""
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
    """What stands below a folder: its path in it, and what it is where it is no regular file (""
    where it is one).
    """

    name: str
    otherwise: str = ""


def parts_of(name: str) -> tuple[str, ...]:
    """The parts of a plain path that is relative and leads nowhere but down. Raises Refused."""
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
        raise Refused(errno.EINVAL, "is no plain path below a folder", name)
    return parts


def read(folder: Path, name: str, *, largest_bytes: int) -> bytes:
    """All of a file. Raises OSError."""
    with reading(folder, name, largest_bytes=largest_bytes) as file:
        data = file.read(largest_bytes + 1)
    if len(data) > largest_bytes:  # it has grown since it was opened
        raise _too_large(folder / name, largest_bytes)
    return data


def reading(folder: Path, name: str, *, largest_bytes: int) -> BinaryIO:
    """A file to be read piece by piece; one that is larger than this now is refused.

    Raises OSError.
    """
    descriptor = opened(folder, name, os.O_RDONLY)
    if os.fstat(descriptor).st_size > largest_bytes:
        os.close(descriptor)
        raise _too_large(folder / name, largest_bytes)
    return os.fdopen(descriptor, "rb")


def opened(
    folder: Path, name: str, flags: int, *, mode: int = 0o644, make_folders: bool = False
) -> int:
    """The descriptor of a regular file, by flags of os.open; O_CREAT makes it where it is missing.

    Raises OSError.
    """
    *above, last = parts_of(name)
    with _below(folder, above, make=make_folders) as parent:
        try:
            # Emptied only when it is known to be a regular file.
            descriptor = os.open(last, (flags & ~os.O_TRUNC) | _CAREFULLY, mode, dir_fd=parent)
        except OSError as error:
            raise _said(error, parent, last, folder / name) from None
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
    """Write a file so that the old or the new one is there, never half of one; folders are made on
    the way. Raises OSError.

    Whatever had its name, a link as well, gives way to it.
    """
    *above, last = parts_of(name)
    with _below(folder, above, make=True) as parent:
        # Nobody has one of this name: two processes may write the same file.
        part = f".{secrets.token_hex(8)}{DRAFT}"
        descriptor = os.open(
            part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _CAREFULLY, mode, dir_fd=parent
        )
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.rename(part, last, src_dir_fd=parent, dst_dir_fd=parent)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(part, dir_fd=parent)
            raise


def make_folder(folder: Path, name: str) -> Path:
    """A folder and those between, made where they are missing.

    Raises OSError, where one of them is a link as well.
    """
    with _below(folder, parts_of(name), make=True):
        return folder / name


def remove(folder: Path, name: str) -> None:
    """Remove a file, or a link itself; where there is none it is no error. Raises OSError."""
    *above, last = parts_of(name)
    with suppress(FileNotFoundError), _below(folder, above) as parent:
        os.unlink(last, dir_fd=parent)


def is_there(folder: Path, name: str) -> bool:
    """Whether anything has this name, a link as well. Raises OSError where a link is on the way."""
    *above, last = parts_of(name)
    try:
        with _below(folder, above) as parent:
            os.stat(last, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def names(folder: Path, name: str) -> tuple[str, ...]:
    """What is in a folder, in order of names; nothing where there is none. Raises OSError."""
    try:
        with _below(folder, parts_of(name)) as inner:
            return tuple(sorted(os.listdir(inner)))  # noqa: PTH208 - a descriptor, not a path
    except FileNotFoundError:
        return ()


def entries(folder: Path) -> Iterator[FolderEntry]:
    """All that is below a folder but folders, in order of names within each. Raises OSError."""
    waiting: list[str] = [""]
    while waiting:
        at = waiting.pop()
        # Whoever fills the folder may still do so: what goes while it is looked at is not there.
        with suppress(FileNotFoundError), _below(folder, parts_of(at) if at else ()) as inner:
            inside = []
            for one in sorted(os.listdir(inner)):  # noqa: PTH208 - as above
                with suppress(FileNotFoundError):
                    mode = os.stat(one, dir_fd=inner, follow_symlinks=False).st_mode
                    name = f"{at}/{one}" if at else one
                    if not stat.S_ISDIR(mode):
                        yield FolderEntry(name=name, otherwise=_otherwise(mode))
                    elif len(name) > LONGEST_NAME // 2:
                        yield FolderEntry(name=name, otherwise="too far down to be looked at")
                    else:
                        inside.append(name)
            waiting += reversed(inside)


@contextmanager
def _below(folder: Path, parts: Sequence[str], *, make: bool = False) -> Iterator[int]:
    """The descriptor of a folder, reached part by part: no part can be changed into a link on the
    way.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for number, part in enumerate(parts):
            if make:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=descriptor)
            try:
                inner = os.open(part, _FOLDER, dir_fd=descriptor)
            except OSError as error:
                raise _said(
                    error, descriptor, part, folder.joinpath(*parts[: number + 1])
                ) from None
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def _said(error: OSError, parent: int, last: str, path: Path) -> OSError:
    """The same error, with the whole path; of what is neither file nor folder, one that says what
    it is.
    """
    if error.errno in _NEITHER:
        with suppress(OSError):
            otherwise = _otherwise(os.stat(last, dir_fd=parent, follow_symlinks=False).st_mode)
            if otherwise:
                return Refused(error.errno, f"is {otherwise}", str(path))
    return OSError(error.errno, error.strerror, str(path))


def _otherwise(mode: int) -> str:
    return next((words for is_one, words in _KINDS if is_one(mode)), "")


def _too_large(path: Path, largest_bytes: int) -> Refused:
    from weighbridge.common.quantities import show_bytes  # noqa: PLC0415 - small programs on hosts read files too, and start without pydantic

    return Refused(
        errno.EFBIG,
        f"is larger than {show_bytes(largest_bytes)}, as no such file of ours is",
        str(path),
    )
