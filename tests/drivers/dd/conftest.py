"""The stub host of Ceph's benchmarks: dd runs on the same hosts in the same way."""

from tests.drivers.rados.conftest import cluster, machine

__all__ = ["cluster", "machine"]
