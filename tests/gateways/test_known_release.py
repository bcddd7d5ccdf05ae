"""Known releases that this suite has no settings for get those of another, and say so."""

from pathlib import Path

import pytest

from tests.gateways.stage import Stage
from weighbridge.common.document import DocumentError
from weighbridge.gateways.gateway import STORES, Gateway, words
from weighbridge.topologies import loader
from weighbridge.topologies.loader import parse


@pytest.mark.parametrize("kind", ["rgw", "swift"])
def test_each_release_that_has_another_ones_settings_names_one_that_has_its_own(kind: str) -> None:
    store = STORES[kind]
    others = {name: store.settings_elsewhere(name) for name in store.releases}
    assert {others[other] for other in others.values() if other} == {None}
    suites = {image.suite for image in store.releases.values() if image.distribution == "Ubuntu"}
    assert suites == {"jammy", "noble"}


LAB = loader.load_hardware(loader.shipped_hardware()["lab-cpu"])


def planned(reference: str) -> Gateway:
    wanted = parse(reference)
    path = loader.find(wanted.name, loader.shipped_layouts(), "layout")
    return loader.load_layout(path, LAB, wanted).gateway


@pytest.mark.parametrize(
    ("reference", "known"),
    [("rgw-beast@ceph-21", "ceph-20"), ("swift@swift-2.99", "swift-2.38"), ("null@2", "engine")],
)
def test_an_unknown_release_is_refused_with_the_known_ones(reference: str, known: str) -> None:
    with pytest.raises(DocumentError, match=f"no release .*known: .*{known}"):
        planned(reference)


@pytest.mark.parametrize(
    ("layout", "release", "other"),
    [("rgw-beast", "ceph-19", "ceph-18"), ("swift", "swift-2.33", "swift-2.30")],
)
def test_a_release_with_packages_and_another_ones_settings_can_be_planned_on_lab_hosts(
    layout: str, release: str, other: str
) -> None:
    gateway, before = planned(f"{layout}@{release}"), planned(f"{layout}@{other}")
    assert gateway.image.suite == "noble"
    sites = LAB.of.sites(LAB)
    assert {one.path for one in gateway.render(sites)} == {one.path for one in before.render(sites)}


def test_facts_of_ceph_say_whose_settings_it_has_and_what_it_ignores(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.known = "fsid = 0\nosd_op_queue = wpq\n"
    facts = stage.rgw(release="ceph-17").facts
    said = facts["release settings"]
    assert said.startswith("those of ceph-16, as")
    assert "ceph-17 has no option 'mon_allow_pool_size_one' in [mon]" in said
    assert "ceph-17 has no option 'fsid'" not in said
    assert facts["osd: osd_op_queue"] == "1"
    assert "osd: osd_max_scrubs" not in facts
    assert "release settings" not in Stage(tmp_path).rgw(release="ceph-16").facts


def test_facts_of_swift_say_whose_settings_it_has_and_what_it_ignores(tmp_path: Path) -> None:
    facts = Stage(tmp_path).swift(release="swift-2.33").facts
    said = facts["release settings"]
    assert said.startswith("those of swift-2.30, as")
    assert "object-server.conf [DEFAULT]: Swift does not know the option 'bind_ip'" in said


def test_a_release_that_knows_everything_is_said_to() -> None:
    assert words("ceph-19", "ceph-18", ()).endswith("its own programs know every option of them")
