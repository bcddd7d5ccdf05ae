"""A program that runs on a host with its stdin and stdout as pipes here, whatever carries them
there: a process or a connection.
"""

from __future__ import annotations

from types import TracebackType
from typing import IO, Protocol, Self


class Piped(Protocol):
    """What of `subprocess.Popen` is asked of such a program.

    Its pipes have descriptors of their own, which can be waited for.
    """

    @property
    def stdin(self) -> IO[bytes] | None:
        """Where it reads from; closing it is how most of our programs are told to end."""

    @property
    def stdout(self) -> IO[bytes] | None:
        """What it prints."""

    @property
    def returncode(self) -> int | None:
        """Its exit status, negative or 128 + N when signal N ended it; None while it has not been
        seen to end.

        255 is, as ssh(1) has it, also that of one whose host has stopped answering: then the last
        line of its stderr says so.
        """

    def poll(self) -> int | None:
        """Its exit status when it has ended; None while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status when it ends.

        Raises subprocess.TimeoutExpired after `timeout` seconds.
        """

    def send_signal(self, sig: int) -> None:
        """Signal it; one that has ended is no error."""

    def kill(self) -> None:
        """End it at once, with all that it started."""

    def __enter__(self) -> Self:
        """Itself."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close its pipes and wait for its end."""
