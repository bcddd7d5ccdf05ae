"""A parameter of a tuning: one setting, what it may be, what it does, and what must be started anew
when it changes.
"""

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
    raise ValueError(
        "a plain value is wanted (text, a number, true or false), not "
        f"{'nothing' if value is None else repr(value)}"
    )


Setting = Annotated[str | int | float | bool, BeforeValidator(_plain)]
"""A value as a layout's file may say it: `16MiB`, `512`, `true`, `leastconn`."""
Key = Annotated[str, Field(pattern=r"^[a-z][A-Za-z0-9_]*(\.[A-Za-z0-9_:-]+)*$")]
"""Dotted, below `settings` of a layout:

`radosgw.threads`, `options.client.rgw_get_obj_window_size`.
"""


class Level(Record):
    """One value that is tried, and what else must be set with it:

    Apache wants a server limit that holds its threads.
    """

    value: Setting
    also: dict[Key, Setting] = Field(default_factory=dict)


def _tag(value: Any) -> str:
    """Which of two a value in a file is meant to be, so that faults are told of that one alone."""
    return "mapping" if isinstance(value, dict | Level) else "value"


Tried = Annotated[
    Annotated[Level, Tag("mapping")] | Annotated[Setting, Tag("value")], Discriminator(_tag)
]
"""A value, or one with what must be set with it."""
Default = Annotated[
    Annotated[dict[str, Setting], Tag("mapping")] | Annotated[Setting, Tag("value")],
    Discriminator(_tag),
]
"""Of every release the same, or by release."""


class Range(Record):
    """Values from one to another.

    `search` draws from all of it; `screen` and `grid` try `steps` of it, both ends among them.
    """

    low: int | float | str
    high: int | float | str
    """Sizes may be written with units, on both ends."""
    steps: Annotated[int, Field(ge=2, le=100)] = 3
    scale: Literal["linear", "log"] = "linear"

    @field_validator("low", "high", mode="before")
    @classmethod
    def _number(cls, value: object) -> object:
        if isinstance(value, bool):
            raise ValueError(
                "a range goes from a number to a number: of true and false, name both as values"
            )
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
    def whole(self) -> bool:
        """Whether its values are whole numbers (bytes are)."""
        return not isinstance(self.low, float) and not isinstance(self.high, float)

    @property
    def ends(self) -> tuple[float, float]:
        """As numbers; sizes in bytes. Raises ValueError when one is no quantity."""
        low, high = (parse_bytes(end) for end in (self.low, self.high))
        return float(low), float(high)  # type: ignore[arg-type]  # numbers, as the fields say

    @property
    def values(self) -> tuple[int | float, ...]:
        """`steps` values from the lowest to the highest, each once."""
        low, high = self.ends
        shares = [number / (self.steps - 1) for number in range(1, self.steps - 1)]
        # A product of powers: of a range from 5e-324 on the factor between two values may be no
        # number.
        log = self.scale == "log"
        between = [
            low ** (1 - share) * high**share if log else low + (high - low) * share
            for share in shares
        ]
        # The ends are as they were given: a power of a share of 1 may be the next number.
        return tuple(
            dict.fromkeys(round(value) if self.whole else value for value in (low, *between, high))
        )


class Parameter(Record):
    """One setting that is tried.

    What it does and the trap in it are told in the ledger, with its reference.
    """

    key: Key
    values: tuple[Tried, ...] = ()
    """What is tried beside what the layout has ..."""
    range: Range | None = None
    """... or where from."""
    scope: Scope | None = None
    """What must be started anew; None: what the gateway knows to be enough.

    Less than that is refused.
    """
    option: str = ""
    """What the daemon itself calls it:

    `rgw_thread_pool_size`, `ThreadsPerChild`, `app:object-server keep_cache_private`.
    """
    default: Default | None = None
    """The daemon's own default, or that of each release; the layout may have another.

    None: it has none, or it is computed.
    """
    effect: str = ""
    """What it is for, and when it matters."""
    trap: str = ""
    """What goes wrong with it."""
    reference: str = ""
    """Where that is from."""

    @model_validator(mode="after")
    def _one(self) -> Parameter:
        if bool(self.values) == (self.range is not None):
            raise ValueError(f"{self.key}: either values or a range is wanted")
        tried = [_quantity(level.value) for level in self.levels]
        if len(set(tried)) != len(tried):
            raise ValueError(f"{self.key}: the same value twice")
        if any(self.key in level.also for level in self.levels):
            raise ValueError(f"{self.key}: also: sets the parameter itself")
        return self

    @property
    def levels(self) -> tuple[Level, ...]:
        """What is tried, one after the other."""
        if self.range is not None:
            return tuple(Level(value=value) for value in self.range.values)
        return tuple(one if isinstance(one, Level) else Level(value=one) for one in self.values)

    def default_at(self, release: str) -> Setting | None:
        """The daemon's own default at a release; None where it is not known."""
        return self.default.get(release) if isinstance(self.default, dict) else self.default


def _quantity(value: Setting) -> str:
    """The same for values that are the same however they are written: `64KiB` and 65536."""
    try:
        found = parse_bytes(value)
    except ValueError:
        return str(value)
    if isinstance(found, float) and found.is_integer():
        found = int(found)  # not the other way: there are whole numbers that no float holds
    return str(found)


def show_setting(value: Setting | None) -> str:
    """A value in words: `on`, `16 MiB` of a size that is written without its unit and is whole,
    else as it is.

    Below 64 KiB nothing tells sizes from counts: 4096 may be threads.
    """
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int) and value >= _SMALLEST_SIZE and math.log2(value).is_integer():
        return show_bytes(value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "unset" if value is None else str(value)
