"""A parameter of a tuning: one setting, its possible values, its effect and its scope."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, field_validator, model_validator

from weighbridge.common.quantities import parse_bytes, show_bytes
from weighbridge.common.record import Record
from weighbridge.common.scope import Scope

_SMALLEST_SIZE = 64 * 2**10


def _plain(value: object) -> object:
    if isinstance(value, str | int | float):
        return value
    found = "nothing" if value is None else repr(value)
    raise ValueError(f"must be a plain value (text, a number, true or false), not {found}")


Setting = Annotated[str | int | float | bool, BeforeValidator(_plain)]
"""A value as in a layout's file: `16MiB`, `512`, `true`, `leastconn`."""
Key = Annotated[str, Field(pattern=r"^[a-z][A-Za-z0-9_]*(\.[A-Za-z0-9_:-]+)*$")]
"""Dotted, below `settings` of a layout: `radosgw.threads`, `options.client.debug_rgw`."""


class Level(Record):
    """One value to try, and what must be set with it (Apache: a server limit for its threads)."""

    value: Setting
    also: dict[Key, Setting] = Field(default_factory=dict)


def _tag(value: Any) -> str:
    """Which of two types a value in a file is meant to be, so that faults are about that one."""
    return "mapping" if isinstance(value, dict | Level) else "value"


Tried = Annotated[
    Annotated[Level, Tag("mapping")] | Annotated[Setting, Tag("value")], Discriminator(_tag)
]
"""A value, or one with what must be set with it."""
Default = Annotated[
    Annotated[dict[str, Setting], Tag("mapping")] | Annotated[Setting, Tag("value")],
    Discriminator(_tag),
]
"""The same for every release, or by release."""


class Range(Record):
    """A range: `search` draws from it; `screen` and `grid` try `steps` values, ends included."""

    low: int | float | str
    """Its lowest value; sizes may have units."""
    high: int | float | str
    """Both ends may be sizes with units."""
    steps: Annotated[int, Field(ge=2, le=100)] = 3
    """How many values a screen or a grid tries, both ends among them."""
    scale: Literal["linear", "log"] = "linear"
    """How these are spaced."""

    @field_validator("low", "high", mode="before")
    @classmethod
    def _number(cls, value: object) -> object:
        if isinstance(value, bool):
            raise ValueError("a range needs numbers: for true and false use values")
        return value

    @model_validator(mode="after")
    def _sensible(self) -> Range:
        low, high = self.ends
        if low >= high:
            raise ValueError(f"the lowest {self.low} is not below the highest {self.high}")
        if self.scale == "log" and low <= 0:
            raise ValueError(f"a range on a log scale must begin above 0, not at {self.low}")
        return self

    @property
    def is_integral(self) -> bool:
        """Whether its values are integers (bytes are)."""
        return not isinstance(self.low, float) and not isinstance(self.high, float)

    @property
    def ends(self) -> tuple[float, float]:
        """As numbers; sizes in bytes. Raises ValueError if one is no quantity."""
        low, high = (parse_bytes(end) for end in (self.low, self.high))
        return float(low), float(high)  # type: ignore[arg-type]  # numbers, as the fields say

    @property
    def values(self) -> tuple[int | float, ...]:
        """`steps` distinct values from the lowest to the highest."""
        low, high = self.ends
        shares = [number / (self.steps - 1) for number in range(1, self.steps - 1)]
        # A product of powers: in a range from 5e-324 the ratio of two values may overflow.
        log = self.scale == "log"
        between = [
            low ** (1 - share) * high**share if log else low + (high - low) * share
            for share in shares
        ]
        # The ends are exactly as given: low**0 * high**1 could be off by rounding.
        return tuple(
            dict.fromkeys(
                round(value) if self.is_integral else value for value in (low, *between, high)
            )
        )


class Parameter(Record):
    """One setting to try. Reports show its effect, trap and reference."""

    key: Key
    """Dotted, below `settings` of the layout: `radosgw.threads`."""
    values: tuple[Tried, ...] = ()
    """The values to try besides the layout's ..."""
    range: Range | None = None
    """... or their range."""
    scope: Scope | None = None
    """What a change restarts; None: what the gateway knows to suffice. Less is refused."""
    option: str = ""
    """The daemon's name for it: `rgw_thread_pool_size`, `ThreadsPerChild`."""
    default: Default | None = None
    """The daemon's default, by release where they differ; None: it has none, or computes it."""
    effect: str = ""
    """What it does, and when it matters."""
    trap: str = ""
    """What can go wrong with it."""
    reference: str = ""
    """The source of these statements."""

    @model_validator(mode="after")
    def _one_source(self) -> Parameter:
        if bool(self.values) == (self.range is not None):
            raise ValueError(f"{self.key}: needs either values or a range")
        tried = [_quantity(level.value) for level in self.levels]
        if len(set(tried)) != len(tried):
            raise ValueError(f"{self.key}: the same value twice")
        if any(self.key in level.also for level in self.levels):
            raise ValueError(f"{self.key}: also: sets the parameter itself")
        return self

    @property
    def levels(self) -> tuple[Level, ...]:
        """The levels to try, in order."""
        if self.range is not None:
            return tuple(Level(value=value) for value in self.range.values)
        return tuple(one if isinstance(one, Level) else Level(value=one) for one in self.values)

    def default_at(self, release: str) -> Setting | None:
        """The daemon's default at a release; None if unknown."""
        return self.default.get(release) if isinstance(self.default, dict) else self.default


def _quantity(value: Setting) -> str:
    """The same text for equal values, however they are written: `64KiB` and 65536."""
    try:
        found = parse_bytes(value)
    except ValueError:
        return str(value)
    if isinstance(found, float) and found.is_integer():
        found = int(found)  # not the other way: floats cannot hold all integers
    return str(found)


def show_setting(value: Setting | None) -> str:
    """A value in words: `on`; `16 MiB` for a round size without a unit; else unchanged.

    Below 64 KiB sizes cannot be told from counts: 4096 may be threads.
    """
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int) and value >= _SMALLEST_SIZE and math.log2(value).is_integer():
        return show_bytes(value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "unset" if value is None else str(value)
