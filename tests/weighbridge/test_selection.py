from pathlib import Path

import pytest

from stub_run import Run
from weighbridge import selection
from weighbridge.common.errors import UsageError
from weighbridge.conductor.plan import Plan, make_plan
from weighbridge.gateways.swift.settings import ProxySettings
from weighbridge.gateways.swift.swift import Swift
from weighbridge.selection import hardware_named, layout_for, layout_named, select
from weighbridge.suites import loader as suites
from weighbridge.topologies.auto import Machine
from weighbridge.topologies.loader import Planned


def test_what_the_programs_of_all_layouts_refuse_is_reported_at_once_and_nothing_stays(
    tmp_path: Path,
) -> None:
    run = Run(tmp_path)
    for name, gateway in run.gateways.items():
        gateway.unknown_option = f"{name}_threads"
    with pytest.raises(UsageError) as error:
        selection.check(run.planned, run.hardware, run.place, print)
    assert "rgw-a: no option 'rgw-a_threads'" in str(error.value)
    assert "swift-b: no option 'swift-b_threads'" in str(error.value)
    assert not list(run.place.deployments.iterdir())


def test_checking_starts_no_daemon(tmp_path: Path) -> None:
    run = Run(tmp_path)
    selection.check(run.planned, run.hardware, run.place, print)
    assert [gateway.did for gateway in run.gateways.values()] == [["preflight"], ["preflight"]]


def test_without_a_name_the_hardware_is_made_from_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Machine(cores=((0,), (1,)), memory_bytes=24 * 2**30, free_bytes=100 * 2**30)
    homes: list[Path] = []

    def looked(home: Path) -> Machine:
        homes.append(home)
        return here

    monkeypatch.setenv("WEIGHBRIDGE_HOME", str(tmp_path))
    monkeypatch.setattr(selection.auto, "this_machine", looked)
    chosen = selection.select("quick", (), None)
    assert chosen.hardware.name == "auto-2"
    assert chosen.hardware == selection.hardware_named("auto") == selection.hardware_named("auto-2")
    assert set(homes) == {tmp_path}
    with pytest.raises(UsageError, match=r"auto-4 was made from another machine; .* is auto-2"):
        selection.hardware_named("auto-4")
    assert [one.layout.name for one in chosen.layouts] == ["rgw-beast", "swift"]


def test_a_machine_too_small_for_auto_is_refused_with_the_faults_of_other_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = Machine(cores=((0,),), memory_bytes=4 * 2**30, free_bytes=100 * 2**30)
    monkeypatch.setattr(selection.auto, "this_machine", lambda home: here)
    with pytest.raises(UsageError) as error:
        selection.select("quick", ("rgw-best",), None)
    assert "hardware auto needs a machine with 8.2 GiB of memory" in str(error.value)
    assert "no layout 'rgw-best'" in str(error.value)


def test_the_plan_of_a_run_holds_what_was_made_of_its_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cores = tuple((cpu,) for cpu in range(16))
    here = Machine(cores=cores, memory_bytes=2**36, free_bytes=2**40)
    monkeypatch.setattr(selection.auto, "this_machine", lambda home: here)
    chosen = selection.select("quick", (), None)
    plan = make_plan(chosen.suite, chosen.hardware, chosen.layouts)
    back = Plan.model_validate_json(plan.model_dump_json())
    assert back.hardware == chosen.hardware
    assert back.hardware.name == "auto-16"
    assert back.hardware.about.startswith("1 client, 1 gateway and 3 storage hosts with 3 CPUs")
    assert back.hardware.hosts["gateway-1"].cpuset == "4-6"


def test_swift_waits_as_swift_itself_where_something_dies_unless_its_name_says_otherwise() -> None:
    hardware = hardware_named("lab-cpu")

    def proxy(one: Planned) -> dict[str, object]:
        gateway = one.gateway
        assert isinstance(gateway, Swift)
        return gateway.settings.proxy.model_dump()

    broken = suites.load(suites.find("degrade-lab"))
    shipped = layout_named("swift", hardware)
    assert layout_for(suites.load(suites.find("quick")), "swift", hardware).layout == shipped.layout
    faulty = layout_for(broken, "swift", hardware)
    assert proxy(shipped)["conn_timeout"] == 5
    own = ProxySettings().model_dump()
    assert proxy(faulty) == own
    assert (faulty.layout.name, faulty.layout.release) == ("swift", shipped.layout.release)
    named = "swift@swift-2.35:proxy.conn_timeout=3s:proxy.error_suppression={limit: 7}"
    mine = layout_for(broken, named, hardware)
    assert mine.layout.name == layout_named(named, hardware).layout.name
    assert proxy(mine) == {
        **own,
        "conn_timeout": 3,
        "error_suppression": {"limit": 7, "interval": 60},
    }
    beast = layout_named("rgw-beast", hardware)
    assert layout_for(broken, "rgw-beast", hardware).layout == beast.layout


def test_a_suite_with_a_fault_chooses_such_layouts() -> None:
    chosen = select("degrade-lab", ["swift"], "lab-cpu").layouts[0].layout
    assert chosen.settings["proxy"]["conn_timeout"] == "500ms"
    plain = select("quick", ["swift"], "lab-cpu").layouts[0].layout
    assert plain.settings["proxy"]["conn_timeout"] == "5s"
