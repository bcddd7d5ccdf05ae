"""The event loop that all connections of a deployment live in: a thread of its own, asked from any other."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

Result = TypeVar("Result")


class EventLoop:
    """A loop in a daemon thread: a connection that hangs must not keep the command from ending."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="ssh", daemon=True)
        self._thread.start()

    def do(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Have it done in the loop and wait for it; raises what it raises. Interrupted, it is given up there too."""
        future = self.submit(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def submit(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        """Have it done in the loop without waiting for it."""
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
    for _ in range(3):  # what was aborted is closed by the loop in its next rounds
        await asyncio.sleep(0)
