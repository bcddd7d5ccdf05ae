"""Load by fio, beside a gateway on the same store: RBD by its rbd engine, CephFS by ceph-fuse."""

from weighbridge.drivers.fio.tool import FioCephFs, FioRbd

__all__ = ["FioCephFs", "FioRbd"]
