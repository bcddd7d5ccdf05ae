import subprocess
import sys

import pytest

from weighbridge.gateways.front import FRONTS
from weighbridge.gateways.gateway import STORES
from weighbridge.topologies.loader import (
    load_hardware,
    load_layout,
    shipped_hardware,
    shipped_layouts,
)


def test_stores_that_ship_are_found_by_their_folders_and_fronts_are_none() -> None:
    assert {"rgw", "swift", "garage", "versitygw"} <= {*STORES}
    assert not {*FRONTS, "capabilities"} & {*STORES}
    assert [name for name, one in STORES.items() if one.kind != name or not one.releases] == []


def test_an_unknown_kind_is_a_key_error() -> None:
    assert STORES.get("ceph") is None
    with pytest.raises(KeyError):
        STORES["ceph"]


def test_small_programs_start_without_pydantic_and_botocore() -> None:
    program = (
        "import sys, weighbridge.gateways.ports, weighbridge.gateways.verify\n"
        "sys.exit('pydantic' in sys.modules or 'botocore' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


# Lab hosts are on their own network and cannot reach gateways that run elsewhere.
@pytest.mark.parametrize("name", sorted(set(shipped_layouts()) - {"existing"}))
def test_each_shipped_layout_fits_the_shipped_hardware(name: str) -> None:
    planned = load_layout(shipped_layouts()[name], load_hardware(shipped_hardware()["lab-cpu"]))
    assert planned.layout.name == name


def test_both_stores_use_the_same_hosts_and_disks() -> None:
    hardware = load_hardware(shipped_hardware()["lab-cpu"])
    rgw, swift = (
        load_layout(shipped_layouts()[name], hardware).gateway.needs()
        for name in ("rgw-beast", "swift")
    )
    assert {name: need.disks for name, need in rgw.items()} == {
        name: need.disks for name, need in swift.items()
    }
