"""Separating the output of a command from what a host's login shell prints before it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final

import asyncssh

from weighbridge.common.quantities import show_bytes

_MARK: Final = "weighbridge-begins-here"
_LINE: Final = f"{_MARK}\n".encode()
MOST_STRAY_BYTES: Final = 2**20
"""How much of the login shell's output is kept."""
MOST_BYTES: Final = 256 * 2**20
"""The limit for the output of a command: figures and lists, never data."""
_SHOWN: Final = 300


class TooMuchOutput(Exception):
    """A command prints more than the limit."""


def framed(argv: Sequence[str]) -> str:
    """A command line that marks where its output begins, then becomes the command."""
    return f"echo {_MARK}; exec {shlex.join(argv)}"


def output_of(out: bytes) -> bytes | None:
    """A command's own output, without the login shell's; None: the command never began."""
    _, mark, output = out.partition(_LINE)
    return output if mark else None


async def drain(reader: asyncssh.SSHReader[bytes], into: bytearray) -> None:
    """Read all output of a command. Raises TooMuchOutput."""
    while chunk := await reader.read(65536):
        into += chunk
        if len(into) > MOST_BYTES:
            raise TooMuchOutput(f"prints more than {show_bytes(MOST_BYTES)}")


async def skip_login(reader: asyncssh.SSHReader[bytes]) -> tuple[bytes, bool]:
    """Read up to the mark; returns what came after it and True, or everything and False."""
    before = b""
    while chunk := await reader.read(65536):
        # The mark may have come in two pieces.
        before = before[-MOST_STRAY_BYTES:] + chunk
        output = output_of(before)
        if output is not None:
            return output, True
    return before, False


def no_output(printed: bytes) -> str:
    """A message about what a login shell printed instead of running the command."""
    words = " ".join(printed.decode(errors="replace").split())[:_SHOWN]
    return "its shell did not run the command" + (f", and printed {words!r}" if words else "")
