from pathlib import Path
from typing import Literal

import pytest
from pydantic import Field

from weighbridge.common.document import DocumentError
from weighbridge.common.errors import UsageError
from weighbridge.common.quantities import Bytes, Seconds
from weighbridge.common.record import Record
from weighbridge.gateways.gateway import STORES
from weighbridge.topologies import loader
from weighbridge.topologies.hardware import Hardware, HostSpec, Nic
from weighbridge.topologies.parameters import LayoutParameter, parameters

HARDWARE = Hardware.model_validate(
    {
        "name": "small",
        "kind": "fake",
        "hosts": {"client-1": {}, "gateway-1": {}, "store-1": {"disks": [{"size": "1GiB"}]}},
    }
)
LAYOUT = """name: trial
about: A trial
gateway: "null"
release: engine
place:
  target: gateway-1
"""


def faults_of(tmp_path: Path, text: str) -> str:
    (tmp_path / "trial.yaml").write_text(text)
    with pytest.raises(DocumentError) as error:
        loader.load_layout(tmp_path / "trial.yaml", HARDWARE)
    return str(error.value).replace(f"{tmp_path}/", "")


def test_every_shipped_layout_and_hardware_is_valid() -> None:
    hardware = {
        name: loader.load_hardware(path) for name, path in loader.shipped_hardware().items()
    }
    assert set(hardware) >= {"lab-cpu", "loopback", "this-machine"}
    layouts = loader.shipped_layouts()
    assert set(layouts) >= {"rgw-beast", "swift", "null"}
    for name, path in layouts.items():
        for where in ("this-machine",) if name == "existing" else ("lab-cpu", "lab-disks"):
            assert loader.load_layout(path, hardware[where]).layout.name == name


@pytest.mark.parametrize("name", ["lab-cpu", "lab-disks"])
def test_the_lab_promises_no_more_cpu_than_two_cores_have(name: str) -> None:
    hosts = loader.load_hardware(loader.shipped_hardware()[name]).hosts.values()
    assert sum(host.cpus or 0 for host in hosts) == pytest.approx(2.0)


def test_an_unknown_gateway_or_release_suggests_the_closest_known_one(
    tmp_path: Path,
) -> None:
    assert "trial.yaml:3:10: no gateway 'nul' (did you mean 'null'?)" in faults_of(
        tmp_path, LAYOUT.replace('"null"', "nul")
    )
    assert "trial.yaml:4:10: no release 'engin' of null (did you mean 'engine'?)" in faults_of(
        tmp_path, LAYOUT.replace("engine", "engin")
    )


def test_a_fault_inside_place_or_settings_is_reported_at_its_line(tmp_path: Path) -> None:
    text = faults_of(tmp_path, LAYOUT.replace("target:", "targt:") + "settings: {delay_ms: -1}\n")
    assert "trial.yaml:6:3: unknown key 'targt' (did you mean 'target'?)" in text
    assert "trial.yaml:7:22: delay_ms" in text


def test_a_missing_host_is_reported_where_the_layout_names_it(tmp_path: Path) -> None:
    text = faults_of(tmp_path, LAYOUT.replace("gateway-1", "gatway-1"))
    assert (
        "trial.yaml:6:11: hardware 'small' has no host 'gatway-1' (did you mean 'gateway-1'?)"
        in text
    )


def test_a_host_without_the_disks_a_service_needs_is_refused(tmp_path: Path) -> None:
    path = loader.shipped_layouts()["rgw-beast"]
    names = {
        f"{kind}-{number}": {} for kind in ("client", "gateway", "store") for number in (1, 2, 3)
    }
    diskless = Hardware.model_validate({"name": "diskless", "kind": "fake", "hosts": names})
    with pytest.raises(
        DocumentError, match=r"needs 1 disk\(s\); host 'store-1' of hardware 'diskless' has 0"
    ):
        loader.load_layout(path, diskless)


