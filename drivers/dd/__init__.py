"""Load by dd on an RBD image or a file of CephFS, as studies measured them before there was fio."""

from weighbridge.drivers.dd.driver import DdCephFs, DdRbd

__all__ = ["DdCephFs", "DdRbd"]
