"""The token that a run and the clients that join it share, and the keys of CurveZMQ made from it.

Without the token nobody completes ZeroMQ's handshake (RFC 26), on either side: the server's public
key follows from the token and is never sent. Who has it can join a run, and is given its target's
keys; and can be a run for clients that join it.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from weighbridge.common import safe_files
from weighbridge.common.errors import UsageError

SHORTEST: Final = 32
"""Characters: a shorter token could be guessed by whoever recorded a handshake."""
LARGEST_BYTES: Final = 4096
MAKE_ONE: Final = "To make one: (umask 077; openssl rand -hex 32 >FILE)"


@dataclass(frozen=True)
class ServerKeys:
    """The key pair of a run's port; clients need the public one."""

    public: bytes
    secret: bytes = field(repr=False)


@dataclass(frozen=True)
class Token:
    """What a token file holds."""

    text: str = field(repr=False)

    @property
    def keys(self) -> ServerKeys:
        """The keys of the run's port."""
        # Each verb that runs something imports this module, and most runs no ZeroMQ.
        import zmq  # noqa: PLC0415
        from zmq.utils import z85  # noqa: PLC0415

        secret = z85.encode(hashlib.sha256(b"weighbridge join\0" + self.text.encode()).digest())
        return ServerKeys(zmq.curve_public(secret), secret)


def read_token(path: Path) -> Token:
    """The token of a file that only its owner can read. Raises UsageError."""
    try:
        # Of a pipe nobody writes to, opening would not return.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            found = os.fstat(file.fileno())
            plain = stat.S_ISREG(found.st_mode) and found.st_size <= LARGEST_BYTES
            text = file.read(LARGEST_BYTES).decode("ascii").strip() if plain else ""
    except OSError as error:
        raise UsageError(f"the token {path}: {error.strerror}", advice=MAKE_ONE) from None
    except UnicodeDecodeError:
        raise UsageError(f"the token {path} is not a line of ASCII", advice=MAKE_ONE) from None
    if not plain:
        raise UsageError(
            f"the token {path} is not a file of up to {LARGEST_BYTES} bytes", advice=MAKE_ONE
        )
    if found.st_uid not in (0, os.geteuid()):
        raise UsageError(f"{path} belongs to another user, who knows the token", advice=MAKE_ONE)
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise UsageError(f"{path} can be read by others", advice=f"chmod 600 {path}")
    if len(text) < SHORTEST or not text.isprintable() or " " in text:
        raise UsageError(
            f"the token {path} must be one line of {SHORTEST} characters or more, without spaces",
            advice=MAKE_ONE,
        )
    return Token(text)


def read_or_make_token(path: Path) -> Token:
    """The token of a file, which is made with a new one if it is missing. Raises UsageError."""
    if not path.exists() and not path.is_symlink():
        try:
            safe_files.write(
                path.parent, path.name, secrets.token_hex(32).encode() + b"\n", mode=0o600
            )
        except OSError as error:
            raise UsageError(f"the token {path} cannot be written: {error.strerror}") from None
    return read_token(path)
