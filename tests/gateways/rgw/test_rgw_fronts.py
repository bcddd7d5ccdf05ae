"""Several radosgw and a front on stub hosts: order, addresses, and FastCGI where radosgw has it."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.gateways.stage import STORES, Stage
from weighbridge.common.errors import UsageError
from weighbridge.common.host import Host, Service
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.front import Backend, Front
from weighbridge.gateways.gateway import RunningGateway
from weighbridge.gateways.probe import Probe
from weighbridge.gateways.rgw.cluster import CephCluster
from weighbridge.gateways.rgw.rgw import Rgw
from weighbridge.gateways.rgw.settings import RgwPlacement, RgwSettings

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


class Fronted:
    """A layout with a front on stub hosts; `natives` is each `native` argument for the front."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, *, radosgw: str = "no FastCGI"
    ) -> None:
        self.stage = Stage(folder)
        self.front = PlainFront()
        self.natives: list[bool] = []
        self.radosgw = radosgw
        answer, planned = self.stage.answer, CephCluster.front

        def listen(argv: Sequence[str], stdin: str) -> str:
            return (
                ("yes\n" if self.radosgw == "FastCGI" else "no\n")
                if "FCGX_" in " ".join(argv)
                else answer(argv, stdin)
            )

        def front(cluster: CephCluster, *, native: bool | None = None) -> Front:
            if native is not None:
                self.natives.append(native)
            real = planned(cluster)
            self.front.wants_fastcgi = real is not None and real.wants_fastcgi
            return self.front

        for host in self.stage.hosts.values():
            monkeypatch.setattr(host, "_answer", listen)
        monkeypatch.setattr(CephCluster, "front", front)

    def gateway(self, settings: dict[str, object], front: str = "haproxy") -> Rgw:
        place = RgwPlacement.model_validate(
            {"mon": "store-1", "osd": STORES, "radosgw": ("gateway-1",), front: "gateway-1"}
        )
        return Rgw("ceph-16", place, RgwSettings.model_validate(settings))

    def up(self, settings: dict[str, object], front: str = "haproxy") -> RunningGateway:
        return self.gateway(settings, front).bring_up(
            self.stage.hosts, self.stage.hosts["client-1"], print
        )


@pytest.fixture
def fronted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fronted:
    return Fronted(tmp_path, monkeypatch)


def test_one_radosgw_creates_the_zone_before_the_others_start_and_the_front_starts_last(
    fronted: Fronted,
) -> None:
    fronted.up({"radosgw": {"daemons": 3}})
    when = fronted.stage.when
    order = [
        when(f"start {name}")[0]
        for name in ("radosgw.0", "radosgw.1", "radosgw.2", "relay", "front")
    ]
    assert order == sorted(order)
    assert order[-1] < when("weighbridge.gateways.verify")[0]
    services = fronted.stage.hosts["gateway-1"].services
    assert services["radosgw.2"].argv == ("radosgw", "-f", "-n", "client.rgw.gateway-1.2")


def test_endpoints_facts_probes_and_files_include_the_fronts(fronted: Fronted) -> None:
    running = fronted.up({"radosgw": {"daemons": 2}})
    address = fronted.stage.hosts["gateway-1"].address
    assert [one.url for one in running.endpoints] == [
        f"http://{address}/auth/v1.0",
        f"http://{address}",
    ]
    assert running.facts["path"] == "through the front"
    names = [probe.name for probe in running.probes()]
    assert names[:2] == ["radosgw.gateway-1.0", "radosgw.gateway-1.1"]
    assert names[-1] == "front"
    written = fronted.stage.hosts["gateway-1"].files[FILE]
    assert (
        written
        == f"{address} gateway-1-8000 {address}:8000\n{address} gateway-1-8001 {address}:8001\n"
    )
    assert [one.host for one in running.rendered if one.path == FILE] == ["gateway-1"]


def test_a_front_that_died_is_noticed(fronted: Fronted) -> None:
    running = fronted.up({})
    fronted.stage.hosts["gateway-1"].dead.add("front")
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
    assert {*fronted.natives} == {radosgw == "FastCGI"}
    assert running.facts["FastCGI of radosgw"] == fact
    host = fronted.stage.hosts["gateway-1"]
    conf = str(host.files["/etc/ceph/ceph.conf"])
    assert f"rgw_frontends = {frontends.format(host.address)}" in conf
    assert ("rgw_print_continue = false" in conf) == (radosgw == "FastCGI")


def test_fastcgi_is_not_looked_for_where_apache_speaks_http(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fronted = Fronted(tmp_path, monkeypatch, radosgw="FastCGI")
    fronted.up({"apache": {"path": "http"}}, "apache")
    assert not any(fronted.natives)
    assert not fronted.stage.when("FCGX_")


def test_faults_of_ceph_and_the_front_are_reported_together(fronted: Fronted) -> None:
    fronted.front.refuses = "line 3: no such word"
    gateway = fronted.gateway({"options": {"osd": {"osd_unheard_of": 1}}})
    with pytest.raises(
        UsageError, match=r"(?s)no option 'osd_unheard_of' in \[osd\].*line 3: no such word"
    ):
        gateway.preflight(fronted.stage.hosts, print)
    assert not fronted.stage.when("start")
    assert FILE in fronted.stage.hosts["gateway-1"].files
