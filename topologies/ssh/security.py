"""What of a real host's security may stand between its services: SELinux and firewalld."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import ip_address, ip_network
from typing import Any

from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.lab.requirements import HostRequirement


def requirements(there: Mapping[str, Any], hardware: Hardware) -> list[HostRequirement]:
    """What `means_program` found of both, where there is any; nothing is changed."""
    found = []
    if there["selinux"]:
        found.append(
            HostRequirement(
                "SELinux not enforcing",
                found=False,
                why="its policy for httpd, haproxy, memcached and Ceph knows neither the ports nor "
                "the files of a deployment",
                remedy="`setenforce 0` while you measure (until the next boot), or a policy of "
                "your own; `ausearch -m avc` shows what was denied",
            )
        )
    if there["firewalld"] is not None:
        addresses = [str(spec.address) for spec in hardware.hosts.values()]
        shut = [one for one in addresses if not _within(one, there["firewalld"])]
        sources = " ".join(f"--add-source={one}" for one in shut)
        found.append(
            HostRequirement(
                "firewalld lets the hosts reach each other",
                found=not shut,
                why=f"it trusts neither {', '.join(shut)}: their services cannot connect",
                remedy=f"firewall-cmd --zone=trusted {sources} (until it is reloaded)",
            )
        )
    return found


def _within(address: str, sources: Iterable[object]) -> bool:
    for source in sources:
        try:
            if ip_address(address) in ip_network(str(source), strict=False):
                return True
        except ValueError:
            continue  # a MAC address, or an ipset
    return False
