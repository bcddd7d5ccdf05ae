"""Several radosgw and a front on stub hosts: order, addresses, and FastCGI where radosgw has it."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tests.gateways.rgw.planned_rgw import SITES, conf, rgw
from tests.gateways.stage import Stage
from tests.gateways.stub_host import StubHost
from weighbridge.common.errors import UsageError
from weighbridge.common.host import Host, Service
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.front import Backend, Behind, Front, front_of
from weighbridge.gateways.gateway import RunningGateway
from weighbridge.gateways.probe import Probe
from weighbridge.gateways.rgw import monitor, plan
from weighbridge.gateways.rgw import rgw as rgw_module
from weighbridge.gateways.rgw.monitor import effective, parsed_values
from weighbridge.gateways.rgw.rgw import Rgw
from weighbridge.gateways.rgw.settings import RgwSettings

FILE = "/etc/front.conf"


class PlainFront(Front):
    """A front with two daemons that does nothing."""

    label = "Plain front"
    port = 80
    refuses = ""
    wants_fastcgi = False

    def __init__(self) -> None:
        """No settings."""

    def files(self, address: str, backends: Sequence[Backend]) -> Mapping[str, str]:
        return {
            FILE: "".join(f"{address} {one.name} {one.address}:{one.port}\n" for one in backends)
        }

    def check(self, host: Host) -> None:
        if self.refuses:
            raise UsageError(self.refuses)

    def daemons(self, host: Host) -> tuple[Daemon, ...]:
        return (
            Daemon(host, Service("relay", ("true",))),
            Daemon(host, Service("front", ("true",)), self.port),
        )

    def facts(self, host: Host) -> dict[str, str]:
        return {"path": "through the front"}

    def probes(self, host: Host) -> tuple[Probe, ...]:
        return (Probe(host, "front", ("true",)),)

    def await_backends(self, host: Host) -> None:
        pass


class Fronted(Stage):
    """A layout with a front on stub hosts; `natives` is each `native` argument for the front."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, *, radosgw: str = "no FastCGI"
    ) -> None:
        super().__init__(folder)
        self.front = PlainFront()
        self.natives: list[bool] = []
        self.radosgw = radosgw

        def front(place: Any, settings: Any, behind: Behind) -> Front:
            real = front_of(place, settings, behind)
            self.front.wants_fastcgi = real is not None and real.wants_fastcgi
            self.natives.append(behind.fastcgi)
            return self.front

        for module in (rgw_module, plan):
            monkeypatch.setattr(module, "front_of", front)

    def answer(self, argv: Sequence[str], stdin: str) -> str:
        if "FCGX_" in " ".join(argv):
            return "yes\n" if self.radosgw == "FastCGI" else "no\n"
        return super().answer(argv, stdin)

    def gateway(self, settings: dict[str, object], front: str = "haproxy") -> Rgw:
        return rgw(settings, **{front: "gateway-1"})

    def up(self, settings: dict[str, object], front: str = "haproxy") -> RunningGateway:
        return self.gateway(settings, front).bring_up(self.hosts, self.hosts["client-1"], print)


@pytest.fixture
def fronted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fronted:
    return Fronted(tmp_path, monkeypatch)


def test_one_radosgw_creates_the_zone_before_the_others_start_and_the_front_starts_last(
    fronted: Fronted,
) -> None:
    fronted.up({"radosgw": {"daemons": 3}})
    when = fronted.when
    order = [
        when(f"start {name}")[0]
        for name in ("radosgw.0", "radosgw.1", "radosgw.2", "relay", "front")
    ]
    assert order == sorted(order)
    assert order[-1] < when("weighbridge.gateways.verify")[0]
    services = fronted.hosts["gateway-1"].services
    assert services["radosgw.2"].argv == ("radosgw", "-f", "-n", "client.rgw.gateway-1.2")


def test_endpoints_facts_probes_and_files_include_the_fronts(fronted: Fronted) -> None:
    running = fronted.up({"radosgw": {"daemons": 2}})
    address = fronted.hosts["gateway-1"].address
    assert [one.url for one in running.endpoints] == [
        f"http://{address}/auth/v1.0",
        f"http://{address}",
    ]
    assert running.facts["path"] == "through the front"
    names = [probe.name for probe in running.probes()]
    assert names[:2] == ["radosgw.gateway-1.0", "radosgw.gateway-1.1"]
    assert names[-1] == "front"
    written = fronted.hosts["gateway-1"].files[FILE]
    assert (
        written
        == f"{address} gateway-1-8000 {address}:8000\n{address} gateway-1-8001 {address}:8001\n"
    )
    assert [one.host for one in running.rendered if one.path == FILE] == ["gateway-1"]


