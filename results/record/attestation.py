"""Attestation as a run keeps it: what each deployment's hosts could do."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveInt

from weighbridge.common.record import Record

Kind = Literal["cpu", "disk", "network", "osd"]
Unit = Literal["events/s", "B/s", "1/s", "bit/s"]


class Attested(Record):
    """One line of `attestation.jsonl`: one figure about one host of one deployment, better when it
    is higher.

    `promised` is the limit of the hardware file in the same unit, where there is one; that of a CPU
    quota comes from what the same CPU did without, and so is not the same in all deployments.
    """

    layout: str
    repeat: int
    host: str
    kind: Kind
    what: str
    """Such as `CPU`, `disk wb0 random read` or `network to client-1`."""
    value: Annotated[float, Field(gt=0)]
    unit: Unit
    promised: Annotated[float, Field(gt=0)] | None = None
    operation: Literal["read", "write"] | None = None
    pick: Literal["sequential", "random"] | None = None
    request_bytes: PositiveInt | None = None
    """With `operation`, of figures that a staircase is made of: what was done, in requests of this
    size; then `unit` is B/s.
    """
    sender: str | None = None
    receiver: str | None = None
    """Of figures about the network: which host sent to which."""
