"""The limits of hosts that a run records beside its telemetry."""

from __future__ import annotations

from weighbridge.conductor.telemetry import limits_of
from weighbridge.gateways.gateway import HostNeed
from weighbridge.topologies.hardware import Hardware


def test_hosts_have_their_tier_and_the_limits_of_the_hardware() -> None:
    hosts = {
        "client-1": {"cpus": 0.5},
        "gateway-1": {"nic": "1Gbit"},
        "store-1": {"memory": "1GiB", "disks": [{"size": "1GiB", "iops": 50}]},
        "store-2": {"cpuset": "2-3"},
        "spare": {},
    }
    hardware = Hardware.model_validate({"name": "h", "kind": "lab", "hosts": hosts})
    needs = {
        "gateway-1": HostNeed(roles=("proxy",)),
        "store-1": HostNeed(roles=("object",), disks=1, tier="storage"),
        "store-2": HostNeed(roles=("object",), tier="storage"),
    }
    names = ["client-1", "gateway-1", "store-1", "store-2"]
    limits = {
        one.host: one for one in limits_of(hardware, needs, {**dict.fromkeys(names), "store-1": 40})
    }
    assert [(name, one.tier) for name, one in limits.items()] == [
        ("client-1", "client"),
        ("gateway-1", "gateway"),
        ("store-1", "storage"),
        ("store-2", "storage"),
    ]
    assert (limits["store-2"].cpus, limits["store-2"].cpu_period_ms) == (2, None)
    assert (
        limits["client-1"].cpus,
        limits["gateway-1"].nic_bits_s,
        limits["store-1"].disks[0].iops,
    ) == (0.5, 1e9, 50)
    assert (limits["gateway-1"].cpus, limits["gateway-1"].cores) == (None, None)
    assert (limits["store-1"].cpus, limits["store-1"].cores) == (None, 40)
    assert (limits["client-1"].cpu_period_ms, limits["gateway-1"].cpu_period_ms) == (10.0, None)


def test_every_client_host_has_the_client_tier() -> None:
    hosts = {"client-1": {"nic": "1Gbit"}, "client-2": {"nic": "1Gbit"}, "gateway-1": {}}
    hardware = Hardware.model_validate(
        {"name": "h", "kind": "lab", "clients": ["client-1", "client-2"], "hosts": hosts}
    )
    limits = limits_of(hardware, {"gateway-1": HostNeed(roles=("proxy",))}, dict.fromkeys(hosts))
    assert [(one.host, one.tier) for one in limits if one.nic_bits_s is not None] == [
        ("client-1", "client"),
        ("client-2", "client"),
    ]
