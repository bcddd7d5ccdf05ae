"""Load by fio, for what stands beside a gateway on the same store:

RBD by its rbd engine, CephFS on a mount by ceph-fuse.
"""

from weighbridge.drivers.fio.block import FioRbd
from weighbridge.drivers.fio.files import FioCephFs

__all__ = ["FioCephFs", "FioRbd"]
