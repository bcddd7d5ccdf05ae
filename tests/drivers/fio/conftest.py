"""The stub machine of Ceph's benches: fio runs on the same hosts by the same seam."""

from tests.drivers.rados.conftest import cluster, machine

__all__ = ["cluster", "machine"]
