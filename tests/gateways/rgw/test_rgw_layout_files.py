"""The shipped layouts of Ceph RGW: what they have in common, and errors with their place."""

import ast
import inspect
import re
from itertools import pairwise
from pathlib import Path

import pytest

from weighbridge.common.document import DocumentError
from weighbridge.gateways.rgw import settings as settings_module
from weighbridge.gateways.rgw.config import pools
from weighbridge.gateways.rgw.rgw import Rgw
from weighbridge.gateways.rgw.settings import RgwSettings
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
