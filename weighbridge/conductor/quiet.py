"""Whether the machine is quiet enough to measure: its CPU use before lab hosts are started.

Lab hosts are promised CPUs of this machine, and lack what other programs use, however good their
limits are: with 10 % of two CPUs in use, hosts that were promised both lack 0.2, which is a third
of a gateway with 0.6. An idle machine uses 1 to 2 %. A run waits for a busier machine, for a minute
at most; then it goes on and says so.
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
from weighbridge.gateways.gateway import Say
from weighbridge.results.figures.doubt import HOPELESS

BUSY: Final = 0.1
"""The share of the machine's CPUs from which it is busy."""
LOOK_S: Final = 1.0
PATIENCE_S: Final = 60.0
"""How long to wait for a busy machine."""
MOST_NAMED: Final = 5
WORTH_NAMING: Final = 0.01
"""Share of the machine's CPUs; programs that use less are not named."""


class BusyProgram(Record):
    """Another program, and how many CPUs it used on average."""

    pid: int
    name: str
    cpus: NonNegativeFloat


class BackgroundLoad(Record):
    """CPU use of all but this process over about a second, while no lab hosts are running."""

    share: Annotated[float, Field(ge=0, le=1)]
    """Of all CPUs, including time that a hypervisor gave to other machines."""
    stolen: Annotated[float, Field(ge=0, le=1)] = 0.0
    """What the hypervisor took."""
    programs: tuple[BusyProgram, ...] = ()
    """The busiest, in that order; programs that started or ended meanwhile are missed."""

    @property
    def busy(self) -> bool:
        """Whether that is too much to measure."""
        return self.share >= BUSY

    @property
    def words(self) -> str:
        """`others use 53 % of this machine's CPUs (python3 4711: 0.99 CPU, stress 12: 0.07)`."""
        named = [f"{one.name} {one.pid}: {one.cpus:.2f} CPU" for one in self.programs]
        if self.stolen >= WORTH_NAMING:
            named.append(f"taken by the hypervisor: {self.stolen * 100:.0f} %")
        who = f" ({', '.join(named)})" if named else ""
        return f"others use {self.share * 100:.0f} % of this machine's CPUs{who}"


class QuietMachine:
    """Waits until the machine is quiet; after waiting in vain, only once it was quiet again."""

    def __init__(
        self,
        *,
        look: Callable[[], BackgroundLoad] | None = None,
        clock: Callable[[], float] = time.monotonic,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._look = background_load if look is None else look
        self._clock = clock
        self._patience_s = patience_s
        self._in_vain = False

    def wait(self, say: Say) -> BackgroundLoad | None:
        """Wait; returns the load if the machine was busy for too long."""
        found = self._look()
        if not found.busy:
            self._in_vain = False
            return None
        if not self._in_vain and self._patience_s:
            say(f"{found.words}; waiting up to {self._patience_s:.0f} s for a quiet machine")
            until = self._clock() + self._patience_s
            while self._clock() < until:
                found = self._look()
                if not found.busy:
                    break
        self._in_vain = found.busy
        if not found.busy:
            say("the machine is quiet")
            return None
        hopeless = "no result is comparable unless they end" if found.share >= HOPELESS else ""
        say(f"{found.words}; {hopeless or 'ratios are adjusted for what they cost'}")
        return found


def background_load(
    seconds: float = LOOK_S, *, most: int = MOST_NAMED, proc: Path = Path("/proc")
) -> BackgroundLoad:
    """Measure this machine for so many seconds, and name at most so many programs."""
    began, own_s, programs = _stat(proc), time.process_time(), _programs()
    started = time.monotonic()
    time.sleep(seconds)
    took_s, spent_s = time.monotonic() - started, time.process_time() - own_s
    busy_s, stolen_s = (after - before for before, after in zip(began, _stat(proc), strict=True))
    cpus = os.cpu_count() or 1
    used = sorted(_grown(programs, _programs(), took_s), key=lambda one: -one.cpus)
    return BackgroundLoad(
        share=min(1.0, max(0.0, busy_s - spent_s) / took_s / cpus),
        stolen=min(1.0, stolen_s / took_s / cpus),
        programs=tuple(one for one in used if one.cpus >= WORTH_NAMING * cpus)[:most],
    )


def _stat(proc: Path) -> tuple[float, float]:
    """CPU seconds since the boot that were not idle, and those that a hypervisor took (proc(5))."""
    words = (proc / "stat").read_text().partition("\n")[0].split()[1:]
    user, nice, system, _idle, _iowait, irq, softirq, stolen, *_ = map(int, words)
    ticks = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + softirq + stolen) / ticks, stolen / ticks


def _programs() -> Mapping[tuple[int, float], tuple[str, float]]:
    """Name and CPU seconds of every other process, by number and start: numbers are reused."""
    found = {}
    for one in psutil.process_iter(["pid", "create_time", "name", "cpu_times"]):
        pid, times = one.info["pid"], one.info["cpu_times"]
        if times is not None and pid != os.getpid():
            found[pid, one.info["create_time"]] = (one.info["name"], times.user + times.system)
    return found


def _grown(
    before: Mapping[tuple[int, float], tuple[str, float]],
    after: Mapping[tuple[int, float], tuple[str, float]],
    took_s: float,
) -> list[BusyProgram]:
    return [
        BusyProgram(pid=key[0], name=name, cpus=max(0.0, used_s - before[key][1]) / took_s)
        for key, (name, used_s) in after.items()
        if key in before
    ]
