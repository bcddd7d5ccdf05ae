"""A pass of power cuts: what it asks of disks, and when what fails is not the store."""

from collections.abc import Callable
from pathlib import Path

import pytest

from weighbridge.common.errors import CommandFailed, TargetError
from weighbridge.conductor.durability import DurabilityPass, why
from weighbridge.gateways.gateway import STORES
from weighbridge.results.run.durability import read_cuts
from weighbridge.suites import Durability
from weighbridge.topologies import fake
from weighbridge.topologies.deployment import StateFolders
from weighbridge.topologies.loader import load_hardware, load_layout, shipped_hardware

pytestmark = pytest.mark.long  # starts a store

TOY = Path(__file__).parents[2] / "support" / "toy_store"
LAYOUT = "name: bare\nabout: A toy\ngateway: toy\nrelease: toy-1\nplace: {server: gateway-1}\n"


Passing = Callable[..., DurabilityPass]


@pytest.fixture
def passing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Passing:
    monkeypatch.syspath_prepend(str(TOY))
    # Tests before this one may have had it look for stores already.
    monkeypatch.setattr(STORES, "_found", None)
    monkeypatch.setattr(STORES, "_loaded", {})
    (tmp_path / "bare.yaml").write_text(LAYOUT)
    (tmp_path / "logs").mkdir()
    hosts = load_hardware(shipped_hardware()["loopback"])

    def make(*, control: bool) -> DurabilityPass:
        return DurabilityPass(
            load_layout(tmp_path / "bare.yaml", hosts),
            hosts,
            StateFolders(state=tmp_path / "state", home=tmp_path / "home"),
            lambda _: None,
            wanted=Durability(cuts=2, load=1.0, sizes=(4096,), multipart=False, workers=2),
            seed=1,
            folder=tmp_path,
            control=control,
        )

    return make


@pytest.fixture
def one(passing: Passing) -> DurabilityPass:
    return passing(control=False)


def test_a_store_is_not_said_to_have_lost_anything_when_disks_failed_before_all_was_read(
    one: DurabilityPass, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cuts = 0
    cut = fake._FakePowerCuts.cut

    def fail(self: fake._FakePowerCuts) -> None:
        nonlocal cuts
        cuts += 1
        cut(self)
        if cuts == 3:  # after the load, before the first start, after it
            raise TargetError("vdisk: the journal's disk is full")

    monkeypatch.setattr(fake._FakePowerCuts, "cut", fail)
    with pytest.raises(TargetError, match="journal's disk is full"):
        one.run()
    assert read_cuts(tmp_path) == ()


def test_a_store_is_not_said_to_have_lost_anything_when_a_host_is_gone(
    one: DurabilityPass, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fake.FakeHost, "is_up", lambda host: host.name != "gateway-1")
    with pytest.raises(TargetError, match="gateway-1: gone before everything was read"):
        one.run()
    assert read_cuts(tmp_path) == ()


@pytest.mark.parametrize("control", [True, pytest.param(False, marks=pytest.mark.test_all)])
def test_only_a_control_has_disks_that_ignore_flushes(
    passing: Passing, monkeypatch: pytest.MonkeyPatch, control: bool
) -> None:
    obeyed: list[bool] = []
    monkeypatch.setattr(fake._FakePowerCuts, "record", lambda _, *, flushes: obeyed.append(flushes))
    passing(control=control).run()
    assert obeyed == [not control]


SCRIPT = ["sh", "-ec", "mkdir a\nmount b"]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            CommandFailed("store-1", SCRIPT, 32, "first\nno such disk\n"),
            "store-1: a command ended with 32: no such disk",
        ),
        (CommandFailed("store-1", ["sh"], None, ""), "store-1: a command took too long"),
        (TargetError("osd.0 did not come up\nlast lines"), "osd.0 did not come up"),
    ],
)
def test_why_a_store_does_not_serve_is_what_a_command_said_and_not_its_script(
    error: TargetError, said: str
) -> None:
    assert why(error) == said
