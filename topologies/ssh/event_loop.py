"""The event loop of all connections of a deployment, in its own thread, and the pipes between a
program on a real host and descriptors of this process.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import IO, Any, TypeVar

import asyncssh

from weighbridge.topologies.ssh import frame

Result = TypeVar("Result")


class EventLoop:
    """A loop in a daemon thread: a connection that hangs cannot keep the command from ending."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="ssh", daemon=True)
        self._thread.start()

    def do(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine in the loop and wait for it; raises what it raises.

        An interrupt cancels it.
        """
        future = self.submit(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def submit(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        """Run a coroutine in the loop without waiting for it."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    @property
    def closed(self) -> bool:
        """Whether it has ended."""
        return self.loop.is_closed()

    def close(self) -> None:
        """End the loop and its thread. May be called more than once."""
        if self.closed:
            return
        self.do(_end_others())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


async def _end_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    for _ in range(3):  # the loop closes aborted connections in its next rounds
        await asyncio.sleep(0)


class Pipes:
    """Connects a remote program with descriptors of this process."""

    def __init__(self, stdin: int, stdout: int, stderr: IO[bytes]) -> None:
        self._stdin = os.fdopen(stdin, "rb", buffering=0)
        self._stdout = os.fdopen(stdout, "wb", buffering=0)
        self._stderr = stderr

    async def feed(self, process: asyncssh.SSHClientProcess[bytes]) -> None:
        """Pass on what is written here, and the end of it, to the program's stdin."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), self._stdin
        )
        try:
            # If it has ended or its host is lost, its status says so.
            with contextlib.suppress(BrokenPipeError, ConnectionError):
                while chunk := await reader.read(65536):
                    process.stdin.write(chunk)
                    await process.stdin.drain()
                process.stdin.write_eof()
        finally:
            transport.close()

    async def drain(self, process: asyncssh.SSHClientProcess[bytes]) -> None:
        """Pass on the program's stdout; without a reader here it is discarded."""
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.connect_write_pipe(
            asyncio.streams.FlowControlMixin, self._stdout
        )
        # Wait until the pipe has taken each piece: a rest in the transport would be lost on close.
        transport.set_write_buffer_limits(0)
        writer = asyncio.StreamWriter(transport, protocol, None, loop)
        try:
            chunk, found = await frame.skip_login(process.stdout)
            if not found:
                if chunk:  # else its host was lost first, as its status says
                    self._stderr.write(f"{frame.no_output(chunk)}\n".encode())
                return
            while chunk or (chunk := await process.stdout.read(65536)):
                if not transport.is_closing():
                    with contextlib.suppress(BrokenPipeError, ConnectionError):
                        writer.write(chunk)
                        await writer.drain()
                chunk = b""
        finally:
            transport.close()

    async def log_stderr(self, process: asyncssh.SSHClientProcess[bytes]) -> None:
        """Write the program's stderr to the file."""
        while chunk := await process.stderr.read(65536):
            self._stderr.write(chunk)
            self._stderr.flush()

    def close(self) -> None:
        """Close all descriptors, also those that a transport has closed already."""
        for file in (self._stdin, self._stdout, self._stderr):
            file.close()
