"""Placement of the `rgw` gateway."""

from __future__ import annotations

from string import ascii_lowercase
from typing import Annotated

from pydantic import BeforeValidator, Field, model_validator

from weighbridge.gateways.front import FrontedPlacement, with_fronts

MON_IDS = ascii_lowercase
"""Names of mons, and of the mgr beside each, in order."""


def _listed(value: object) -> object:
    """One host needs no list."""
    return (value,) if isinstance(value, str) else value


@with_fronts("rgw")
class RgwPlacement(FrontedPlacement):
    """Which daemon runs on which host.

    A front, if any, is before all radosgw.
    """

    mon: Annotated[
        tuple[str, ...], BeforeValidator(_listed), Field(min_length=1, max_length=len(MON_IDS))
    ]
    """One host or several, each with a mon and a mgr. More than half of the mons must be up: use an
    odd number, since one more tolerates no more failures.
    """
    osd: Annotated[tuple[str, ...], Field(min_length=1)]
    """The hosts with OSDs, one for each disk."""
    radosgw: Annotated[tuple[str, ...], Field(min_length=1)]
    """The hosts of the gateway's daemons."""

    @model_validator(mode="after")
    def _sensible(self) -> RgwPlacement:
        if len(set(self.mon)) != len(self.mon):
            raise ValueError("mon names the same host twice")
        if len(set(self.osd)) != len(self.osd):
            raise ValueError(
                "osd names the same host twice, but a host already has an OSD for every disk"
            )
        if len(set(self.radosgw)) != len(self.radosgw):
            raise ValueError(
                "radosgw names the same host twice: for several on one host use "
                "`settings: {radosgw: {daemons: 2}}`"
            )
        return self

    @property
    def advice(self) -> tuple[str, ...]:
        """What is allowed, and seldom meant."""
        if len(self.mon) % 2:
            return ()
        return (f"{len(self.mon)} mons tolerate no more failures than one fewer would",)

    @property
    def hosts(self) -> tuple[str, ...]:
        """Every host once."""
        front = () if self.front is None else (self.front,)
        return tuple(dict.fromkeys((*self.mon, *self.osd, *self.radosgw, *front)))
