"""A front of another package: it forwards connections, on hosts that are processes."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from weighbridge.common.host import Host, Service
from weighbridge.common.structure import CounterFigure, DaemonCounters
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.front import Backend, Behind, Front, FrontSettings
from weighbridge.gateways.probe import FileGrammar, Probe

CONF = "/etc/toyfront.conf"
HERE = Path(__file__).parent


class ToyGrammar(FileGrammar):
    names = ("toyfront.conf",)
    where = "Where: at the end."


class ToyFrontSettings(FrontSettings):
    """Settings of the toy front."""

    about: str = "as it is"
    """A text for its facts."""


class ToyFront(Front):
    label = "Toy front"
    Settings = ToyFrontSettings
    grammars = (ToyGrammar(),)
    counters: ClassVar[DaemonCounters] = DaemonCounters(
        daemon="toyfront",
        figures=(CounterFigure(words="{} connections open", reckon="sum", counters=("open",)),),
    )

    def __init__(self, settings: ToyFrontSettings, behind: Behind) -> None:
        self.settings = settings
        self.port = settings.port

    def files(self, address: str, backends: Sequence[Backend]) -> Mapping[str, str]:
        lines = [
            f"listen {address} {self.port}",
            *(f"backend {one.address} {one.port}" for one in backends),
        ]
        return {CONF: "\n".join(lines) + "\n"}

    def check(self, host: Host) -> None:
        """It has no program that checks configurations."""

    def daemons(self, host: Host) -> tuple[Daemon, ...]:
        # The files of such a host are in a folder of this machine, beside its logs.
        conf = host.log("").parent / "root" / CONF.lstrip("/")
        argv = (sys.executable, str(HERE / "toy_forward.py"), str(conf), str(self._counts(host)))
        return (Daemon(host, Service("toyfront", argv), self.port),)

    def facts(self, host: Host) -> dict[str, str]:
        return {"path": f"clients -> toy front on {host.name}, {self.settings.about}"}

    def probes(self, host: Host) -> tuple[Probe, ...]:
        argv = (sys.executable, str(HERE / "toy_forward.py"), "counters", str(self._counts(host)))
        return (Probe(host, f"toyfront.{host.name}", argv, counters=self.counters),)

    def await_backends(self, host: Host) -> None:
        """It connects to them on demand."""

    @staticmethod
    def _counts(host: Host) -> Path:
        return host.log("toyfront.counts")
