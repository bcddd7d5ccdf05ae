"""What must be known of a driver to read its figures: declared by the driver, found by its name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Final, Protocol

from pydantic import Field, NonNegativeInt, PositiveInt

from weighbridge.common.record import Record
from weighbridge.common.registry import Registry


class Apart(Record):
    """What is known to set a driver's figures apart from those of others, as a clause."""

    text: str
    api: str | None = None
    """It applies to this API alone; None: to all."""
    fact: str = ""
    """It applies to layouts of which the value of a fact whose name ends so is like `like`, and
    these are named before the text.
    """
    like: str = ""
    """A regular expression, searched for."""

    def applies(self, facts: Mapping[str, str]) -> bool:
        """Whether it applies to a layout of these facts."""
        return (
            any(
                name.endswith(self.fact) and re.search(self.like, value)
                for name, value in facts.items()
            )
            if self.fact
            else True
        )


class DriverTraits(Record):
    """How people call a driver, and by how much its figures are off."""

    name: str
    label: str
    tools: dict[str, str] = Field(default_factory=dict)
    """Other names that its measurements have (`Measurement.driver`), and what people call what
    makes them.
    """
    cut_us: NonNegativeInt = 0
    """By less than so much it tells each latency too low, since it counts in whole units and rounds
    down.
    """
    cut_requests: PositiveInt = 1
    """Requests of each worker that it leaves out at the ends of its window."""
    beside_gateway: bool = False
    """Whether it runs where the gateway does, within its limits."""
    apart: tuple[Apart, ...] = ()


class HasTraits(Protocol):
    """What stands in the registry of drivers, as results see it."""

    @property
    def traits(self) -> DriverTraits:
        """See DriverTraits."""


DRIVERS: Final[Registry[HasTraits]] = Registry("weighbridge.drivers", "driver")


@cache
def traits_of(name: str) -> DriverTraits:
    """The traits of a driver, by its name or one that its measurements have.

    Of a driver that is not installed nothing is known but its name: runs that it made can be read
    all the same.
    """
    if name in DRIVERS:
        return DRIVERS[name].traits
    known = (one.traits for one in DRIVERS.values())
    return next(
        (traits for traits in known if name in traits.tools), DriverTraits(name=name, label=name)
    )


def driver_label(name: str) -> str:
    """What people call a driver."""
    return traits_of(name).label


def tool_label(name: str) -> str:
    """What people call what made a measurement, by `Measurement.driver`."""
    traits = traits_of(name)
    return traits.tools.get(name, traits.label)
