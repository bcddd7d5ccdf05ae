"""Measuring each OSD of a deployment alone: the layer `osd` of a suite."""

from __future__ import annotations

from weighbridge.common.quantities import show_bytes
from weighbridge.drivers.rados import RadosCluster, osd_figures
from weighbridge.results.record.attestation import Attested
from weighbridge.suites import Suite
from weighbridge.topologies.deployment import Deployment


def ask_osds(deployment: Deployment, suite: Suite, repeat: int) -> list[Attested]:
    """The write rate of each OSD, at the sizes of the suite's objects.

    Empty if the suite does not ask for it, or there are no OSDs. Raises CommandFailed, TargetError.
    """
    # Asking what is below a gateway may run programs on its hosts.
    below = deployment.running_gateway.below().ceph if "osd" in suite.layers else None
    if below is None:
        return []
    cluster = RadosCluster(below.host, replicas=below.replicas)
    return [
        Attested(
            layout=deployment.layout.name,
            repeat=repeat,
            host=one.host,
            kind="osd",
            what=f"osd.{one.number} write of {show_bytes(one.request_bytes)}",
            value=one.bytes_per_s,
            unit="B/s",
            operation="write",
            request_bytes=one.request_bytes,
        )
        for one in osd_figures(cluster, below.osds, [size for size in suite.sizes_bytes if size])
    ]
