"""CPU used by other programs on the machine that runs the hosts as containers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Final

from pydantic import NonNegativeFloat

from weighbridge.common.record import Record
from weighbridge.results.figures import show_figure
from weighbridge.results.record import HostLimits, HostSecond
from weighbridge.results.record.telemetry import mean_rate

BESIDE: Final = 0.2
"""Share of a machine's CPUs used by others from which it is reported: the hosts may have lacked
them.
"""


class OtherPrograms(Record):
    """CPUs of the machine used by anything but its hosts and the programs that conduct the run.

    The kernel's own interrupts and threads mostly work for the hosts' disks and network, so they
    are separate, in `kernel`.
    """

    cpus: NonNegativeFloat
    of_cpus: NonNegativeFloat
    kernel: NonNegativeFloat

    @property
    def share(self) -> float:
        """The share of the machine, 0 to 1."""
        return self.cpus / self.of_cpus


def other_programs(
    limits: Sequence[HostLimits], seconds: Mapping[str, Sequence[HostSecond]], least_s: float
) -> OtherPrograms | None:
    """From seconds with samples of every host and the machine; None if below `least_s`."""
    machine = next((one for one in limits if one.tier == "machine"), None)
    if machine is None or machine.cpus is None:
        return None
    lines_of = {
        one.host: [line for line in seconds.get(one.host, ()) if line.cpu_s is not None]
        for one in limits
    }
    common = set.intersection(*({line.second for line in lines} for lines in lines_of.values()))
    kept = {
        host: [line for line in lines if line.second in common] for host, lines in lines_of.items()
    }
    if min(sum(line.span_s for line in lines) for lines in kept.values()) < least_s:
        return None
    rates = {host: mean_rate(lines, "cpu_s") or 0.0 for host, lines in kept.items()}
    conductor, kernel = (
        mean_rate(kept[machine.host], name) for name in ("conductor_cpu_s", "kernel_cpu_s")
    )
    if conductor is None or kernel is None:
        return None
    ours = sum(rates[one.host] for one in limits if one is not machine)
    others = rates[machine.host] - ours - conductor - kernel
    return OtherPrograms(cpus=max(0.0, others), of_cpus=machine.cpus, kernel=kernel)


def beside_words(repeats: Sequence[OtherPrograms | None]) -> str:
    """What others used over the repeats, in words; empty below BESIDE, or if unknown."""
    known = [one for one in repeats if one is not None]
    if not known:
        return ""
    cpus, of_cpus = median(one.cpus for one in known), known[0].of_cpus
    if cpus < BESIDE * of_cpus:
        return ""
    return f"other programs used {show_figure(cpus)} of this machine’s {of_cpus:g} CPUs"