def test_running_gateways_cannot_be_reached_from_the_lab_and_none_are_started_on_this_machine() -> (
    None
):
    layouts, hardware = loader.shipped_layouts(), loader.shipped_hardware()
    with pytest.raises(
        DocumentError, match=r"existing\.yaml:7:10: hardware 'lab-cpu' has its own network"
    ):
        loader.load_layout(layouts["existing"], loader.load_hardware(hardware["lab-cpu"]))
    with pytest.raises(DocumentError, match=r"gateways that already run, and null must be started"):
        loader.load_layout(layouts["null"], loader.load_hardware(hardware["this-machine"]))


@pytest.mark.parametrize("hosts", ["{client-1: {cpus: 2}}", "{client-1: {}, gateway-1: {}}"])
def test_this_machine_is_one_host_without_limits(tmp_path: Path, hosts: str) -> None:
    (tmp_path / "h.yaml").write_text(f"name: h\nkind: existing\nhosts: {hosts}\n")
    with pytest.raises(DocumentError, match="one host without limits"):
        loader.load_hardware(tmp_path / "h.yaml")


def test_an_unknown_name_suggests_the_closest_shipped_one() -> None:
    with pytest.raises(UsageError, match="no layout 'rgw-beats' \\(did you mean 'rgw-beast'\\?\\)"):
        loader.find("rgw-beats", loader.shipped_layouts(), "layout")


def test_a_client_that_is_not_a_host_is_a_fault_of_the_hardware(tmp_path: Path) -> None:
    (tmp_path / "h.yaml").write_text(
        "name: h\nkind: fake\nclients: [client-2]\nhosts: {client-1: {}}\n"
    )
    with pytest.raises(DocumentError, match="client 'client-2' is not one of the hosts"):
        loader.load_hardware(tmp_path / "h.yaml")


@pytest.mark.parametrize(
    ("spec", "bound"),
    [
        ("{nic: 100000000000000000000Gbit}", "less than or equal to 10000000000000"),
        ("{disks: [{size: 1GiB, iops: 1000000000000}]}", "less than or equal to 1000000000"),
        (f"{{disks: {[{'size': '1GiB'}] * 101}}}", "at most 100 items"),
    ],
)
def test_limits_beyond_any_machine_are_refused_with_the_bound(
    tmp_path: Path, spec: str, bound: str
) -> None:
    (tmp_path / "h.yaml").write_text(f"name: h\nkind: lab\nhosts: {{client-1: {spec}}}\n")
    with pytest.raises(DocumentError, match=bound):
        loader.load_hardware(tmp_path / "h.yaml")


@pytest.mark.parametrize(
    "spec", ["{cpus: 0}", "{memory: 1MiB}", "{nic: 10}", "{disks: [{size: 1MiB}]}", "{cpus: .nan}"]
)
def test_limits_that_no_host_can_have_are_refused(tmp_path: Path, spec: str) -> None:
    (tmp_path / "h.yaml").write_text(f"name: h\nkind: fake\nhosts: {{client-1: {spec}}}\n")
    with pytest.raises(DocumentError, match=r"h\.yaml:3:"):
        loader.load_hardware(tmp_path / "h.yaml")


@pytest.mark.parametrize(
    ("nic", "kind", "words"),
    [
        ("{}", "lab", "needs a rate, a delay, or both"),
        ("{rate: 1Gbit, delai: 1ms}", "lab", "unknown key 'delai' (did you mean 'delay'?)"),
        ("{delay: 11s}", "lab", "less than or equal to 10"),
        ("{delay: 200}", "lab", "200 has no unit"),
        ("{delay: 1ms}", "fake", "is only for hosts of kind lab"),
    ],
)
def test_a_nic_that_no_host_can_have_is_refused(
    tmp_path: Path, nic: str, kind: str, words: str
) -> None:
    (tmp_path / "h.yaml").write_text(
        f"name: h\nkind: {kind}\nhosts: {{client-1: {{nic: {nic}}}}}\n"
    )
    with pytest.raises(DocumentError, match=r"h\.yaml:3:") as error:
        loader.load_hardware(tmp_path / "h.yaml")
    assert words in str(error.value)


