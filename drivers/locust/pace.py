"""How many workers prepare or delete objects at once."""

from __future__ import annotations

from typing import Final

BATCH: Final = 2000
"""Objects that are written, or deleted, before it is decided whether more workers would help."""
MOST_PARALLEL: Final = 64
WORTHWHILE: Final = 1.1
"""Twice the workers must be so many times as fast to be kept."""


class Pace:
    """How many workers write or delete at once: twice as many after each batch that was faster."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._before, self._best_per_s = workers, 0.0
        self._grows = workers < MOST_PARALLEL

    def took(self, objects: int, seconds: float) -> None:
        """A batch is done: decide about the next one."""
        if not self._grows or objects < BATCH:
            return
        per_s = objects / max(seconds, 1e-9)
        if per_s < WORTHWHILE * self._best_per_s:
            self.workers, self._grows = self._before, False
            return
        self._best_per_s, self._before = per_s, self.workers
        self.workers = min(2 * self.workers, MOST_PARALLEL)
        self._grows = self.workers > self._before
