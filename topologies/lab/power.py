"""Power cuts of lab hosts: their disks are files of one program, which remembers every write."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from weighbridge.common.counters import CutDisk
from weighbridge.common.errors import TargetError
from weighbridge.topologies.hosts import Hosts
from weighbridge.topologies.lab import ending
from weighbridge.topologies.lab.model_disks import ModelDisks
from weighbridge.topologies.power_cuts import PowerCuts


class LabPowerCuts(PowerCuts):
    """All hosts of a deployment but its clients."""

    def __init__(
        self, hosts: Hosts, names: tuple[str, ...], model_disks: ModelDisks, folder: Path
    ) -> None:
        self._hosts = hosts
        self._names = names
        self._disks = model_disks
        self._folder = folder
        self._on = True

    def record(self, *, flushes: bool) -> None:
        """See PowerCuts. One sync is for all hosts: they share this machine's kernel."""
        os.sync()
        self._disks.record(flushes=flushes)

    def mark(self) -> int:
        return self._disks.mark().number

    def cut(self) -> None:
        self._disks.cut()
        if self._on:
            self._hosts.power_off(self._names)
            self._on = False
            attached = partial(ending.disks, self._folder, self._hosts.deployment)
            if left := ending.until_none(attached):
                raise TargetError(f"{', '.join(map(str, left))} still attached after a power cut")

    def restore(self, mark: int, *, keep: float, seed: int) -> tuple[CutDisk, ...]:
        self.cut()
        found = self._disks.restore(mark, keep=keep, seed=seed)
        self._on = True
        self._hosts.power_on(self._names)
        return tuple(map(self._shown, found))

    def _shown(self, disk: CutDisk) -> CutDisk:
        """With the name by which users know it; the last disk of a host is its root."""
        host, index = disk.name.removeprefix(f"{self._hosts.deployment}.").rsplit(".", 1)
        own = self._hosts.hosts[host].disks
        name = f"{host}{own[int(index)]}" if int(index) < len(own) else f"{host}/"
        return disk.model_copy(update={"name": name})