def test_a_nic_has_a_rate_and_a_delay_and_its_rate_alone_may_be_written_short(
    tmp_path: Path,
) -> None:
    nics = "{a: {nic: 1Gbit}, client-1: {nic: {rate: 1Gbit, delay: 200us}}}"
    text = f"name: h\nkind: lab\nhosts: {nics}\n"
    (tmp_path / "h.yaml").write_text(text)
    hosts = loader.load_hardware(tmp_path / "h.yaml").hosts
    assert hosts["a"].nic == Nic.model_validate("1Gbit")
    nic = hosts["client-1"].nic
    assert nic is not None
    assert (nic.rate, nic.delay) == (10**9, pytest.approx(2e-4))


@pytest.mark.parametrize("period", ["10", "0.5ms", "2s"])
def test_a_period_that_no_kernel_accepts_or_without_a_unit_is_refused(
    tmp_path: Path, period: str
) -> None:
    (tmp_path / "h.yaml").write_text(
        f"name: h\nkind: lab\ncpu_period: {period}\nhosts: {{client-1: {{}}}}\n"
    )
    with pytest.raises(DocumentError, match=r"h\.yaml:3:"):
        loader.load_hardware(tmp_path / "h.yaml")


def test_quotas_have_a_short_period_by_default(tmp_path: Path) -> None:
    assert loader.load_hardware(loader.shipped_hardware()["lab-cpu"]).cpu_period == 0.005
    (tmp_path / "h.yaml").write_text("name: h\nkind: lab\nhosts: {client-1: {}}\n")
    assert loader.load_hardware(tmp_path / "h.yaml").cpu_period == 0.01


@pytest.mark.parametrize(
    ("hosts", "fault"),
    [
        ("{a: {cpuset: ''}}", "'' is not a list of CPUs such as 2-3,5"),
        ("{a: {cpuset: 3-2}}", "'3-2' is not a range of CPUs"),
        (
            "{a: {cpuset: 0-1}, b: {cpuset: '1,2'}}",
            "'a' and 'b' both have CPU 1: each CPU",
        ),
        ("{a: {cpuset: 0, cpus: 1.5}}", "1.5 CPUs do not fit into its own CPUs, 0"),
    ],
)
def test_cpus_that_hosts_cannot_have_for_their_own_are_refused(
    tmp_path: Path, hosts: str, fault: str
) -> None:
    path = tmp_path / "h.yaml"
    path.write_text(f"name: h\nkind: lab\nclients: [a]\nhosts: {hosts}\n")
    with pytest.raises(DocumentError) as error:
        loader.load_hardware(path)
    assert fault in str(error.value)


def test_only_lab_hosts_can_have_cpus_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "h.yaml"
    path.write_text("name: h\nkind: fake\nhosts: {client-1: {cpuset: 0}}\n")
    with pytest.raises(DocumentError, match=r"h\.yaml:3:.*is only for hosts of kind lab"):
        loader.load_hardware(path)


def test_a_host_has_as_much_cpu_as_its_quota_or_the_cpus_of_its_own() -> None:
    assert HostSpec().most_cpus is None
    assert HostSpec(cpuset="2-3,5").most_cpus == 3
    assert HostSpec(cpuset="2-3,5", cpus=1.5).most_cpus == 1.5


def test_hardware_survives_a_round_trip_through_json() -> None:
    hardware = loader.load_hardware(loader.shipped_hardware()["lab-cpu"])
    assert Hardware.model_validate_json(hardware.model_dump_json()) == hardware


