"""Which caches are dropped, and when."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from weighbridge.common.quantities import Seconds, parse_seconds
from weighbridge.common.record import Record


class Every(Record):
    """Caches dropped periodically while a step runs; the 2014 study did so every minute."""

    every: Annotated[Seconds, Field(ge=1)]
    kernel: bool = False
    """Whether only kernels drop theirs, as in that study, and daemons keep what they cache."""


def every(value: object) -> object:
    """The fields of Every for `every 60s` or `kernel every 60s`; anything else unchanged.

    Raises ValueError if the time is invalid.
    """
    if isinstance(value, str) and value.startswith(("every ", "kernel every ")):
        kernel, _, time = value.partition("every ")
        return {"every": parse_seconds(time.strip()), "kernel": bool(kernel)}
    return value


CachePolicy = Literal["none", "before-step", "kernel"] | Every
"""Which caches are dropped, and when: never; before each step those of daemons and kernels, or
`kernel`: only those of kernels; or Every so often while a step runs.
"""


def kernel_alone(cache: CachePolicy) -> bool:
    """Whether daemons keep what they cache while kernels drop theirs."""
    return cache.kernel if isinstance(cache, Every) else cache == "kernel"


def cache_words(cache: CachePolicy) -> str:
    """The policy in words, such as `dropped before every step`."""
    if isinstance(cache, Every):
        whose = ", only of kernels" if cache.kernel else ""
        return f"dropped every {cache.every:g} s while a step runs{whose}"
    return {
        "none": "never dropped",
        "before-step": "dropped before every step, of kernels and daemons",
        "kernel": "dropped before every step, only of kernels",
    }[cache]
