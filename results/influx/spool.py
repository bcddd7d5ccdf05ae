"""The spool: lines on their way to an InfluxDB, kept in the run folder from when they are made until the server has them.

    RUN/influx.spool     what the server does not have yet, in order, as line protocol; gone when it has all
    RUN/influx.refused   lines that it would not have, each batch below a comment with what it said

Every line is on the disk before it is sent, so that a kill at any moment loses none: what a killed run leaves is sent again by
who opens the spool next, and the server keeps one of two points that are the same. A torn last line is cut off: it was never
acknowledged, and the steps themselves, of which all lines are made, are in `steps.jsonl`.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from weighbridge.common import inside
from weighbridge.common.locks import open_lock
from weighbridge.results.influx.server import AS_THEY_ARE, BATCH
from weighbridge.results.record.store import StoreError, write_whole

SPOOL: Final = "influx.spool"
REFUSED: Final = "influx.refused"


class Spool:
    """Lines in order, each there once. For one thread of one process: a second one is an error. Any method may raise StoreError."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / SPOOL
        self.refused = folder / REFUSED
        try:
            self._file = os.fdopen(open_lock(self.path, os.O_APPEND), "a+b", buffering=0)
            try:
                data = self._whole()
            except OSError:
                self._file.close()
                raise
        except OSError as error:
            raise StoreError(self.path, error) from error
        self._at = 0
        self._next = 0
        self.waiting = data.count(b"\n")
        """Lines that the server does not have."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def append(self, lines: Sequence[str]) -> None:
        """Put lines behind all others; they are on the disk when this returns, or none of them is there."""
        if not lines:
            return
        data = "".join(f"{line}\n" for line in lines).encode()
        try:
            before = os.fstat(self._file.fileno()).st_size
            try:
                if self._file.write(data) != len(data):
                    raise OSError("was not written as a whole: is its disk full?")  # noqa: TRY301 - cleaned up as any other
                os.fsync(self._file.fileno())
            except OSError:
                self._file.truncate(before)
                raise
        except OSError as error:
            raise StoreError(self.path, error) from error
        self.waiting += len(lines)

    def head(self) -> list[str]:
        """The first lines that wait, at most BATCH of them; the same again until `sent` or `set_aside`."""
        try:
            with os.fdopen(inside.opened(self.path.parent, SPOOL, os.O_RDONLY), "rb") as file:
                file.seek(self._at)
                lines = list(islice(file, BATCH))
        except OSError as error:
            raise StoreError(self.path, error) from error
        self._next = self._at + sum(map(len, lines))
        return [line.decode(errors=AS_THEY_ARE).removesuffix("\n") for line in lines]

    def sent(self, count: int) -> None:
        """The server has the `count` lines that `head` gave."""
        self.waiting -= count
        self._at = self._next
        if not self.waiting:
            self._empty()

    def set_aside(self, lines: Sequence[str], why: str) -> None:
        """The server will not have the lines that `head` gave: keep them with its reason, out of the way of the others."""
        data = f"# {' '.join(why.split())}\n" + "".join(f"{line}\n" for line in lines)
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            with os.fdopen(inside.opened(self.path.parent, REFUSED, flags), "ab") as file:
                file.write(data.encode(errors=AS_THEY_ARE))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise StoreError(self.refused, error) from error
        self.sent(len(lines))

    def drop(self) -> None:
        """Let go of what waits: its lines will be made again."""
        self.waiting = 0
        self._empty()

    def close(self) -> None:
        """Leave on the disk what waits, and nothing where nothing does."""
        if self._file.closed:
            return
        try:
            self._file.seek(self._at)
            rest = self._file.read()
        except OSError as error:
            raise StoreError(self.path, error) from error
        finally:
            self._file.close()
        if rest:
            write_whole(self.path, rest)
            self.path.chmod(0o600)  # as a file that is locked has to be
        else:
            self.path.unlink(missing_ok=True)

    def _whole(self) -> bytes:
        """All lines that are there, those that are torn cut off."""
        fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._file.seek(0)
        data = self._file.read()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            self._file.truncate(whole)
        return data[:whole]

    def _empty(self) -> None:
        try:
            self._file.truncate(0)
        except OSError as error:
            raise StoreError(self.path, error) from error
        self._at = self._next = 0


def clear(folder: Path) -> None:
    """Take away what a run left, since the server has all of it; not while a run writes to it. Raises StoreError."""
    path = folder / SPOOL
    try:
        if path.exists():
            with os.fdopen(inside.opened(folder, SPOOL, os.O_RDONLY), "rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
        (folder / REFUSED).unlink(missing_ok=True)
    except BlockingIOError:
        return
    except OSError as error:
        raise StoreError(path, error) from error
