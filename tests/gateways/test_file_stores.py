"""Stores that keep objects in files: what is started in which order, and what they say of it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.gateways.stage import STORES, Stage
from weighbridge.common.errors import UsageError
from weighbridge.gateways import ready
from weighbridge.gateways.garage.garage import Garage, GaragePlacement, GarageSettings
from weighbridge.gateways.gateway import Gateway, Unfit
from weighbridge.gateways.minio.minio import Minio, MinioPlacement, MinioSettings
from weighbridge.gateways.seaweedfs.seaweedfs import (
    Seaweedfs,
    SeaweedfsPlacement,
    SeaweedfsSettings,
)
from weighbridge.gateways.versitygw.versitygw import (
    Versitygw,
    VersitygwPlacement,
    VersitygwSettings,
)

PLACE = SeaweedfsPlacement(master="store-1", volume=STORES, filer="store-1", s3="gateway-1")
SEAWEEDFS = Seaweedfs("seaweedfs-4.48", PLACE, SeaweedfsSettings())
UNSYNCED = Seaweedfs("seaweedfs-4.48", PLACE, SeaweedfsSettings(fsync=False))
VERSITYGW = Versitygw("versitygw-1.8.0", VersitygwPlacement(server="store-1"), VersitygwSettings())
MINIO = Minio("minio-2026-02", MinioPlacement(server=STORES), MinioSettings())
GARAGE_PLACE = GaragePlacement(gateway="gateway-1", storage=STORES)
GARAGE = Garage("garage-2.5.0", GARAGE_PLACE, GarageSettings())
GARAGE_UNSYNCED = Garage("garage-2.5.0", GARAGE_PLACE, GarageSettings(metadata_fsync=False))
ALL = [SEAWEEDFS, VERSITYGW, MINIO, GARAGE]
DISKS = dict.fromkeys(STORES, 1)


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    stage = Stage(tmp_path)
    known, versions = stage.answer, "4.48 v1.8.0 2.5.0 7aac2a2c5b7c882e68c1ce017d8256be2feea27f"
    for host in stage.hosts.values():
        monkeypatch.setattr(
            host,
            "_answer",
            lambda argv, stdin: versions if "version" in argv[-1] else known(argv, stdin),
        )
    return stage


def test_seaweedfs_starts_its_servers_in_order_and_syncs_unless_it_is_told_not_to(
    stage: Stage,
) -> None:
    running = SEAWEEDFS.bring_up(stage.hosts, stage.hosts["client-1"], print)
    begun = stage.started()
    assert begun[0] == "store-1 master"
    assert sorted(begun[1:4]) == [f"{name} volume" for name in STORES]
    assert begun[4:] == ["store-1 filer", "gateway-1 s3"]
    assert len(stage.when("weed shell")) == 1
    assert running.facts["on disk"].endswith("before the name is on disk")
    volume = " ".join(stage.hosts["store-2"].services["volume"].argv)
    assert "-dir=/srv/disk0/volume,/srv/disk1/volume -max=0,0" in volume
    stage.events.clear()
    running = UNSYNCED.bring_up(stage.hosts, stage.hosts["client-1"], print)
    assert not stage.when("weed shell")
    assert running.facts["on disk"] == "acknowledges from the page cache"


def test_garage_makes_a_cluster_of_its_nodes_before_it_waits_for_it_and_syncs_unless_told_not_to(
    stage: Stage,
) -> None:
    running = GARAGE.bring_up(stage.hosts, stage.hosts["client-1"], print)
    assert sorted(stage.started()) == [f"{name} garage" for name in ("gateway-1", *STORES)]
    (met, joined), (ready_at,) = (
        stage.when("gateway-1 .*join_nodes"),
        stage.when("gateway-1 .*/ready"),
    )
    assert met < joined < ready_at
    assert running.facts["acknowledgement"].startswith("a write is acknowledged when 2 of 3 nodes")
    (endpoint,) = running.endpoints
    assert re.fullmatch("GK[0-9a-f]{24}", endpoint.user)
    texts = {one.host: one.text for one in running.rendered}
    parsed = {name: tomllib.loads(text) for name, text in texts.items()}
    assert {one["data_fsync"] and one["metadata_fsync"] for one in parsed.values()} == {True}
    assert [name for name, one in parsed.items() if "api_bind_addr" in one["s3_api"]] == [
        "gateway-1"
    ]
    disks = ["/srv/disk0/data", "/srv/disk1/data"]
    assert [one["path"] for one in parsed["store-2"]["data_dir"]] == disks
    running = GARAGE_UNSYNCED.bring_up(stage.hosts, stage.hosts["client-1"], print)
    assert running.facts["on disk"] == "acknowledges from the page cache"
    assert "metadata_fsync = false" in running.rendered[0].text


def test_a_node_of_garage_that_serves_clients_and_keeps_objects_does_both_on_its_disks(
    stage: Stage,
) -> None:
    place = GaragePlacement(gateway="store-1", storage=("store-1",))
    alone = Garage("garage-2.5.0", place, GarageSettings(replication_factor=1))
    (need,) = alone.needs().values()
    assert (need.disks, need.tier) == (1, "shared")
    (text,) = (tomllib.loads(one.text) for one in alone.render(stage.hosts))
    assert text["metadata_dir"] == "/srv/disk0/meta"
    assert text["s3_api"]["api_bind_addr"].endswith(":3900")


@pytest.mark.parametrize("gateway", ALL)
def test_a_store_that_lost_power_starts_again_on_what_its_disks_have(
    stage: Stage, gateway: Gateway
) -> None:
    running = gateway.bring_up(stage.hosts, stage.hosts["client-1"], print)
    assert stage.when("mkfs")
    before = stage.started()
    stage.events.clear()
    running.start_again(stage.hosts, print)
    assert sorted(stage.started()) == sorted(before)
    assert stage.when("mount -t xfs")
    assert not stage.when("mkfs")
    # Nodes that start at once would find each other after half a minute.
    assert len(stage.when("gateway-1 .*join_nodes")) == (gateway is GARAGE)


@pytest.mark.parametrize("gateway", ALL)
def test_no_key_is_in_a_command_line_or_in_what_is_shown(stage: Stage, gateway: Gateway) -> None:
    running = gateway.bring_up(stage.hosts, stage.hosts["client-1"], print)
    (endpoint,) = running.endpoints
    key = endpoint.key.get_secret_value()
    lines = [
        *(
            word
            for host in stage.hosts.values()
            for one in host.services.values()
            for word in one.argv
        ),
        *(what for _, what in stage.events),
        *(one.text for one in running.rendered),
    ]
    assert not [one for one in lines if key in one]


@pytest.mark.parametrize("gateway", ALL)
def test_a_host_with_another_version_of_the_program_is_refused_with_where_to_get_it(
    stage: Stage, gateway: Gateway
) -> None:
    gateway.preflight(stage.hosts, print)
    for host in stage.hosts.values():
        host._answer = lambda argv, stdin: "another version"
    with pytest.raises(UsageError, match="another version") as refused:
        gateway.preflight(stage.hosts, print)
    assert "/usr/local/bin" in (refused.value.advice or "")


def test_each_declares_what_is_on_disk_when_it_acknowledges() -> None:
    found = {
        "data on disk": (SEAWEEDFS, MINIO, GARAGE),
        "page cache": (UNSYNCED, VERSITYGW, GARAGE_UNSYNCED),
    }
    for answers, gateways in found.items():
        assert {one.structure(DISKS).answers for one in gateways} == {answers}


def test_more_copies_or_parity_than_there_are_hosts_or_disks_are_refused() -> None:
    place = SeaweedfsPlacement(master="a", volume=("a", "b"), filer="a", s3="c")
    with pytest.raises(Unfit, match="3 copies on separate hosts need as many volume servers"):
        Seaweedfs("seaweedfs-4.48", place, SeaweedfsSettings())
    nodes = GaragePlacement(gateway="c", storage=("a", "b"))
    with pytest.raises(Unfit, match="3 copies on separate hosts need as many nodes, not 2"):
        Garage("garage-2.5.0", nodes, GarageSettings())
    parity = Minio("minio-2026-02", MinioPlacement(server=STORES), MinioSettings(parity=2))
    (unfit,) = parity.lacks(DISKS)
    assert "parity 2 needs 4 disks, and the servers have 3" in str(unfit)
    assert MINIO.lacks(DISKS) == ()


def test_a_master_or_filer_without_a_disk_is_refused() -> None:
    with pytest.raises(ValueError, match="filer is on c, which has no volume server"):
        SeaweedfsPlacement(master="a", volume=("a", "b"), filer="c", s3="c")


def test_a_url_is_ready_when_it_says_so_often_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [(0, "refused"), (503, ""), (200, '"Url" "Url"'), (200, '"Url"' * 3)]
    monkeypatch.setattr(ready, "answer_of", lambda url: answers.pop(0))
    order = {"url": "http://a", "text": '"Url"', "times": 3, "deadline_s": 30}
    assert ready.run_order(order) == ""
    assert answers == []
    monkeypatch.setattr(ready, "answer_of", lambda url: (503, "no quorum"))
    assert ready.run_order({**order, "deadline_s": 0}) == "http://a is not ready: 503 no quorum"
