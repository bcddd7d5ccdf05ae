"""What decides how a running gateway meets the death of one of its parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Standing:
    """What a store says of itself. `words` change when it notices something."""

    whole: bool
    """Whether it has all of its parts, and every object all of its copies."""
    words: str


Ask = Callable[[], Standing]
"""Asks a store; raises CommandFailed or ServiceFailed if it does not answer."""


@dataclass(frozen=True)
class Tolerance:
    """How a running gateway meets faults."""

    settings: Mapping[str, str] = field(default_factory=dict)
    """By name as its users know them, as the daemons say themselves where they can be asked."""
    asking: Callable[[], AbstractContextManager[Ask]] | None = None
    """Opens a session in which it is asked; None: it knows nothing of itself as a whole."""
