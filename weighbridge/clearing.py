"""Clearing: what a run made on a gateway that outlives it goes with the run, however the run ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ground.errors import WeighbridgeError
from topologies.deployment import Deployment


@contextmanager
def clearing(deployment: Deployment, buckets: Sequence[str], tell: Callable[[str], None]) -> Iterator[None]:
    """Have `buckets` deleted when the block ends, on every path; `tell` hears what was deleted, or what is left.

    Raises TargetError when something is left and nothing else went wrong; else what went wrong stays the error.
    """
    try:
        yield
        _clear(deployment, buckets, tell)
    except BaseException:
        # Also when clearing itself was interrupted: signals after the first are ignored, so that this one comes to its end.
        try:
            _clear(deployment, buckets, tell)
        except WeighbridgeError as left:
            tell(str(left))
        raise


def _clear(deployment: Deployment, buckets: Sequence[str], tell: Callable[[str], None]) -> None:
    for text in deployment.standing.clear(buckets):
        tell(text)
