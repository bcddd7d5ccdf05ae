"""The shipped parameter spaces: valid, and each setting can be tried on its layout."""

from dataclasses import dataclass

import pytest

from weighbridge.common.document import Document
from weighbridge.common.structure import SCOPES
from weighbridge.suites.suite import Suite
from weighbridge.suites.tuning import Level, Parameter, Tuning, loader
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.loader import (
    Planned,
    changed_layout,
    find,
    load_hardware,
    load_layout,
    parse,
    shipped_hardware,
    shipped_layouts,
)
from weighbridge.tuning.course import Course
from weighbridge.tuning.preparation import prepare, read

SPACES = sorted(loader.shipped())


@dataclass(frozen=True)
class Site:
    """A placeholder for a host."""

    name: str
    address: str
    disks: tuple[str, ...]


SITES = {
    name: Site(name, f"10.80.0.{number}", ("/dev/wb0",) if name.startswith("store") else ())
    for number, name in enumerate(
        ("client-1", "gateway-1", "store-1", "store-2", "store-3"), start=10
    )
}
STUDY_DIRECTIVES = (
    *("start_servers", "server_limit", "thread_limit", "threads_per_child"),
    *("min_spare_threads", "max_spare_threads"),
    *("max_request_workers", "max_connections_per_child"),
)


@dataclass(frozen=True)
class ParameterSpace:
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

    def variant(self, parameter: Parameter, level: Level) -> Planned:
        number = self.tuning.parameters.index(parameter)
        origin = self.document.fault_at(("parameters", number), "")
        return changed_layout(
            self.baseline, self.hardware, {parameter.key: level.value, **level.also}, origin
        )


@pytest.fixture(params=SPACES)
def space(request: pytest.FixtureRequest) -> ParameterSpace:
    document, tuning = loader.load(loader.find(request.param))
    reference = parse(tuning.layout)
    hardware = load_hardware(shipped_hardware()[tuning.hardware or "lab-cpu"])
    baseline = load_layout(find(reference.name, shipped_layouts(), "layout"), hardware, reference)
    return ParameterSpace(document, tuning, loader.suite_of(document, tuning), baseline, hardware)


def test_each_space_has_the_name_of_its_file() -> None:
    assert SPACES
    for name in SPACES:
        assert loader.load(loader.find(name))[1].name == name


def test_every_setting_makes_a_valid_and_different_layout(space: ParameterSpace) -> None:
    variants = [space.variant(parameter, level) for parameter, level in space.tried]
    assert all(variant.layout.settings != space.baseline.layout.settings for variant in variants)
    baseline = space.baseline.gateway.render(SITES)  # the daemons' files, not the layout's text
    assert all(variant.gateway.render(SITES) != baseline for variant in variants)
    assert len({variant.layout.name for variant in variants}) == len(variants)


def test_a_parameter_has_an_option_effect_trap_and_reference(space: ParameterSpace) -> None:
    for parameter in space.tuning.parameters:
        assert all((parameter.option, parameter.effect, parameter.trap, parameter.reference)), (
            parameter.key
        )
        assert parameter.effect.endswith(".")
        assert parameter.trap.endswith(".")


def test_a_scope_is_at_least_what_the_gateway_requires(space: ParameterSpace) -> None:
    kind = type(space.baseline.gateway)
    for parameter, level in space.tried:
        scope = parameter.scope
        assert scope is not None, parameter.key
        assert scope != "cluster", (
            f"{parameter.key}: trials before and after a new deployment cannot be compared"
        )
        # Running daemons are asked what they can apply; there is no table of all options.
        least = "nothing" if scope == "nothing" else kind.scope(parameter.key)
        assert SCOPES.index(scope) >= SCOPES.index(least), parameter.key
        assert all(kind.scope(key) != "cluster" for key in level.also)


def test_defaults_by_release_name_known_releases_and_one_parameter_is_a_declared_dummy(
    space: ParameterSpace,
) -> None:
    releases = type(space.baseline.gateway).releases
    for parameter in space.tuning.parameters:
        if isinstance(parameter.default, dict):
            assert set(parameter.default) <= set(releases), parameter.key
    effects = [parameter.effect for parameter in space.tuning.parameters]
    assert sum(effect.startswith("The dummy. ") for effect in effects) == 1


@pytest.mark.parametrize("name", SPACES)
def test_the_budget_suffices_to_judge_every_setting_and_confirm_the_winner(name: str) -> None:
    found = prepare(*read(name))
    assert found.tuning.budget is not None
    assert Course(found, attest=True).least_s() <= found.tuning.budget


def test_there_are_enough_trials_for_a_claim(space: ParameterSpace) -> None:
    assert space.tuning.trials.least >= 5
    assert space.tuning.confirm >= 5


def test_apaches_space_has_every_directive_of_the_study() -> None:
    _, tuning = loader.load(loader.find("apache-mpm"))
    assert {f"apache.mpm.{name}" for name in STUDY_DIRECTIVES} <= {
        parameter.key for parameter in tuning.parameters
    }
