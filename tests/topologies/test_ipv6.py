"""Shipped layouts on hosts that have IPv6 addresses alone."""

import re
from typing import Any

import pytest

from weighbridge.common.endpoint import base_url, bracketed, host_port
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.loader import load_layout, shipped_layouts

DISKS = [{"id": "/dev/disk/by-id/example-0"}, {"id": "/dev/disk/by-id/example-1"}]
HOSTS: dict[str, Any] = {
    "client-1": {"address": "fd00::a:1"},
    "gateway-1": {"address": "fd00::a:2"},
    **{f"store-{number}": {"address": f"fd00::b:{number}", "disks": DISKS} for number in (1, 2, 3)},
}
HARDWARE = Hardware.model_validate({"name": "six", "kind": "ssh", "hosts": HOSTS})
BARE = re.compile(r"(?<!\[)fd00::[ab]:[0-9]:[0-9]{2}")
"""An address with a port behind it, and without brackets."""


def test_only_addresses_of_ipv6_are_bracketed() -> None:
    assert (bracketed("10.0.0.1"), bracketed("fd00::1")) == ("10.0.0.1", "[fd00::1]")
    assert (host_port("a.example", 80), host_port("::1", 80)) == ("a.example:80", "[::1]:80")
    assert base_url("fd00::1", 80) == "http://[fd00::1]"
    assert base_url("fd00::1", 8443, tls=True) == "https://[fd00::1]:8443"


@pytest.mark.parametrize("name", sorted({*shipped_layouts()} - {"existing"}))
def test_files_have_brackets_around_addresses_with_a_port(name: str) -> None:
    gateway = load_layout(shipped_layouts()[name], HARDWARE).gateway
    for one in gateway.render(HARDWARE.sites):
        assert not BARE.search(one.text), one.path


def test_a_file_without_brackets_would_be_found() -> None:
    assert BARE.search("server a fd00::a:2:8000")
    assert not BARE.search("bind_ip = fd00::a:2\nserver a [fd00::a:2]:8000")
