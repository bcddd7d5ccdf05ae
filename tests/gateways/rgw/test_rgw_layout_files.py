"""The shipped layouts of Ceph RGW: what they have in common, and errors with their place."""

import ast
import inspect
import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Self

import pytest
from pydantic import ValidationError

from tests.gateways.rgw.planned_rgw import SITES, STORES, Spot, conf, rgw
from tests.gateways.stage import Stage
from weighbridge.common.document import DocumentError
from weighbridge.common.errors import CommandFailed
from weighbridge.common.host import Completed
from weighbridge.gateways.rgw import running_rgw
from weighbridge.gateways.rgw import settings as networks
from weighbridge.gateways.rgw import settings as settings_module
from weighbridge.gateways.rgw.ceph_roster import CephRoster
from weighbridge.gateways.rgw.config import ceph_conf, keyring, pools
from weighbridge.gateways.rgw.rgw import Rgw
from weighbridge.gateways.rgw.settings import RgwPlacement, RgwSettings
from weighbridge.topologies.loader import (
    load_hardware,
    load_layout,
    shipped_hardware,
    shipped_layouts,
)

LAYOUTS = [name for name in shipped_layouts() if name.startswith("rgw-")]
HARDWARE = load_hardware(shipped_hardware()["lab-cpu"])


def shipped(name: str) -> Rgw:
    gateway = load_layout(shipped_layouts()[name], HARDWARE).gateway
    assert isinstance(gateway, Rgw)
    return gateway


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts_differ_only_in_their_gateway_not_in_their_store(name: str) -> None:
    mine, beast = shipped(name), shipped("rgw-beast")
    assert mine.settings.osd == beast.settings.osd
    kept = mine.settings.pools.model_copy(update={"ec": None})
    assert kept == beast.settings.pools
    assert (mine.settings.pools.ec is not None) == name.endswith("-ec")
    assert (mine.settings.log, mine.release) == (beast.settings.log, beast.release)
    assert (mine.place.mon, mine.place.osd, mine.place.radosgw) == (
        beast.place.mon,
        beast.place.osd,
        beast.place.radosgw,
    )
    assert mine.place.front in (None, "gateway-1")
    assert mine.settings.options == {}


def test_every_untuned_layout_has_the_same_number_of_radosgw_threads() -> None:
    threads = {
        name: shipped(name).settings.radosgw for name in LAYOUTS if not name.endswith("-tuned")
    }
    assert {one.threads * one.daemons for one in threads.values()} == {512}


def test_a_tuned_layout_differs_only_in_its_tuned_settings() -> None:
    tuned, beast = (
        load_layout(shipped_layouts()[name], HARDWARE).layout
        for name in ("rgw-beast-tuned", "rgw-beast")
    )
    assert (beast.tuned, tuned.place, tuned.release) == ("", beast.place, beast.release)
    assert tuned.tuned.startswith("for lab-cpu by `weighbridge tune rgw-beast`")
    one, other = shipped("rgw-beast-tuned").settings, shipped("rgw-beast").settings
    winner = {"frontend_options": {"request_timeout_ms": 0}}
    assert one == other.model_copy(update={"radosgw": other.radosgw.model_copy(update=winner)})


def test_every_layout_has_the_right_number_of_placement_groups_for_three_osds() -> None:
    """About 100 on each OSD, copies included: the target of Ceph's autoscaler."""
    for name in LAYOUTS:
        settings = shipped(name).settings.pools
        assert sum(pools(settings).values()) * settings.replicas / 3 == 100


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_can_be_rendered_without_any_host(name: str) -> None:
    shown = shipped(name).render(HARDWARE.sites)
    assert {one.host for one in shown} == {"gateway-1", "store-1", "store-2", "store-3"}
    assert not [one.path for one in shown if re.search(r"key = [^*]", one.text)]


BIG = "objectstore: memstore\n    memstore: {per_host: 3, size: 1GiB}"


@pytest.mark.parametrize(
    ("layout", "old", "new", "words"),
    [
        ("rgw-beast", "objectstore: bluestore", BIG, "mon, osd may take 3 GiB of memory; host '"),
        ("rgw-beast", "scrub: false", "memory_target: 512MiB", "or equal to 939524096"),
        ("rgw-civetweb", "ceph-16", "ceph-18", "of ceph-18 has no front end civetweb"),
        ("rgw-haproxy", "    http_reuse", "    port: 8001\n    http_reuse", "taken by radosgw"),
    ],
)
def test_what_cannot_be_is_refused_when_the_layout_is_read(
    tmp_path: Path, layout: str, old: str, new: str, words: str
) -> None:
    path = tmp_path / "layout.yaml"
    path.write_text(shipped_layouts()[layout].read_text().replace(old, new))
    with pytest.raises(DocumentError) as error:
        load_layout(path, HARDWARE)
    assert words in str(error.value)


def test_every_setting_is_documented() -> None:
    tree = ast.parse(inspect.getsource(settings_module))
    undocumented = [
        field.target.id
        for model in ast.walk(tree)
        if isinstance(model, ast.ClassDef) and model.name.endswith(("Settings", "Gc"))
        for field, following in pairwise(model.body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if not (isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant))
    ]
    # The fields of these records are documented.
    assert undocumented == ["gc", "filestore", "memstore", "radosgw", "osd", "pools"]


def test_the_mon_gets_the_failure_domain_for_its_rule() -> None:
    for domain, kind in (("host", "1"), ("osd", "0")):
        settings = RgwSettings.model_validate({"pools": {"failure_domain": domain}})
        conf = Rgw("ceph-16", shipped("rgw-beast").place, settings).render(HARDWARE.sites)[0].text
        section = conf.split("[mon]")[1].split("\n[")[0]
        assert f"osd_crush_chooseleaf_type = {kind}" in section


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
