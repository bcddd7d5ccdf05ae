"""What results must know about a driver to read its figures: declared by the driver."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Final, Protocol

from pydantic import Field, NonNegativeInt, PositiveInt

from weighbridge.common.record import Record
from weighbridge.common.registry import Registry


class Caveat(Record):
    """A known reason why a driver's figures differ from those of other drivers, as a clause."""

    text: str
    api: str | None = None
    """The API that it applies to; None: all."""
    fact: str = ""
    """If set: only for layouts with a fact named so at its end and matching `like`."""
    like: str = ""
    """A regular expression, searched for."""

    def applies(self, facts: Mapping[str, str]) -> bool:
        """Whether it applies to a layout with these facts."""
        return not self.fact or any(
            name.endswith(self.fact) and re.search(self.like, value) is not None
            for name, value in facts.items()
        )


class DriverTraits(Record):
    """A driver's label, and how far its figures are off."""

    name: str
    label: str
    tools: dict[str, str] = Field(default_factory=dict)
    """Labels of its tools, by the other names found in `Measurement.driver`."""
    rounding_us: NonNegativeInt = 0
    """Each reported latency is too low by less than this: the driver rounds down to whole units."""
    uncounted_requests: PositiveInt = 1
    """Requests per worker that are not counted at the ends of the window."""
    beside_gateway: bool = False
    """Whether it runs on the gateway's host, within that host's limits."""
    caveats: tuple[Caveat, ...] = ()


class HasTraits(Protocol):
    """An entry of the driver registry, as far as results are concerned."""

    @property
    def traits(self) -> DriverTraits:
        """See DriverTraits."""


DRIVERS: Final[Registry[HasTraits]] = Registry("weighbridge.drivers", "driver")


@cache
def traits_of(name: str) -> DriverTraits:
    """A driver's traits, by its name or one in its measurements; if not installed its name."""
    if name in DRIVERS:
        return DRIVERS[name].traits
    known = (one.traits for one in DRIVERS.values())
    return next(
        (traits for traits in known if name in traits.tools), DriverTraits(name=name, label=name)
    )


def driver_label(name: str) -> str:
    """The label of a driver."""
    return traits_of(name).label


def tool_label(name: str) -> str:
    """The label of the tool that made a measurement, by `Measurement.driver`."""
    traits = traits_of(name)
    return traits.tools.get(name, traits.label)
