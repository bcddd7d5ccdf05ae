"""Whether the machine is quiet enough to measure on: what others use of its CPUs before hosts of
ours are there, and who they are.

Lab hosts are promised CPUs of this machine. What others use of them the hosts lack, however good
their limits are: with 10 % of two CPUs gone, hosts that were promised both are short of 0.2, which
is a third of a gateway of 0.6. A machine that does nothing uses 1 to 2 %. A machine that is busier
than that is waited for, for a minute at most; then the run goes on and says so.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Final

import psutil
from pydantic import Field, NonNegativeFloat

from weighbridge.common.record import Record

BUSY: Final = 0.1
"""Share of the machine's CPUs: from there on it is busy."""
LOOK_S: Final = 1.0
PATIENCE_S: Final = 60.0
"""How long a busy machine is waited for."""
MOST_NAMED: Final = 5
WORTH_NAMING: Final = 0.01
"""Of the machine's CPUs; programs that use less are not named."""

Say = Callable[[str], None]


class OtherProgram(Record):
    """A program that ran meanwhile, and how many CPUs it used on average."""

    pid: int
    name: str
    cpus: NonNegativeFloat


class OthersUse(Record):
    """What others used of this machine over a second or so: neither this process, nor hosts of
    ours, of which none are there.
    """

    share: Annotated[float, Field(ge=0, le=1)]
    """Of all its CPUs. Time that a hypervisor gave to other machines is in it."""
    stolen: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Of that, what the hypervisor took."""
    programs: tuple[OtherProgram, ...] = ()
    """Those that used most, the busiest first. Programs that began or ended meanwhile are missed.
    """

    @property
    def busy(self) -> bool:
        """Whether that is too much to measure on."""
        return self.share >= BUSY

    @property
    def words(self) -> str:
        """`others use 53 % of this machine's CPUs (python3 4711: 0.99 CPU, stress 12: 0.07)`."""
        named = [f"{one.name} {one.pid}: {one.cpus:.2f} CPU" for one in self.programs]
        named += (
            [f"taken by the hypervisor: {self.stolen * 100:.0f} %"]
            if self.stolen >= WORTH_NAMING
            else []
        )
        who = f" ({', '.join(named)})" if named else ""
        return f"others use {self.share * 100:.0f} % of this machine's CPUs{who}"


class Quiet:
    """Waits for the machine to be quiet.

    One that was busy to the end of a wait is not waited for again until it has been quiet.
    """

    def __init__(
        self,
        *,
        look: Callable[[], OthersUse] | None = None,
        clock: Callable[[], float] = time.monotonic,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._look = see if look is None else look
        self._clock = clock
        self._patience_s = patience_s
        self._in_vain = False

    def wait(self, say: Say) -> OthersUse | None:
        """Return when the machine is quiet, or when it was busy for too long: then what used it."""
        found = self._look()
        if not found.busy:
            self._in_vain = False
            return None
        if not self._in_vain:
            say(f"{found.words}; waiting up to {self._patience_s:.0f} s for a quiet machine")
            until = self._clock() + self._patience_s
            while self._clock() < until:
                found = self._look()
                if not found.busy:
                    break
        self._in_vain = found.busy
        say(
            f"{found.words}; what is measured now is provisional"
            if found.busy
            else "the machine is quiet"
        )
        return found if found.busy else None


def see(
    seconds: float = LOOK_S, *, most: int = MOST_NAMED, proc: Path = Path("/proc")
) -> OthersUse:
    """Look at this machine for so many seconds, and name at most so many programs; every look takes
    as long.
    """
    began, own_s, programs = _stat(proc), time.process_time(), _programs()
    started = time.monotonic()
    time.sleep(seconds)
    took_s, spent_s = time.monotonic() - started, time.process_time() - own_s
    busy_s, stolen_s = (after - before for before, after in zip(began, _stat(proc), strict=True))
    cpus = os.cpu_count() or 1
    used = sorted(_grown(programs, _programs(), took_s), key=lambda one: -one.cpus)
    return OthersUse(
        share=min(1.0, max(0.0, busy_s - spent_s) / took_s / cpus),
        stolen=min(1.0, stolen_s / took_s / cpus),
        programs=tuple(one for one in used if one.cpus >= WORTH_NAMING * cpus)[:most],
    )


def _stat(proc: Path) -> tuple[float, float]:
    """CPU seconds that were not idle, and those of them that a hypervisor took, since the machine
    started (proc(5)).
    """
    words = (proc / "stat").read_text().partition("\n")[0].split()[1:]
    user, nice, system, _idle, _iowait, irq, softirq, stolen, *_ = map(int, words)
    ticks = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + softirq + stolen) / ticks, stolen / ticks


def _programs() -> Mapping[tuple[int, float], tuple[str, float]]:
    """Name and CPU seconds so far of every other process, by number and when it began: numbers are
    given again.
    """
    found = {}
    for one in psutil.process_iter(["pid", "create_time", "name", "cpu_times"]):
        told = one.info
        if told["cpu_times"] is not None and told["pid"] != os.getpid():
            found[told["pid"], told["create_time"]] = (
                told["name"],
                told["cpu_times"].user + told["cpu_times"].system,
            )
    return found


def _grown(
    before: Mapping[tuple[int, float], tuple[str, float]],
    after: Mapping[tuple[int, float], tuple[str, float]],
    took_s: float,
) -> list[OtherProgram]:
    return [
        OtherProgram(pid=key[0], name=name, cpus=max(0.0, used_s - before[key][1]) / took_s)
        for key, (name, used_s) in after.items()
        if key in before
    ]
