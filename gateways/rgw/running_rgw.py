"""A running Ceph cluster with radosgw, and what is known about it."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from functools import partial
from itertools import groupby
from types import MappingProxyType

from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import UsageError
from weighbridge.common.scope import Scope
from weighbridge.gateways import daemon
from weighbridge.gateways.below import Below
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.disk_space import DiskSpace, KeptBytes
from weighbridge.gateways.gateway import Gateway, RunningGateway, Say
from weighbridge.gateways.probe import Probe
from weighbridge.gateways.rgw.ceph_state import CephState
from weighbridge.gateways.rgw.change import CephChange
from weighbridge.gateways.rgw.cluster import CephCluster
from weighbridge.gateways.rgw.facts import uneven
from weighbridge.gateways.rgw.kept import kept_bytes
from weighbridge.gateways.rgw.monitor import CephDaemon, ask
from weighbridge.gateways.rgw.standing import tolerance
from weighbridge.gateways.rgw.start_again import mend_disk, revive, start_again
from weighbridge.gateways.tls_handshake import negotiated
from weighbridge.gateways.together import together
from weighbridge.gateways.tolerance import Tolerance
from weighbridge.gateways.verify import OperationCheck

_KEPT = {
    "filestore": "not dropped: RocksDB's block cache in the OSDs; FileStore's data is in the "
    "kernel's caches, which are dropped",
    "memstore": "not dropped: MemStore's objects, which are only in memory",
}


class RunningRgw(RunningGateway):
    """A healthy cluster with its gateway verified."""

    def __init__(
        self,
        state: CephState,
        *,
        endpoints: Sequence[Endpoint],
        checks: Sequence[OperationCheck],
        below: Below,
    ) -> None:
        self._state = state
        self._osds = state.osds
        self._gateways = tuple(state.radosgws)
        self._objectstore = state.cluster.settings.osd.objectstore
        self.endpoints = tuple(endpoints)
        self._below = below
        self.uneven = uneven(state.primaries)
        self._describe(checks)

    def settle(self) -> tuple[str, ...]:
        """Run RGW's garbage collection, so that it deletes no object data in the next step."""
        host = self._gateways[0].host
        host.run(["radosgw-admin", "gc", "process", "--include-all"], timeout_s=3600)
        left = len(
            json.loads(
                host.run(["radosgw-admin", "gc", "list", "--include-all"], timeout_s=600).stdout
            )
        )
        return (f"RGW garbage collection completed, {left} entries left",)

    def drop_caches(self) -> tuple[str, ...]:
        """Drop the caches of BlueStore (objects, buffers) and RGW (metadata), not RocksDB's."""
        bluestore = self._objectstore == "bluestore"
        dropped = [
            *(_each(self._osds, "cache drop") if bluestore else ()),
            *_each(self._gateways, "cache zap"),
        ]
        for ceph, answer in dropped:
            # Both answer nothing on success; a refusal is a text.
            if answer.strip():
                raise ceph.failed(f"caches not dropped: {answer.strip()}")
        count = len(self._gateways)
        zapped = (
            "RGW's metadata cache" + (f" of {count} radosgw" if count > 1 else "") + " (cache zap)"
        )
        if bluestore:
            return (
                f"BlueStore's onode and buffer caches of {len(self._osds)} OSDs (cache drop)",
                zapped,
                "not dropped: RocksDB's block cache in the OSDs, which has no command for it",
            )
        return (zapped, _KEPT[self._objectstore])

    def check(self) -> None:
        daemon.check(self._state.daemons)

    def check_disk_space(self) -> None:
        """Raise ServiceFailed when an OSD is full: writes and deletes then get no answer."""
        ceph = self._below.ceph
        if ceph is None:
            return
        checks = json.loads(ceph.host.run(["ceph", "health", "detail", "--format", "json"]).stdout)[
            "checks"
        ]
        full_check = checks.get("OSD_FULL")
        if full_check is None:
            return
        # Details are sentences such as `osd.0 is full`.
        names = [detail["message"].split()[0] for detail in full_check["detail"]]
        full = next((osd for osd in self._osds if osd.name in names), self._osds[0])
        words = (
            "is full"
            if len(self._osds) == 1
            else f"is full ({len(names)} of {len(self._osds)} OSDs are)"
        )
        raise full.failed(
            f"{words}: the cluster accepts no more writes or deletes",
            advice="Give the hosts larger disks in the hardware file, or let the suite write less: "
            "smaller or fewer objects, a shorter runtime, fewer workers.",
        )

    def start_again(self, names: Collection[str], say: Say) -> None:
        start_again(self._state, names, say)

    def revive(self, daemons: Sequence[Daemon]) -> None:
        """See RunningGateway. OSDs are up again when it returns."""
        revive(self._state, daemons)

    def mend_disk(self, host: str, disk: str) -> None:
        mend_disk(self._state, host, disk)

    def may_change(self, gateway: Gateway, scope: Scope) -> None:
        """See RunningGateway. Raises UsageError, CommandFailed."""
        self._planned(gateway, scope, lambda _: None)

    def change(self, gateway: Gateway, scope: Scope, say: Say) -> tuple[str, ...]:
        """See RunningGateway and CephChange: after a failure the next restarts what was touched."""
        change = self._planned(gateway, scope, say)
        with change.restoring_on_failure():
            done, checks = change.run(self.endpoints)
            self._describe(checks)
        return done

    def _planned(self, gateway: Gateway, scope: Scope, say: Say) -> CephChange:
        if not isinstance(gateway.cluster, CephCluster):
            raise UsageError(f"an rgw gateway is running, which cannot become a {gateway.kind} one")
        return CephChange(self._state, gateway.cluster, scope, say)

    def _describe(self, checks: Sequence[OperationCheck]) -> None:
        """Update facts, files and probes."""
        tls = {"tls": negotiated(self._state.client, self.endpoints)}
        self.facts = MappingProxyType(self._state.facts(checks) | tls)
        self.rendered = self._state.files.shown()
        self._probes = self._state.probes()

    def below(self) -> Below:
        return self._below

    def disk_space(self) -> DiskSpace | None:
        """The OSDs' stores (`ceph df`), journals and databases included."""
        ceph = self._below.ceph
        if ceph is None:
            return None
        stats = json.loads(ceph.host.run(["ceph", "df", "--format", "json"]).stdout)["stats"]
        return DiskSpace(
            bytes=stats["total_bytes"],
            free_bytes=stats["total_avail_bytes"],
            kept=self._state.cluster.settings.pools.kept,
        )

    def kept_bytes(self) -> KeptBytes | None:
        """What the OSDs say of themselves; None of other stores than BlueStore."""
        return kept_bytes(self._osds) if self._objectstore == "bluestore" else None

    def tolerance(self) -> Tolerance:
        """See RunningGateway. Raises CommandFailed."""
        return tolerance(self._state)

    def daemons(self) -> tuple[Daemon, ...]:
        return self._state.daemons

    def probes(self) -> tuple[Probe, ...]:
        return self._probes


def _each(daemons: Sequence[CephDaemon], command: str) -> list[tuple[CephDaemon, str]]:
    """Each daemon's answer to a command; hosts are asked concurrently."""
    groups = [list(group) for _, group in groupby(daemons, key=lambda one: one.host.name)]
    answers = together([partial(ask, group, {"prefix": command}) for group in groups])
    return [(ceph, texts[0]) for answer in answers for ceph, texts in answer.items()]
