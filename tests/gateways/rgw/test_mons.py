"""Several mons, networks of copies, and IPv6 in Ceph's files."""

import json
from pathlib import Path
from typing import Self

import pytest
from pydantic import ValidationError

from tests.gateways.rgw.planned_rgw import SITES, STORES, Spot, conf, rgw
from tests.gateways.stage import Stage
from weighbridge.common.errors import CommandFailed
from weighbridge.common.host import Completed
from weighbridge.gateways.rgw import running_rgw
from weighbridge.gateways.rgw import settings as networks
from weighbridge.gateways.rgw.ceph_roster import CephRoster
from weighbridge.gateways.rgw.config import ceph_conf, keyring
from weighbridge.gateways.rgw.rgw import Rgw
from weighbridge.gateways.rgw.settings import RgwPlacement, RgwSettings


def test_one_mon_needs_no_list() -> None:
    one = {"osd": STORES, "radosgw": ["gateway-1"]}
    assert RgwPlacement.model_validate({"mon": "store-1", **one}) == RgwPlacement.model_validate(
        {"mon": ["store-1"], **one}
    )
    with pytest.raises(ValidationError, match="mon names the same host twice"):
        RgwPlacement.model_validate({"mon": ["store-1", "store-1"], **one})


def test_every_daemon_knows_all_mons_and_each_has_a_mgr_beside_it() -> None:
    sections = conf({}, mon=STORES)
    assert sections["global"]["mon_host"] == ",".join(
        f"[v2:10.0.0.{number}:3300,v1:10.0.0.{number}:6789]" for number in (1, 2, 3)
    )
    assert sections["global"]["mon_initial_members"] == "a,b,c"
    assert [sections[f"mon.{one}"]["public_addr"] for one in "abc"] == [
        sections[f"mgr.{one}"]["public_addr"] for one in "abc"
    ]
    keys = keyring(1, 0, [], mgrs=["a", "b"]).splitlines()
    assert [line for line in keys if "mgr" in line and line.startswith("[")] == [
        "[mgr.a]",
        "[mgr.b]",
    ]


def test_a_cluster_of_several_mons_starts_when_all_are_in_the_quorum(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    place = RgwPlacement(mon=STORES, osd=STORES, radosgw=("gateway-1",))
    Rgw("ceph-16", place, RgwSettings()).bring_up(stage.hosts, stage.hosts["client-1"], print)
    for name in STORES:
        assert len(stage.when(f"{name} start mon")) == len(stage.when(f"{name} start mgr")) == 1
    asked = [json.loads(line)["prefix"] for line in stage.mon_log.read_text().splitlines()]
    assert asked[:4] == ["quorum_status"] * 3 + ["osd new"]


@pytest.mark.parametrize(
    ("mons", "lone"),
    [
        (1, ["the only mon"]),
        (2, ["one of two mons, of which both are needed"] * 2),
        (3, [""] * 3),
    ],
)
def test_a_mon_may_die_when_a_majority_is_left(mons: int, lone: list[str]) -> None:
    parts = rgw(mon=STORES[:mons]).parts(SITES)
    assert [one.lone for one in parts if one.service == "mon"] == lone
    assert [one.host for one in parts if one.service == "mgr"] == list(STORES[:mons])


def test_copies_may_have_a_network_of_their_own() -> None:
    sections = conf({"osd": {"cluster_network": "10.2.0.0/24"}})
    assert sections["osd"]["cluster_network"] == "10.2.0.0/24"
    assert "cluster_addr" not in sections["osd.0"]
    assert sections["osd.0"]["public_addr"] == "10.0.0.1"
    assert conf({})["osd.0"]["cluster_addr"] == "10.0.0.1"
    with pytest.raises(ValidationError, match="has host bits set"):
        RgwSettings.model_validate({"osd": {"cluster_network": "10.2.0.1/24"}})


def test_osd_hosts_without_an_address_in_that_network_are_refused_before_anything_starts() -> None:
    class Addressed:
        def __init__(self, words: str) -> None:
            self.words = words

        def run(self, argv: list[str]) -> Completed:
            assert argv == ["hostname", "-I"]
            return Completed(self.words, "")

    hosts = {name: Addressed("10.0.0.1 10.2.0.7 fe80::1%eth0\n") for name in STORES}
    hosts["store-2"] = Addressed("10.0.0.2 fd00::2\n")
    settings = RgwSettings.model_validate({"osd": {"cluster_network": "10.2.0.0/24"}})
    place = RgwPlacement(mon=("store-1",), osd=STORES, radosgw=("gateway-1",))
    assert networks.network_faults(place, settings, hosts) == [  # type: ignore[arg-type]
        "osd.cluster_network: store-2 has no address in 10.2.0.0/24, but 10.0.0.2, fd00::2"
    ]
    assert networks.network_faults(place, RgwSettings(), {}) == []


def test_a_cluster_is_asked_from_another_mons_host_when_the_first_is_dead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Session:
        def __init__(self, host: Spot, _watch: object) -> None:
            self.host = host

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None: ...

        def status(self) -> dict[str, object]:
            if self.host.name in dead:
                raise CommandFailed(self.host.name, ["ask_mon"], 1, "it is gone")
            return {"osdmap": {"num_up_osds": 3}, "pgmap": {"num_pgs": 0}}

    class UpSpot(Spot):
        def is_up(self) -> bool:
            return self.name not in dead

    class State:
        hosts = {name: UpSpot(name, "") for name in STORES}  # noqa: RUF012 - read alone
        osds = (1, 2, 3)

        def __init__(self, mons: tuple[str, ...]) -> None:
            self.cluster = rgw(mon=mons).cluster

    dead: set[str] = set()
    monkeypatch.setattr(running_rgw, "Monitor", Session)
    with running_rgw._asking(State(STORES)) as asked:  # type: ignore[arg-type]
        assert asked().whole
        dead |= {"store-1", "store-2"}
        assert asked().whole
        dead |= {"store-3"}
        with pytest.raises(CommandFailed, match="it is gone"):
            asked()


@pytest.mark.parametrize(("gateway", "both"), [("fd00::9", "false"), ("10.0.0.9", "true")])
def test_ceph_binds_to_ipv6_where_hosts_have_it(gateway: str, both: str) -> None:
    sites = {name: Spot(name, f"fd00::{number}") for number, name in enumerate(STORES, 1)}
    sites["gateway-1"] = Spot("gateway-1", gateway)
    place = RgwPlacement(mon=("store-1",), osd=STORES, radosgw=("gateway-1",))
    settings = RgwSettings()
    text = ceph_conf(settings, CephRoster(place, settings, sites), fsid="f")
    assert "mon_host = [v2:[fd00::1]:3300,v1:[fd00::1]:6789]\n" in text
    assert f"ms_bind_ipv4 = {both}\nms_bind_ipv6 = true\n" in text
    assert "ms_bind" not in ceph_conf(settings, CephRoster(place, settings, SITES), fsid="f")
