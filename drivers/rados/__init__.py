"""Load by Ceph's own benchmarks, for the layers below and beside a gateway: rados bench, rbd bench,
and each OSD's own.

They run on a host of the cluster with an admin keyring, as programs of the cluster's release;
`rados bench` also in a pool that is given, where a cluster already runs.
"""

from weighbridge.drivers.rados.block import RbdBench
from weighbridge.drivers.rados.cluster import RadosCluster
from weighbridge.drivers.rados.driver import RadosBench
from weighbridge.drivers.rados.given_pool import GivenPool, PoolLeftover, leftovers, look
from weighbridge.drivers.rados.osd_bench import OsdFigure, osd_figures

__all__ = [
    "GivenPool",
    "OsdFigure",
    "PoolLeftover",
    "RadosBench",
    "RadosCluster",
    "RbdBench",
    "leftovers",
    "look",
    "osd_figures",
]
