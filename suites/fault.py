from __future__ import annotations

from typing import Annotated, Final, Literal, get_args

from pydantic import Field, model_validator

from weighbridge.common.quantities import Seconds
from weighbridge.common.record import Record
from weighbridge.common.structure import ROLES, Role

FaultWay = Literal["kill", "silence", "unplug", "fail"]
"""`kill`: processes end at once (SIGKILL), and their kernel closes their sockets and refuses new
connections. `silence`: a host's power is cut; nobody hears of it but by waiting. `unplug`: its link
is down, and its daemons go on. `fail`: all I/O to a disk is an error.
"""
BEFORE_S: Final = 5.0
"""The least time before the fault, from which the rate before it is taken."""
AFTER_S: Final = 5.0
"""The least time from the last change to the end of the window."""
DISK: Final[Role] = "storage-disk"
"""The only role that `fail` takes, and no other way takes it."""

What = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*(/[A-Za-z0-9][A-Za-z0-9_.-]*)?$")]


class Fault(Record):
    """A daemon, a host, a link or a disk fails while load runs, and may come back.

    Times count from the start of the window. Exactly one of `kill`, `silence`, `unplug` and `fail`
    says what: a role, which each layout resolves, or a host, or of `kill` a service of a host
    (`store-3/osd.2`), or of `fail` a disk (`store-3/wb0`).
    """

    at: Annotated[Seconds, Field(ge=BEFORE_S)]
    """When, from the start of the window: `30s`."""
    kill: What | None = None
    """What dies at once (SIGKILL): a role such as `storage-host`, a host, or `store-3/osd.2`."""
    silence: What | None = None
    """The host whose power is cut: its peers notice only by waiting."""
    unplug: What | None = None
    """The host whose link goes down, while its daemons go on."""
    fail: What | None = None
    """The disk of which all I/O becomes an error: `storage-disk`, or `store-3/wb0`."""
    back: Seconds | None = None
    """None: not within the window; it is started again before the next step."""

    @model_validator(mode="after")
    def _sensible(self) -> Fault:
        if sum(one is not None for one in self._ways.values()) != 1:
            raise ValueError(
                f"set one of {', '.join(self._ways)}: {', '.join(ROLES)}, a host, or for kill also "
                "HOST/SERVICE, for fail HOST/DISK"
            )
        disk = self.what == DISK or (self.way == "fail" and "/" in self.what)
        if disk != (self.way == "fail"):
            raise ValueError(
                f"{self.way}: {self.what}: `fail` is for disks, and disks only fail: name {DISK}, "
                "or a disk of a host, such as store-3/wb0"
            )
        if self.way in {"silence", "unplug"} and (
            "/" in self.what or self.what.endswith("-daemon")
        ):
            raise ValueError(
                f"{self.way}: {self.what} is a daemon, and its host would answer for it: name "
                "storage-host or a host, or use `kill`"
            )
        if self.back is not None and self.back < self.at + 1:
            raise ValueError(f"back: {self.back:g}s is not after the fault at {self.at:g}s")
        return self

    @property
    def _ways(self) -> dict[FaultWay, str | None]:
        ways = get_args(FaultWay)
        return {way: getattr(self, way) for way in ways}

    @property
    def way(self) -> FaultWay:
        return next(way for way, what in self._ways.items() if what is not None)

    @property
    def what(self) -> str:
        return next(what for what in self._ways.values() if what is not None)

    @property
    def words(self) -> str:
        """`kill storage-host at 30 s, back at 90 s`."""
        back = "not back" if self.back is None else f"back at {self.back:g} s"
        return f"{self.way} {self.what} at {self.at:g} s, {back}"

    @property
    def last_s(self) -> float:
        """When it changes something for the last time, in seconds."""
        return self.at if self.back is None else self.back


def unfit_fault(fault: Fault, runtime_s: float, *, overload: bool, only_deletes: bool) -> str:
    """Why a workload cannot have this fault; empty if it can."""
    if fault.last_s + AFTER_S > runtime_s:
        return (
            f"fault: {fault.words}, but the window ends at {runtime_s:g} s: it must last at "
            f"least {AFTER_S:g} s longer to show the effect"
        )
    if overload:
        return "fault: cannot be combined with `overload`: failures would have two causes"
    if only_deletes:
        return "fault: a workload that only deletes ends when no objects are left"
    return ""