def test_a_front_that_died_is_noticed(fronted: Fronted) -> None:
    running = fronted.up({})
    fronted.hosts["gateway-1"].dead.add("front")
    with pytest.raises(Exception, match="gateway-1: front: died"):
        running.check()


@pytest.mark.parametrize(
    ("radosgw", "fact", "frontends"),
    [
        ("no FastCGI", "none in this release's program", "beast endpoint={0}:8000"),
        (
            "FastCGI",
            "yes: Plain front speaks to it directly",
            "fastcgi socket_port=8000 socket_host={0}",
        ),
    ],
)
def test_a_radosgw_with_fastcgi_is_used_directly_and_others_answer_http(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, radosgw: str, fact: str, frontends: str
) -> None:
    fronted = Fronted(tmp_path, monkeypatch, radosgw=radosgw)
    running = fronted.up({"apache": {"path": "fastcgi"}}, "apache")
    assert fronted.natives[-1] == (radosgw == "FastCGI")
    assert running.facts["FastCGI of radosgw"] == fact
    host = fronted.hosts["gateway-1"]
    conf = str(host.files["/etc/ceph/ceph.conf"])
    assert f"rgw_frontends = {frontends.format(host.address)}" in conf
    assert ("rgw_print_continue = false" in conf) == (radosgw == "FastCGI")


