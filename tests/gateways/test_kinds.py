import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from weighbridge.common.host import Host
from weighbridge.gateways.front import FRONTS
from weighbridge.gateways.gateway import STORES
from weighbridge.gateways.null.null import Null, NullPlacement, NullSettings
from weighbridge.topologies.fake import FakeHost
from weighbridge.topologies.loader import (
    load_hardware,
    load_layout,
    shipped_hardware,
    shipped_layouts,
)


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[dict[str, Host]]:
    both = {
        name: FakeHost(name, f"127.77.{len(name)}.1", tmp_path / name)
        for name in ("client-1", "gateway-1")
    }
    yield dict(both)
    for host in both.values():
        host.close()


@pytest.mark.parametrize("name", STORES)
def test_a_kind_of_gateway_is_registered_by_its_own_name(name: str) -> None:
    assert STORES[name].kind == name
    assert STORES[name].releases


def test_stores_that_ship_are_found_by_their_folders_and_fronts_are_none() -> None:
    assert {"rgw", "swift", "garage", "versitygw"} <= {*STORES}
    assert not {*FRONTS, "capabilities"} & {*STORES}


def test_an_unknown_kind_is_a_key_error() -> None:
    assert STORES.get("ceph") is None
    with pytest.raises(KeyError):
        STORES["ceph"]


def test_small_programs_start_without_pydantic_and_botocore() -> None:
    program = (
        "import sys, gateways.ports, gateways.verify; sys.exit('pydantic' in sys.modules or "
        "'botocore' in sys.modules)"
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


def test_the_null_gateway_serves_both_apis(hosts: dict[str, Host]) -> None:
    null = Null("engine", NullPlacement(target="gateway-1"), NullSettings(delay_ms=1))
    running = null.bring_up(hosts, hosts["client-1"], print)
    assert tuple(one.api for one in running.endpoints) == null.apis()
    assert running.facts["verified"].startswith("16 operations")
    assert running.facts["delay"] == "1 ms before each answer"
    running.check()


def test_the_null_gateways_facts_show_the_range_of_its_delays(hosts: dict[str, Host]) -> None:
    null = Null(
        "engine", NullPlacement(target="gateway-1"), NullSettings(delay_ms=2, delay_spread=0.5)
    )
    assert (
        null.bring_up(hosts, hosts["client-1"], print).facts["delay"]
        == "1 to 3 ms, drawn by the seed, before each answer"
    )


def test_a_null_target_that_is_meant_to_fail_is_not_verified(hosts: dict[str, Host]) -> None:
    running = Null(
        "engine", NullPlacement(target="gateway-1"), NullSettings(fail_share=1.0)
    ).bring_up(hosts, hosts["client-1"], print)
    assert running.facts["verified"].startswith("no:")


def test_the_null_targets_key_is_on_no_command_line(hosts: dict[str, Host]) -> None:
    running = Null("engine", NullPlacement(target="gateway-1"), NullSettings()).bring_up(
        hosts, hosts["client-1"], print
    )
    key = running.endpoints[0].key.get_secret_value()
    lines = [_command_line(path) for path in Path("/proc").glob("[0-9]*/cmdline")]
    assert not [line for line in lines if key.encode() in line]
    assert any(b"null-target" in line for line in lines)


def _command_line(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""  # it ended meanwhile
