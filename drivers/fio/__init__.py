"""Load by fio, beside a gateway on the same store: RBD by its rbd engine, CephFS by ceph-fuse."""

from weighbridge.drivers.fio.block import FioRbd
from weighbridge.drivers.fio.files import FioCephFs

__all__ = ["FioCephFs", "FioRbd"]
