"""A Swift deployment that stands."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType

from gateways import daemon, program
from gateways.daemon import Daemon
from gateways.gateway import Endpoint, Rendered, Standing
from gateways.host import Host
from gateways.probe import Probe
from gateways.swift import config
from gateways.together import together

_RESELLER = "AUTH_"


class SwiftStanding(Standing):
    """Proxy and storage servers, verified."""

    def __init__(
        self,
        daemons: Sequence[Daemon],
        caches: Sequence[Host],
        stores: Sequence[Host],
        *,
        endpoints: Sequence[Endpoint],
        found: Mapping[str, str],
        rendered: Sequence[Rendered],
        watched: Sequence[Probe],
    ) -> None:
        self._daemons = tuple(daemons)
        self._caches = tuple(caches)
        self._stores = tuple(stores)
        self._watched = tuple(watched)
        self.endpoints = tuple(endpoints)
        self.facts = MappingProxyType(dict(found))
        self.rendered = tuple(rendered)

    def settle(self) -> tuple[str, ...]:
        """Send the container updates that object servers have put off: without an updater they would stay for ever."""
        pending = sum(together([partial(_pending, host) for host in self._stores]))
        if not pending:
            return ("no container updates were put off (async_pending)",)
        update = ["swift-object-updater", "/etc/swift/object-server.conf", "once"]
        together([partial(host.run, update, timeout_s=3600) for host in self._stores])
        left = sum(together([partial(_pending, host) for host in self._stores]))
        return (f"{pending} container updates that were put off (async_pending) sent, {left} left",)

    def drop_caches(self) -> tuple[str, ...]:
        """Empty every memcached but for tempauth's token; Swift's own processes keep nothing of objects in memory."""
        order = {
            "servers": [[host.address, config.MEMCACHED_PORT] for host in self._caches],
            "prefix": _RESELLER,
            "user": f"{config.ACCOUNT}:{config.USER}",
        }
        host = self._caches[0]
        command = program.ship(host, "gateways.swift.drop_memcached")
        done = json.loads(host.run(command, stdin=json.dumps(order)).stdout)
        return (
            f"memcached: {done['dropped']} entries dropped",
            f"not dropped: {done['kept']} entries of memcached, the user's token: clients need not authenticate again",
        )

    def check(self) -> None:
        """Raise ServiceFailed when a server has died."""
        daemon.check(self._daemons)

    def probes(self) -> tuple[Probe, ...]:
        """Each memcached, each storage host, and the front."""
        return self._watched


def probes(caches: Sequence[Host], stores: Sequence[Host]) -> tuple[Probe, ...]:
    """What memcached counts, and what recon would tell of a storage host, without asking its servers, which are being weighed."""
    return (
        *(
            Probe(
                host,
                f"memcached.{host.name}",
                (*program.ship(host, "gateways.swift.tell_memcached"), host.address, str(config.MEMCACHED_PORT)),
            )
            for host in caches
        ),
        *(
            Probe(
                host,
                f"swift.{host.name}",
                (*program.ship(host, "gateways.swift.tell_storage"), config.OBJECTS, f"{config.RECON}/object.recon"),
            )
            for host in stores
        ),
    )


def _pending(host: Host) -> int:
    found = host.run(["sh", "-ec", f"find {config.OBJECTS}/*/async_pending* -type f 2>/dev/null | wc -l || true"], timeout_s=600)
    return int(found.stdout)
