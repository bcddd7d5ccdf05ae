"""Releases that this suite has no settings for get those of another, and say so."""

from pathlib import Path

import pytest

from tests.gateways.stage import Stage
from weighbridge.common.document import DocumentError
from weighbridge.gateways.gateway import STORES
from weighbridge.gateways.known_release import taken_as, words
from weighbridge.topologies import loader
from weighbridge.topologies.reference import parse

KNOWN = ("ceph-14", "ceph-16", "ceph-18", "ceph-20")


@pytest.mark.parametrize(
    ("release", "other"),
    [
        ("ceph-16", "ceph-16"),
        ("ceph-17", "ceph-16"),
        ("ceph-18.2", "ceph-18"),
        ("ceph-21", "ceph-20"),
        ("ceph-9", "ceph-14"),
        ("ceph-100", "ceph-20"),
    ],
)
def test_an_unknown_release_gets_the_settings_of_the_last_one_before_it(
    release: str, other: str
) -> None:
    assert taken_as(release, KNOWN) == other


def test_releases_are_compared_by_their_numbers_not_as_text() -> None:
    assert taken_as("swift-2.9", ("swift-2.26", "swift-2.30")) == "swift-2.26"
    assert taken_as("swift-2.100", ("swift-2.26", "swift-2.30")) == "swift-2.30"


@pytest.mark.parametrize("release", ["swift-2.30", "ceph", "ceph-", "ceph-x", "ceph-16-1", "16"])
def test_what_is_no_release_of_a_store_is_not_taken(release: str) -> None:
    assert taken_as(release, KNOWN) is None


@pytest.mark.parametrize("kind", ["rgw", "swift"])
def test_each_release_that_has_another_ones_settings_names_one_that_has_its_own(kind: str) -> None:
    store = STORES[kind]
    assert {store.settings_of(name) for name in store.releases} == set(store.releases)
    suites = {image.suite for image in store.releases.values() if image.distribution == "Ubuntu"}
    assert suites == {"jammy", "noble"}


def test_other_kinds_take_only_the_releases_that_they_name() -> None:
    assert STORES["null"].settings_of("engine") == "engine"
    assert STORES["null"].settings_of("engine-2") is None


@pytest.mark.parametrize("reference", ["rgw-beast@ceph-21", "swift@swift-2.99"])
def test_lab_hosts_are_refused_a_release_without_packages_before_anything_starts(
    reference: str,
) -> None:
    lab = loader.load_hardware(loader.shipped_hardware()["lab-cpu"])
    wanted = parse(reference)
    path = loader.find(wanted.name, loader.shipped_layouts(), "layout")
    with pytest.raises(DocumentError, match="no archive that this suite knows has packages of"):
        loader.load_layout(path, lab, wanted)


@pytest.mark.parametrize(
    ("reference", "other"),
    [("rgw-beast@ceph-19", "ceph-18"), ("swift@swift-2.33", "swift-2.30")],
)
def test_a_release_with_packages_and_another_ones_settings_can_be_planned_on_lab_hosts(
    reference: str, other: str
) -> None:
    lab = loader.load_hardware(loader.shipped_hardware()["lab-cpu"])
    wanted = parse(reference)
    path = loader.find(wanted.name, loader.shipped_layouts(), "layout")
    gateway = loader.load_layout(path, lab, wanted).gateway
    assert gateway.image.suite == "noble"
    sites = lab.of.sites(lab)
    before = loader.load_layout(path, lab, parse(f"{wanted.name}@{other}")).gateway
    assert {one.path for one in gateway.render(sites)} == {one.path for one in before.render(sites)}


def test_facts_of_ceph_say_whose_settings_it_has_and_what_it_ignores(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.known = "fsid = 0\nosd_op_queue = wpq\n"
    facts = stage.rgw(release="ceph-17").facts
    said = facts["release settings"]
    assert said.startswith("those of ceph-16, the nearest that this suite has for ceph-17; its own")
    assert "ceph-17 has no option 'mon_allow_pool_size_one' in [mon]" in said
    assert "ceph-17 has no option 'fsid'" not in said
    assert facts["osd: osd_op_queue"] == "1"
    assert "osd: osd_max_scrubs" not in facts
    assert "release settings" not in Stage(tmp_path).rgw(release="ceph-16").facts


def test_facts_of_swift_say_whose_settings_it_has_and_what_it_ignores(tmp_path: Path) -> None:
    facts = Stage(tmp_path).swift(release="swift-2.33").facts
    said = facts["release settings"]
    assert said.startswith("those of swift-2.30, the nearest that this suite has for swift-2.33")
    assert "object-server.conf [DEFAULT]: Swift does not know the option 'bind_ip'" in said


def test_a_release_that_knows_everything_is_said_to() -> None:
    assert words("ceph-19", "ceph-18", ()).endswith("its own programs know every option of them")
