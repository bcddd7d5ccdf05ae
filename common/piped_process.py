"""A program on a host whose stdin and stdout are pipes here, over a process or a connection."""

from __future__ import annotations

from types import TracebackType
from typing import IO, Protocol, Self


class PipedProcess(Protocol):
    """The part of `subprocess.Popen` that such a program offers.

    Its pipes have file descriptors that can be polled.
    """

    @property
    def stdin(self) -> IO[bytes] | None:
        """Its input; closing it tells most of our programs to end."""

    @property
    def stdout(self) -> IO[bytes] | None:
        """What it prints."""

    @property
    def returncode(self) -> int | None:
        """Its exit status, negative or 128 + N after signal N; None until its end is known.

        255 can also mean, as in ssh(1), that the host stopped answering: the last line of stderr
        says so.
        """

    def poll(self) -> int | None:
        """Its exit status once it has ended; None while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its exit status.

        Raises subprocess.TimeoutExpired after `timeout` seconds.
        """

    def send_signal(self, sig: int) -> None:
        """Send a signal; a program that has ended is no error."""

    def kill(self) -> None:
        """Kill it and everything that it started."""

    def __enter__(self) -> Self:
        """Itself."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close its pipes and wait for its end."""