def test_a_misspelt_kind_of_host_is_reported_at_its_place_with_a_suggestion(
    tmp_path: Path,
) -> None:
    (tmp_path / "h.yaml").write_text("name: h\nkind: fakee\nhosts: {client-1: {}}\n")
    with pytest.raises(DocumentError) as error:
        loader.load_hardware(tmp_path / "h.yaml")
    (fault,) = error.value.faults
    assert (fault.line, fault.column) == (2, 7)
    assert fault.message == "kind: no kind of host 'fakee' (did you mean 'fake'?)"


class Inner(Record):
    wait: Seconds = 1.5
    """How long one waits.

    And more."""


class Outer(Record):
    kind: Literal["a", "b"] = "a"
    size: Bytes = 65536
    """Size of a piece."""
    inner: Inner = Inner()
    count: int | None = None
    named: str
    many: tuple[Inner, ...] = ()
    by_name: dict[str, Inner] = Field(default_factory=dict)
    places: tuple[str, ...] = ("here", "there")


def test_every_setting_has_a_type_a_default_and_a_description() -> None:
    assert list(parameters(Outer)) == [
        LayoutParameter("kind", "a | b", "a", "kind"),
        LayoutParameter("size", "size", "64 KiB", "Size of a piece."),
        LayoutParameter("inner.wait", "time", "1.5s", "How long one waits. And more."),
        LayoutParameter("count", "number | none", "none", "count"),
        LayoutParameter("named", "text", "(must be given)", "named"),
        LayoutParameter("many[].wait", "time", "1.5s", "How long one waits. And more."),
        LayoutParameter("by_name.NAME.wait", "time", "1.5s", "How long one waits. And more."),
        LayoutParameter("places", "list", "here, there", "places"),
    ]


def test_every_gateway_lists_its_parameters() -> None:
    for kind in STORES.values():
        for one in parameters(kind.Settings):
            assert one.kind
            assert one.about


POOLED = """
name: mine
about: Runs already
gateway: existing
release: any
place: {}
settings:
  s3: {url: "http://127.0.0.1:1"}
  ceph:
    pool: bench
    host: gateway-2
"""
OBSERVING = """
name: cluster
kind: existing
hosts: {client-1: {}}
observed: {gateway-1: {ssh: {host: a}}}
"""


def test_the_host_of_a_pool_must_be_observed(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(POOLED)
    (tmp_path / "cluster.yaml").write_text(OBSERVING)
    hardware = loader.load_hardware(tmp_path / "cluster.yaml")
    with pytest.raises(
        DocumentError,
        match=r"mine\.yaml:11:11: hardware 'cluster' has no host 'gateway-2' among those that are "
        r"`observed` \(did you mean 'gateway-1'\?\)",
    ):
        loader.load_layout(tmp_path / "mine.yaml", hardware)
    (tmp_path / "mine.yaml").write_text(POOLED.replace("gateway-2", "gateway-1"))
    assert loader.load_layout(tmp_path / "mine.yaml", hardware).gateway.layers() == ("rados",)


@pytest.mark.parametrize(
    ("key", "value"),
    [("pool", "--all"), ("user", "bench"), ("keyring", "here"), ("conf", "/a b"), ("cluster", "x")],
)
def test_a_pool_of_which_something_is_no_name_or_path_is_refused_at_its_place(
    tmp_path: Path, key: str, value: str
) -> None:
    text = POOLED.replace("    pool: bench\n", "" if key == "pool" else "    pool: bench\n")
    (tmp_path / "mine.yaml").write_text(f'{text}    {key}: "{value}"\n')
    (tmp_path / "cluster.yaml").write_text(OBSERVING)
    hardware = loader.load_hardware(tmp_path / "cluster.yaml")
    with pytest.raises(DocumentError, match=rf"mine\.yaml:\d+:\d+: .*{key}|mine\.yaml:1[12]:"):
        loader.load_layout(tmp_path / "mine.yaml", hardware)
