"""The spaces of parameters that ship: whole, and such that each of their settings can be tried on
the layout that they name.
"""

from dataclasses import dataclass

import pytest

from weighbridge.common.document import Document
from weighbridge.common.scope import SCOPES
from weighbridge.suites.suite import Suite
from weighbridge.suites.tuning import Level, Parameter, Tuning, loader
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.loader import (
    Planned,
    changed_layout,
    find,
    load_hardware,
    load_layout,
    shipped_hardware,
    shipped_layouts,
)
from weighbridge.topologies.reference import parse
from weighbridge.tuning.course import Course
from weighbridge.tuning.preparation import read, ready

SPACES = [
    "apache-mpm",
    "haproxy",
    "rgw-beast",
    "rgw-beast-objects",
    "rgw-civetweb",
    "swift-object",
    "swift-proxy",
]


@dataclass(frozen=True)
class Site:
    """Where a host would be."""

    name: str
    address: str
    disks: tuple[str, ...]


SITES = {
    name: Site(name, f"10.80.0.{number}", ("/dev/wb0",) if name.startswith("store") else ())
    for number, name in enumerate(
        ("client-1", "gateway-1", "store-1", "store-2", "store-3"), start=10
    )
}
STUDY = (
    *(
        "start_servers",
        "min_spare_threads",
        "max_spare_threads",
        "server_limit",
        "thread_limit",
        "threads_per_child",
    ),
    *("max_request_workers", "max_connections_per_child"),
)


@dataclass(frozen=True)
class Space:
    document: Document
    tuning: Tuning
    suite: Suite
    baseline: Planned
    hardware: Hardware

    @property
    def tried(self) -> list[tuple[Parameter, Level]]:
        return [
            (parameter, level) for parameter in self.tuning.parameters for level in parameter.levels
        ]

    def arm(self, parameter: Parameter, level: Level) -> Planned:
        number = self.tuning.parameters.index(parameter)
        origin = self.document.fault_at(("parameters", number), "")
        return changed_layout(
            self.baseline, self.hardware, {parameter.key: level.value, **level.also}, origin
        )


@pytest.fixture(params=SPACES)
def space(request: pytest.FixtureRequest) -> Space:
    document, tuning = loader.load(loader.find(request.param))
    reference = parse(tuning.layout)
    hardware = load_hardware(shipped_hardware()[tuning.hardware or "lab-small"])
    baseline = load_layout(find(reference.name, shipped_layouts(), "layout"), hardware, reference)
    return Space(document, tuning, loader.suite_of(document, tuning), baseline, hardware)


def test_these_spaces_ship_each_under_the_name_of_its_file() -> None:
    assert sorted(loader.shipped()) == SPACES
    for name in SPACES:
        assert loader.load(loader.find(name))[1].name == name


def test_every_setting_by_itself_makes_a_layout_that_is_whole_and_another_one(space: Space) -> None:
    arms = [space.arm(parameter, level) for parameter, level in space.tried]
    assert all(arm.layout.settings != space.baseline.layout.settings for arm in arms)
    gateways = [
        arm.gateway.render(SITES) for arm in arms
    ]  # what daemons are given, not what the layout says
    unlike = [texts for texts in gateways if texts != space.baseline.gateway.render(SITES)]
    assert len(unlike) == len(arms)
    assert len({arm.layout.name for arm in arms}) == len(arms)


def test_a_parameter_says_what_it_is_what_it_does_its_trap_and_where_that_is_from(
    space: Space,
) -> None:
    for parameter in space.tuning.parameters:
        assert all((parameter.option, parameter.effect, parameter.trap, parameter.reference)), (
            parameter.key
        )
        assert parameter.effect.endswith(".")
        assert parameter.trap.endswith(".")


def test_a_scope_is_no_less_than_what_the_gateway_knows_to_be_needed(space: Space) -> None:
    kind = type(space.baseline.gateway)
    for parameter, level in space.tried:
        said = parameter.scope
        assert said is not None, parameter.key
        assert said != "cluster", (
            f"{parameter.key}: trials on either side of a new deployment are not neighbours"
        )
        # What a running daemon takes it is asked when it runs; a table of all options there is
        # none.
        least = "nothing" if said == "nothing" else kind.scope(parameter.key)
        assert SCOPES.index(said) >= SCOPES.index(least), parameter.key
        assert all(kind.scope(key) != "cluster" for key in level.also)


def test_a_default_is_that_of_every_release_or_of_releases_that_there_are(space: Space) -> None:
    releases = type(space.baseline.gateway).releases
    for parameter in space.tuning.parameters:
        if isinstance(parameter.default, dict):
            assert set(parameter.default) <= set(releases), parameter.key


def test_one_parameter_cannot_matter_and_says_so(space: Space) -> None:
    dummies = [
        parameter
        for parameter in space.tuning.parameters
        if parameter.effect.startswith("The dummy. ")
    ]
    assert len(dummies) == 1


def test_a_space_has_the_parameters_that_a_screen_is_good_for(space: Space) -> None:
    # Design rule: 12 to 16 factors; here what one of these daemons has that may matter at such a
    # load.
    assert 8 <= len(space.tuning.parameters) <= 16


@pytest.mark.parametrize("name", SPACES)
def test_every_setting_can_be_judged_and_the_winner_confirmed_within_the_budget(name: str) -> None:
    found = ready(*read(name))
    assert found.tuning.budget is not None
    assert Course(found, attest=True).least_s() <= found.tuning.budget


def test_there_are_trials_enough_for_a_claim(space: Space) -> None:
    assert space.tuning.trials.least >= 5
    assert space.tuning.confirm >= 5


def test_apaches_space_has_every_directive_of_the_studys_block() -> None:
    _, tuning = loader.load(loader.find("apache-mpm"))
    assert {f"apache.mpm.{name}" for name in STUDY} <= {
        parameter.key for parameter in tuning.parameters
    }