def test_fastcgi_is_not_looked_for_where_apache_speaks_http(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fronted = Fronted(tmp_path, monkeypatch, radosgw="FastCGI")
    fronted.up({"apache": {"path": "http"}}, "apache")
    assert not any(fronted.natives)
    assert not fronted.when("FCGX_")


def test_faults_of_ceph_and_the_front_are_reported_together(fronted: Fronted) -> None:
    fronted.front.refuses = "line 3: no such word"
    gateway = fronted.gateway({"options": {"osd": {"osd_unheard_of": 1}}})
    with pytest.raises(
        UsageError, match=r"(?s)no option 'osd_unheard_of' in \[osd\].*line 3: no such word"
    ):
        gateway.preflight(fronted.hosts, print)
    assert not fronted.when("start")
    assert FILE in fronted.hosts["gateway-1"].files


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
    osds = rgw(settings).planned(SITES).osds
    assert [(one.device, one.journal_disk) for one in osds] == [("/dev/wb0", "/dev/wb1")] * 3
    assert conf(settings)["osd.1"]["osd_journal"] == "/var/lib/ceph/journal/1"
    text = plan.store_script(settings.osd, osds[:1])
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
    text = plan.store_script(settings.osd, rgw(settings).planned(SITES).osds[:2])
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
    roster = rgw(settings).planned(SITES)
    mine = [one for one in roster.osds if one.host == "store-1" and disk in one.disks]
    lines = plan.remount_script(settings.osd, mine, disk).splitlines()
    assert lines[::2] == [f"umount {folder}" for folder in remounted]
    assert [line.split()[-1] for line in lines[1::2]] == remounted


def test_one_osd_stripes_over_all_disks_of_its_host_by_btrfs() -> None:
    settings = RgwSettings.model_validate(
        {"osd": {"objectstore": "filestore", "filestore": {"filesystem": "btrfs", "raid0": True}}}
    )
    osds = rgw(settings).planned(SITES).osds
    assert [(one.host, one.device, one.more) for one in osds] == [
        (f"store-{number}", "/dev/wb0", ("/dev/wb1",)) for number in (1, 2, 3)
    ]
    text = plan.store_script(settings.osd, osds[:1])
    assert "mkfs.btrfs -q -f -K -d raid0 -m raid0 /dev/wb0 /dev/wb1 " in text
    assert ",device=/dev/wb0,device=/dev/wb1 /dev/wb0 /var/lib/ceph/osd/0" in text
    assert settings.osd.least_memory_bytes == settings.osd.memory_target
    assert "RAID 0" in plan.store_words(settings.osd)[0]


def test_filestore_on_ext4_gets_the_shorter_names_that_it_needs() -> None:
    osd = conf({"osd": {"objectstore": "filestore", "filestore": {"filesystem": "ext4"}}})["osd"]
    assert (osd["osd_max_object_name_len"], osd["osd_max_object_namespace_len"]) == ("256", "64")
    assert "osd_max_object_name_len" not in conf({"osd": {"objectstore": "filestore"}})["osd"]


def test_memstore_gets_the_layouts_number_of_osds_without_disks() -> None:
    settings = RgwSettings.model_validate(
        {"osd": {"objectstore": "memstore", "memstore": {"per_host": 2, "size": "64MiB"}}}
    )
    osds = rgw(settings).planned(SITES).osds
    assert [(one.number, one.host, one.device) for one in osds][2:4] == [
        (2, "store-2", None),
        (3, "store-2", None),
    ]
    assert conf(settings)["osd"]["memstore_device_bytes"] == str(64 << 20)
    assert "/dev/" not in plan.store_script(settings.osd, osds[:2])


KNOWN = (
    "fsid = 0\nosd_max_scrubs = 1\nosd_op_num_shards = 0\nrgw_frontends = beast "
    "port=7480\nmon_host = \n"
)
REFUSED = (
    "parse error setting 'osd_max_scrubs' to 'none' (strict_si_cast: unit prefix not "
    "recognized)\n\nunable to parse option\nUSAGE\n"
)
CONF = (
    "[global]\nfsid = x\n\n[osd]\nosd_max_scrubs = 0\n\n[osd.0]\nosd_op_num_shards = "
    "1\n\n[client]\nrgw_frontends = beast\n"
)


def host(folder: Path, asked: list[list[str]] | None = None) -> StubHost:
    def answer(argv: Sequence[str], stdin: str) -> str:
        if argv[0] == "ceph-conf":
            return KNOWN
        lines = [shlex.split(line.partition(" 2>&1")[0]) for line in argv[2].split("\n")]
        if asked is not None:
            asked.extend(lines)
        return "".join(
            f"{REFUSED if '--osd_max_scrubs=none' in line else '1'}\x1e0\x1f" for line in lines
        )

    return StubHost("gateway-1", "10.0.0.1", folder, [], answer, {})


def test_a_file_with_known_options_has_no_faults(tmp_path: Path) -> None:
    assert monitor.option_faults(host(tmp_path), "ceph-16", CONF, []) == []


def test_unknown_options_are_reported_by_section_with_the_closest_known_one(tmp_path: Path) -> None:
    conf = CONF + "[mon]\nosd_max_scrub = 1\n[osd.1]\nqqq = 1\n[osd.2]\nqqq = 1\n"
    assert monitor.option_faults(host(tmp_path), "ceph-16", conf, []) == [
        "ceph-16 has no option 'osd_max_scrub' in [mon] (did you mean 'osd_max_scrubs'?)",
        "ceph-16 has no option 'qqq' in [osd]",
    ]


def test_with_another_ones_settings_only_unknown_options_of_the_layout_are_refused(
    tmp_path: Path,
) -> None:
    conf = CONF + "[mon]\nqqq = 1\n[osd.1]\nrrr = 1\n"
    given = [{"rrr": 1}]
    assert monitor.option_faults(host(tmp_path), "ceph-17", conf, given, of_another=True) == [
        "ceph-17 has no option 'rrr' in [osd]"
    ]
    assert set(monitor.unknown_options(host(tmp_path), "ceph-17", conf)) == {"qqq", "rrr"}


def test_values_that_ceph_rejects_are_reported_in_its_words_without_its_usage_text(
    tmp_path: Path,
) -> None:
    asked: list[list[str]] = []
    given = {"osd_max_scrubs": "none", "osd_op_num_shards": True, "unknown_one": 1}
    assert monitor.option_faults(host(tmp_path, asked), "ceph-16", CONF, [given]) == [
        f"ceph-16: {REFUSED.splitlines()[0]}"
    ]
    assert [line[5] for line in asked] == ["--osd_max_scrubs=none", "--osd_op_num_shards=true"]


@pytest.mark.parametrize("value", ["$(touch x)", "a b'c", "; reboot"])
def test_a_value_is_passed_as_an_argument_never_as_a_command(tmp_path: Path, value: str) -> None:
    asked: list[list[str]] = []
    monitor.option_faults(host(tmp_path, asked), "ceph-16", CONF, [{"rgw_frontends": value}])
    assert asked[0][5] == f"--rgw_frontends={value}"


def test_a_daemons_section_overrides_its_kinds_which_overrides_global() -> None:
    conf = (
        "[global]\na = 1\nb = 1\nc = 1\n\n[client]\nb = 2\nc = 2\n\n[client.rgw.x]\nc = "
        "3\n\n[osd]\na = 9\n"
    )
    assert effective(conf, "client.rgw.x") == {"a": "1", "b": "2", "c": "3"}


def test_a_value_that_the_release_cannot_parse_is_refused_in_its_words(tmp_path: Path) -> None:
    given = "33554432\n\x1e0\x1fparse error setting 'rgw_x' to 'y'\n7\n\x1e0\x1f"
    host = StubHost("gateway-1", "10.0.0.1", tmp_path, [], lambda _, __: given, {})
    options = {"rgw_get_obj_window_size": "32M", "rgw_x": "y"}
    _, refused = parsed_values(host, "client.rgw.x", options)
    assert refused == ["parse error setting 'rgw_x' to 'y'"]
