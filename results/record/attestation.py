"""Attestation records of a run: what each deployment's hosts could do."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveInt

from weighbridge.common.record import Record

Kind = Literal["cpu", "disk", "network", "osd"]
Unit = Literal["events/s", "B/s", "1/s", "bit/s"]


class Attested(Record):
    """One line of `attestation.jsonl`: one figure of one host of one deployment; higher is better.

    `promised` is the limit in the hardware file, in the same unit, if there is one. For a CPU quota
    it is derived from what the same CPU did without the quota, so it differs between deployments.
    """

    layout: str
    repeat: int
    host: str
    kind: Kind
    what: str
    """For example `CPU`, `disk wb0 random read` or `network to client-1`."""
    value: Annotated[float, Field(gt=0)]
    unit: Unit
    promised: Annotated[float, Field(gt=0)] | None = None
    operation: Literal["read", "write"] | None = None
    pick: Literal["sequential", "random"] | None = None
    request_bytes: PositiveInt | None = None
    """Set with `operation` for figures used by a staircase: the request size; `unit` is then B/s.
    """
    sender: str | None = None
    receiver: str | None = None
    """Set for network figures: which host sent to which."""
