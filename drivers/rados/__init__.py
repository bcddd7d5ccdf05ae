"""Load by Ceph's own benches, for the layers that a gateway stands on or beside: rados bench, rbd
bench, and each OSD's own.

They run on a host of the cluster that has an administrator's keys, as programs of the cluster's own
release.
"""

from weighbridge.drivers.rados.block import RbdBench
from weighbridge.drivers.rados.cluster import RadosCluster
from weighbridge.drivers.rados.driver import RadosBench
from weighbridge.drivers.rados.osd_bench import OsdFigure, osd_figures

__all__ = ["OsdFigure", "RadosBench", "RadosCluster", "RbdBench", "osd_figures"]
