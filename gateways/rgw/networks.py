"""Whether OSD hosts have an address in the network of copies."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address, ip_network

from weighbridge.common.host import Host
from weighbridge.gateways.rgw.placement import RgwPlacement
from weighbridge.gateways.rgw.settings import RgwSettings


def faults(place: RgwPlacement, settings: RgwSettings, hosts: Mapping[str, Host]) -> list[str]:
    """Hosts without an address in it, a sentence each. Raises CommandFailed."""
    if settings.osd.cluster_network is None:
        return []
    network = ip_network(settings.osd.cluster_network)
    found = []
    for name in place.osd:
        words = hosts[name].run(["hostname", "-I"]).stdout.split()
        # One of a link alone has the link's name behind a percent sign.
        addresses = [ip_address(word) for word in words if "%" not in word]
        if not any(one in network for one in addresses):
            listed = ", ".join(map(str, addresses)) or "none"
            found.append(f"osd.cluster_network: {name} has no address in {network}, but {listed}")
    return found
