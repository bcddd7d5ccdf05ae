"""What runs again after it was killed, or after its disk failed, and what goes on meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gateways.stage import STORES, Stage
from weighbridge.common.errors import ServiceFailed
from weighbridge.gateways.rgw import monitor
from weighbridge.gateways.rgw.settings import RgwSettings
from weighbridge.gateways.swift.settings import SwiftPlacement, SwiftSettings
from weighbridge.gateways.swift.swift import Swift


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_osds_that_were_killed_are_started_again_however_slow_the_mon_is(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = stage.rgw()
    monkeypatch.setattr(monitor, "_WATCH_S", 0.0)  # it looks after daemons while it waits
    dead = [one for one in running.daemons() if one.service.name in {"osd.2", "osd.3"}]
    for one in dead:
        one.host.kill(one.service.name)
    before = len(stage.events)
    running.revive(dead)
    assert sorted(stage.started(before)) == ["store-2 osd.2", "store-2 osd.3"]


def test_a_mon_that_died_is_told_and_not_waited_for(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = stage.rgw()
    monkeypatch.setattr(monitor, "_WATCH_S", 0.0)
    stage.hosts["store-1"].kill("mon")
    dead = [one for one in running.daemons() if one.service.name == "osd.2"]
    with pytest.raises(ServiceFailed, match="mon"):
        running.revive(dead)


@pytest.mark.parametrize(
    ("objectstore", "remounted"), [("bluestore", ""), ("filestore", "umount /var/lib/ceph/osd/3")]
)
def test_only_the_osd_of_a_disk_that_answers_again_is_started_again(
    stage: Stage, objectstore: str, remounted: str
) -> None:
    running = stage.rgw(RgwSettings.model_validate({"osd": {"objectstore": objectstore}}))
    before = len(stage.events)
    running.mend_disk("store-2", "/dev/wb1")
    assert stage.started(before) == ["store-2 osd.3"]
    scripts = [what for _, what in stage.events[before:] if what.startswith("sh -ec")]
    assert ("umount" in "".join(scripts)) == bool(remounted)
    assert remounted in "".join(scripts)


def test_a_disk_of_swift_is_mounted_again_below_its_servers_and_a_front_beside_them_goes_on(
    stage: Stage,
) -> None:
    place = SwiftPlacement.model_validate(
        {"proxy": ("gateway-1",), "storage": STORES, "haproxy": "store-1"}
    )
    settings = SwiftSettings(disks=1)
    running = Swift("swift-2.30", place, settings).bring_up(
        stage.hosts, stage.hosts["client-1"], print
    )
    before = len(stage.events)
    running.mend_disk("store-1", "/dev/wb0")
    assert sorted(stage.started(before)) == [
        f"store-1 {one}-server" for one in ("account", "container", "object")
    ]
    (script,) = [what for _, what in stage.events[before:] if "umount" in what]
    lines = script.removeprefix("sh -ec ").split("\n")
    # The second place of the same file system first: it would keep the disk busy.
    assert lines[:2] == ["umount /srv/database/db0", "umount /srv/node/d0"]
    assert lines[2].endswith("/dev/wb0 /srv/node/d0")
