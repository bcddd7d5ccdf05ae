"""BlueStore, FileStore and MemStore in ceph.conf and in what hosts need."""

import pytest
from pydantic import ValidationError

from tests.gateways.rgw.planned_rgw import PLACE, SITES, conf, rgw
from weighbridge.gateways.rgw import objectstore
from weighbridge.gateways.rgw.ceph_roster import CephRoster
from weighbridge.gateways.rgw.settings import RgwSettings


@pytest.mark.parametrize(
    ("osd", "message"),
    [
        ({"filestore": {"filesystem": "xfs"}}, "filestore: given, but objectstore is bluestore"),
        (
            {"objectstore": "memstore", "filestore": {}},
            "filestore: given, but objectstore is memstore",
        ),
        ({"objectstore": "memstore", "disks": 1}, "disks: given, but memstore uses none"),
        (
            {"objectstore": "filestore", "filestore": {"journal": "own"}, "disks": 1},
            "needs another disk",
        ),
        ({"objectstore": "filestore", "filestore": {"filesystem": "zfs"}}, "xfs"),
        (
            {"objectstore": "filestore", "filestore": {"raid0": True}},
            "xfs cannot stripe over disks by itself, only btrfs can",
        ),
    ],
)
def test_settings_of_another_object_store_are_refused(osd: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        RgwSettings.model_validate({"osd": osd})


@pytest.mark.parametrize(
    ("osd", "disks", "memory_mib"),
    [
        ({}, 1, 896),
        ({"disks": 2, "memory_target": "1GiB"}, 2, 2048),
        ({"objectstore": "filestore", "filestore": {"journal": "own"}}, 2, 896),
        ({"objectstore": "memstore", "memstore": {"per_host": 2, "size": "1GiB"}}, 0, 2048),
    ],
)
def test_osd_hosts_need_the_disks_and_memory_of_their_store(
    osd: dict[str, object], disks: int, memory_mib: int
) -> None:
    needs = rgw({"osd": osd}).needs()
    assert (needs["store-2"].disks, needs["store-2"].memory_bytes) == (disks, memory_mib << 20)
    assert (needs["gateway-1"].disks, needs["gateway-1"].memory_bytes) == (0, 0)


def test_separate_journals_use_the_last_disk_of_each_host() -> None:
    settings = RgwSettings.model_validate(
        {"osd": {"objectstore": "filestore", "filestore": {"journal": "own"}}}
    )
    osds = CephRoster(PLACE, settings, SITES).osds
    assert [(one.device, one.journal_disk) for one in osds] == [("/dev/wb0", "/dev/wb1")] * 3
    assert conf(settings)["osd.1"]["osd_journal"] == "/var/lib/ceph/journal/1"
    text = objectstore.script(settings.osd, osds[:1])
    assert (
        text.index("mkfs.xfs -q -f -K /dev/wb1")
        < text.index("/dev/wb0")
        < text.index("ceph-osd --mkfs")
    )


@pytest.mark.parametrize("filesystem", ["xfs", "btrfs", "ext4"])
def test_file_systems_are_created_without_discards_and_mounted_without_access_times(
    filesystem: str,
) -> None:
    settings = RgwSettings.model_validate(
        {"osd": {"objectstore": "filestore", "filestore": {"filesystem": filesystem}}}
    )
    text = objectstore.script(settings.osd, CephRoster(PLACE, settings, SITES).osds[:2])
    assert text.count(f"mkfs.{filesystem} ") == 2
    assert text.count(f"mount -t {filesystem} -o noatime,") == 2
    assert text.count(" -K " if filesystem != "ext4" else " nodiscard,") == 2


@pytest.mark.parametrize(
    ("osd", "disk", "remounted"),
    [
        ({"objectstore": "bluestore"}, "/dev/wb0", []),
        ({"objectstore": "filestore"}, "/dev/wb1", ["/var/lib/ceph/osd/1"]),
        (
            {"objectstore": "filestore", "filestore": {"filesystem": "btrfs", "raid0": True}},
            "/dev/wb1",
            ["/var/lib/ceph/osd/0"],
        ),
        (
            {"objectstore": "filestore", "filestore": {"journal": "own"}},
            "/dev/wb1",
            ["/var/lib/ceph/journal"],
        ),
    ],
)
def test_only_file_systems_of_a_disk_that_failed_are_mounted_again(
    osd: dict[str, object], disk: str, remounted: list[str]
) -> None:
    settings = RgwSettings.model_validate({"osd": osd})
    roster = CephRoster(PLACE, settings, SITES)
    mine = [one for one in roster.osds if one.host == "store-1" and disk in one.disks]
    lines = objectstore.remounts(settings.osd, mine, disk).splitlines()
    assert lines[::2] == [f"umount {folder}" for folder in remounted]
    assert [line.split()[-1] for line in lines[1::2]] == remounted


def test_one_osd_stripes_over_all_disks_of_its_host_by_btrfs() -> None:
    settings = RgwSettings.model_validate(
        {"osd": {"objectstore": "filestore", "filestore": {"filesystem": "btrfs", "raid0": True}}}
    )
    osds = CephRoster(PLACE, settings, SITES).osds
    assert [(one.host, one.device, one.more) for one in osds] == [
        (f"store-{number}", "/dev/wb0", ("/dev/wb1",)) for number in (1, 2, 3)
    ]
    text = objectstore.script(settings.osd, osds[:1])
    assert "mkfs.btrfs -q -f -K -d raid0 -m raid0 /dev/wb0 /dev/wb1 " in text
    assert ",device=/dev/wb0,device=/dev/wb1 /dev/wb0 /var/lib/ceph/osd/0" in text
    assert settings.osd.least_memory_bytes == settings.osd.memory_target
    assert "RAID 0" in objectstore.words(settings.osd)[0]


def test_filestore_on_ext4_gets_the_shorter_names_that_it_needs() -> None:
    osd = conf({"osd": {"objectstore": "filestore", "filestore": {"filesystem": "ext4"}}})["osd"]
    assert (osd["osd_max_object_name_len"], osd["osd_max_object_namespace_len"]) == ("256", "64")
    assert "osd_max_object_name_len" not in conf({"osd": {"objectstore": "filestore"}})["osd"]


def test_memstore_gets_the_layouts_number_of_osds_without_disks() -> None:
    settings = RgwSettings.model_validate(
        {"osd": {"objectstore": "memstore", "memstore": {"per_host": 2, "size": "64MiB"}}}
    )
    osds = CephRoster(PLACE, settings, SITES).osds
    assert [(one.number, one.host, one.device) for one in osds][2:4] == [
        (2, "store-2", None),
        (3, "store-2", None),
    ]
    assert conf(settings)["osd"]["memstore_device_bytes"] == str(64 << 20)
    assert "/dev/" not in objectstore.script(settings.osd, osds[:2])
