"""Lab hosts: OCI containers of this machine under runc, each with its own namespaces, limits, disks
and NIC.

Everything a host owns lives in its container's namespaces, so that deleting the container frees it:
the overlay in a private mount namespace, the NIC in its network namespace, loop disks by
descriptors that only its first process holds.
"""

from weighbridge.topologies.lab.lab import LabHosts, start_lab

__all__ = ["LabHosts", "start_lab"]
