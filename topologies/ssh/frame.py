"""Where the output of what was asked for begins: before it, a host's shell may print what its own
files have it say at a login.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final

import asyncssh

from weighbridge.common.quantities import show_bytes

_MARK: Final = "weighbridge-begins-here"
_LINE: Final = f"{_MARK}\n".encode()
MOST_STRAY_BYTES: Final = 2**20
"""Of what a shell may say before; what it says beyond is not kept."""
MOST_BYTES: Final = 256 * 2**20
"""What a command may print that is run to its end: figures and lists, never data."""
_SHOWN: Final = 300


class TooMuch(Exception):
    """A command prints without end."""


def framed(argv: Sequence[str]) -> str:
    """The command line that says where its output begins and is then replaced by the command, whose
    status and signals it has.
    """
    return f"echo {_MARK}; exec {shlex.join(argv)}"


def below(out: bytes) -> bytes | None:
    """What a command printed, without what its shell said before; None where the command never
    began.
    """
    _, begun, rest = out.partition(_LINE)
    return rest if begun else None


async def drain(reader: asyncssh.SSHReader[bytes], into: bytearray) -> None:
    """Read all that a command prints. Raises TooMuch."""
    while chunk := await reader.read(65536):
        into += chunk
        if len(into) > MOST_BYTES:
            raise TooMuch(f"prints more than {show_bytes(MOST_BYTES)} to what was asked")


async def skip(reader: asyncssh.SSHReader[bytes]) -> tuple[bytes, bool]:
    """Read up to where the output begins: what of it was read too, and True; else what was said at
    all, and False.
    """
    said = b""
    while chunk := await reader.read(65536):
        # The mark may have come in two pieces.
        said = said[-MOST_STRAY_BYTES:] + chunk
        rest = below(said)
        if rest is not None:
            return rest, True
    return said, False


def stray(said: bytes) -> str:
    """What a shell said instead of what it was asked for, in a sentence."""
    words = " ".join(said.decode(errors="replace").split())[:_SHOWN]
    return (
        f"its shell did not do what it was asked to, and said {words!r}"
        if words
        else "its shell did not do what it was asked to"
    )
