import re
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weighbridge.common.document import Document, DocumentError
from weighbridge.common.errors import UsageError
from weighbridge.common.structure import SCOPES, Scope, widest
from weighbridge.results.run.trial import EntryVerdict
from weighbridge.suites import Durability
from weighbridge.suites.suite import Suite
from weighbridge.suites.tuning import (
    Level,
    Objective,
    Parameter,
    Range,
    SearchOptions,
    Strategy,
    Trials,
    Tuning,
    loader,
)
from weighbridge.suites.workload import Every
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

GOOD = """
name: trial
about: A trial
layout: rgw-beast
api: s3
workloads:
  - name: small-read
    objects: {size: 64KB}
    operations: {read: 100}
    workers: [4, 16]
    runtime: 4s
  - name: mixed
    objects: {size: 64KB}
    operations: {read: 70, write: 30}
    workers: [8]
    runtime: 4s
objectives:
  - {of: throughput, workload: small-read, workers: 16}
parameters:
  - {key: radosgw.threads, values: [64, 128]}
"""


AT_16 = "small-read, workers: 16"
TWICE = "  - {workload: mixed, operation: read}\n"
SCOPE_WORDS = "'nothing', 'reload', 'restart', 'buckets' or 'cluster'"


def tuning_of(text: str) -> Tuning:
    return Document("tuning.yaml", text).into(Tuning)


def faults_of(text: str) -> list[str]:
    """Every fault of a file as line:column and words, wherever it is found."""
    document = Document("tuning.yaml", text)
    with pytest.raises(DocumentError) as caught:
        loader.suite_of(document, document.into(Tuning))
    return [f"{fault.line}:{fault.column} {fault.message}" for fault in caught.value.faults]


def changed(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new)


def test_all_faults_of_a_file_are_reported_at_once_with_positions() -> None:
    text = (
        changed("values: [64, 128]", "valeus: [64], scope: restrat")
        .replace("about:", "abuot:")
        .replace("of: throughput", "of: ''")
    )
    assert faults_of(text) == [
        "2:1 'about' is missing",
        "3:1 unknown key 'abuot' (did you mean 'about'?)",
        "18:10 objectives.0.of: String should have at least 1 character",
        "20:28 unknown key 'valeus' (did you mean 'values'?)",
        f"20:49 parameters.0.scope: Input should be {SCOPE_WORDS} (did you mean 'restart'?)",
    ]


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ("values: [64, [128]]", "parameters.0.values.1.value: must be a plain value"),
        ("values: [64, null]", "not nothing"),
        (f"values: {list(range(501))}", "501 values are named; at most 500 are tried"),
        ("values: [{valeu: 3}]", "unknown key 'valeu' (did you mean 'value'?)"),
        ("values: [{value: 3, also: {A: 1}}]", "String should match pattern"),
        ("values: [{value: 3, also: {radosgw.threads: 1}}]", "also: sets the parameter itself"),
        ("values: [64KiB, 65536]", "radosgw.threads: the same value twice"),
        ("values: [64], range: {low: 1, high: 2}", "needs either values or a range"),
        ("scope: restart", "needs either values or a range"),
        ("range: {low: 8, high: 8}", "the lowest 8 is not below the highest 8"),
        ("range: {low: 0, high: 8, scale: log}", "on a log scale must begin above 0, not at 0"),
        ("range: {low: 4KiB, high: 1MiX}", "'1MiX' is not a quantity"),
        ("range: {low: false, high: true}", "for true and false use values"),
        ("values: [64], default: [512]", "must be a plain value"),
    ],
)
def test_invalid_values_are_refused(values: str, fault: str) -> None:
    assert any(fault in one for one in faults_of(changed("values: [64, 128]", values)))


def test_a_fault_of_a_value_is_about_the_type_it_was_meant_to_be() -> None:
    assert faults_of(changed("values: [64, 128]", "values: [64, {value: 128, als: {}}]")) == [
        "20:59 unknown key 'als' (did you mean 'also'?)"
    ]


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        (AT_16, "small-raed, workers: 16", "18:5 the suite has no workload 'small-raed'"),
        (AT_16, "small-read", "18:5 small-read is replayed at 4, 16 workers: name one of these"),
        (AT_16, "small-read, workers: 8", "18:5 small-read is not replayed at 8 workers, but at"),
        (AT_16, "mixed", "18:5 mixed is a mix: name one of its operations (read, write)"),
        (AT_16, "mixed, operation: delete", "18:5 mixed has no delete; it has read, write"),
        ("of: throughput,", "of: p90, p90_within: 5ms,", "applies to throughput only, not to p90"),
        (AT_16, f"{AT_16}, p90_within: 5ms", "workers: not allowed with p90_within"),
        ("  - {of", f"{TWICE}{TWICE}  - {{of", "the same objective twice"),
        ("- name: mixed", "- name: small-read", "two workloads are named small-read"),
        (
            "  - {key",
            "  - {key: radosgw.threads, values: [1]}\n  - {key",
            "two parameters are radosgw.threads",
        ),
        (
            "size: 64KB}\n    operations: {read: 70",
            "size: 6GB}\n    operations: {read: 70",
            "S3 takes at most 5 GB in one PUT",
        ),
        ("api: s3", "suite: quick", "needs either a suite or its own workloads"),
        ("api: s3", "api: s3\nsearch: {proposals: 3}", "search: given, but the strategy is screen"),
        ("api: s3", "api: s3\ntrials: {least: 6, most: 5}", "least 6 is above most 5"),
    ],
)
def test_an_ambiguous_or_impossible_value_is_refused_at_its_position(
    old: str, new: str, fault: str
) -> None:
    assert any(fault in one for one in faults_of(changed(old, new)))


def test_all_ambiguous_objectives_and_faulty_workloads_are_reported_at_once() -> None:
    objectives = "  - {workload: mixed}\n  - {workload: small-read}\n"
    text = changed("  - {of: throughput, workload: small-read, workers: 16}\n", objectives)
    assert [
        fault.partition(" ")[0] for fault in faults_of(text.replace("{size: 64KB}", "{size: 6GB}"))
    ] == ["13:21", "18:5", "19:5"]


SHIPPED_SUITE = """
name: trial
about: A trial
layout: rgw-beast
suite: quick
objectives: [{workload: small-write, workers: 16}, {workload: small-read, workers: 16}]
parameters: [{key: radosgw.threads, values: [64]}]
"""


def test_only_the_steps_of_objectives_are_replayed() -> None:
    tuning = tuning_of(f"{SHIPPED_SUITE}constraints: {{error_share: 0.01}}\ntrials: {{most: 7}}\n")
    suite = loader.suite_of(Document("tuning.yaml", SHIPPED_SUITE), tuning)
    found = {one.name: one.workers for one in suite.workloads}
    assert found == {"small-write": (16,), "small-read": (16,)}
    assert suite.name == "trial"
    assert (suite.api, suite.repeats, suite.seed, suite.layers) == (("s3",), 7, 2014, ())
    assert suite.bounds.error_share == 0.01
    assert suite.control is False  # those of quick are of a workload that may not be replayed


def test_power_is_cut_in_the_confirmation_alone_and_only_where_nothing_may_be_lost() -> None:
    tuning = tuning_of(f"{SHIPPED_SUITE}constraints: {{lost: 0, cuts: 7}}\nconfirm: 3\n")
    base = loader.suite_of(Document("tuning.yaml", SHIPPED_SUITE), tuning)
    replayed = tuning.suite_of(base.model_copy(update={"durability": Durability()}))
    assert replayed.durability is None
    again = tuning.confirming(replayed)
    assert (again.repeats, again.durability) == (3, Durability(cuts=7))
    assert tuning_of(SHIPPED_SUITE).confirming(replayed).durability is None


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("constraints: {lost: 0}\nconfirm: 0", "power is cut in the confirmation"),
        ("constraints: {cuts: 7}", "given without `lost: 0`"),
        ("constraints: {lost: 1}", "Input should be 0"),
    ],
)
def test_constraints_of_power_cuts_that_make_no_sense_are_refused(more: str, why: str) -> None:
    with pytest.raises(DocumentError, match=why):
        tuning_of(f"{SHIPPED_SUITE}{more}\n")


def test_its_own_workloads_are_replayed_over_s3_by_default() -> None:
    text = changed("api: s3\n", "")
    assert loader.suite_of(Document("tuning.yaml", text), tuning_of(text)).api == ("s3",)
    assert tuning_of(changed("api: s3", "api: swift")).suite_of(None).api == ("swift",)


@pytest.mark.parametrize(
    ("line", "cache"),
    [
        ("api: s3", "before-step"),
        ("cache: every 60s", Every(every=60.0)),
        ("cache: kernel every 60s", Every(every=60.0, kernel=True)),
        ("cache: kernel", "kernel"),
    ],
)
def test_cache_policies_are_those_of_suites(line: str, cache: object) -> None:
    assert tuning_of(changed("api: s3", line)).suite_of(None).cache == cache


def test_p90_within_measures_all_worker_counts() -> None:
    tuning = tuning_of(changed("small-read, workers: 16", "small-read, p90_within: 20ms"))
    (workload,) = tuning.suite_of(None).workloads
    assert workload.workers == (4, 16)
    (objective,) = tuning.objectives
    assert objective.words == "largest throughput of small-read with p90 within 20 ms"


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("suite: quick", "suite: quik", "5:8 no suite 'quik' (did you mean 'quick'?)"),
        ("suite: quick", "suite: quick\napi: swift", "6:6 suite quick has no swift; it has s3"),
        ("suite: quick", "suite: quick\ncache: none", "cache: given, but the suite has its own"),
        (AT_16, "small-read, workers: 5", "6:52 small-read is not replayed at 5 workers, but at 1"),
    ],
)
def test_a_suite_without_the_needed_step_or_api_is_refused_at_its_name(
    old: str, new: str, fault: str
) -> None:
    assert any(fault in one for one in faults_of(SHIPPED_SUITE.replace(old, new)))


def test_a_suite_without_gateway_apis_cannot_tune_a_gateway(tmp_path: Path) -> None:
    path = tmp_path / "below.yaml"
    path.write_text(
        "name: below\nabout: x\napi: [rados]\nworkloads: [{name: a, objects: {size: 1KB}, "
        "operations: {read: 1}, "
        "workers: [1], runtime: 1s}]\n"
    )
    text = SHIPPED_SUITE.replace("quick", str(path)).replace(
        "small-write, workers: 16}, {workload: small-read, workers: 16", "a"
    )
    assert faults_of(text) == ["5:8 suite below has no API of gateways; it has rados"]


def test_faults_of_the_suite_are_reported_in_its_own_file(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("name: bad\nworkloads: []\n")
    document = Document("tuning.yaml", SHIPPED_SUITE.replace("quick", str(path)))
    with pytest.raises(DocumentError) as caught:
        loader.suite_of(document, document.into(Tuning))
    assert {fault.file for fault in caught.value.faults} == {str(path)}


def test_an_unknown_tuning_is_refused_with_the_closest_known_one() -> None:
    with pytest.raises(UsageError, match=r"no tuning 'rgw-beats' \(did you mean 'rgw-beast'\?\)"):
        loader.find("rgw-beats")


def test_a_tuning_survives_a_json_round_trip() -> None:
    for path in loader.shipped().values():
        _, tuning = loader.load(path)
        assert Tuning.model_validate_json(tuning.model_dump_json()) == tuning
    text = changed("api: s3", "strategy: search\nsearch: {proposals: 3}")
    search = tuning_of(text.replace("[64, 128]", "[1, true, '1/5', 0.5]"))
    again = Tuning.model_validate_json(search.model_dump_json())
    assert again == search
    assert [type(level.value) for level in again.parameters[0].levels] == [int, bool, str, float]


@given(st.lists(st.sampled_from(SCOPES)))
def test_the_widest_of_several_scopes_includes_all_of_them(scopes: list[Scope]) -> None:
    found = widest(scopes)
    assert found in (*scopes, "nothing")
    assert all(SCOPES.index(one) <= SCOPES.index(found) for one in scopes)


@pytest.mark.parametrize(
    ("objective", "words"),
    [
        (Objective(workload="small-read", workers=16), "throughput of small-read at 16 workers"),
        (Objective(workload="small-read", workers=1, of="p90"), "p90 of small-read at 1 worker"),
        (Objective(workload="mix", operation="read"), "throughput of read of mix"),
    ],
)
def test_an_objective_is_described_in_words(objective: Objective, words: str) -> None:
    assert objective.words == words


PAGE = (Path(__file__).parents[2] / "docs/tuning.md").read_text(encoding="utf-8")


def quoted() -> set[str]:
    (example,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    return set(re.findall(r"\w+", " ".join(re.findall(r"`([^`\n]+)`", PAGE.replace(example, "")))))


def test_its_example_is_a_valid_tuning() -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    document = Document("example.yaml", example)
    assert loader.suite_of(document, document.into(Tuning)).workloads


def test_it_has_every_key_of_a_tuning() -> None:
    for record in (Tuning, Objective, Parameter, Level, Range, Trials, SearchOptions):
        missing = set(record.model_fields) - quoted() - {"value"}
        assert not missing, f"{record.__name__}: {missing}"


def test_it_has_every_scope_strategy_verdict_and_shipped_tuning() -> None:
    assert {*SCOPES, *get_args(Strategy)} <= quoted()
    assert all(verdict in PAGE for verdict in get_args(EntryVerdict) if verdict != "not comparable")
    assert all(f"| `{name}` |" in PAGE for name in loader.shipped())


def test_its_defaults_are_those_of_the_records() -> None:
    trials, search, tuning = Trials(), SearchOptions(), Tuning.model_fields
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", PAGE, re.MULTILINE))
    assert rows["trials"] == f"{trials.least}, {trials.most}, {trials.baseline_every}"
    own = (search.proposals, search.trials, search.startup, search.finalists)
    assert rows["search"] == ", ".join(map(str, own))
    assert rows["confirm"] == str(tuning["confirm"].default)
    assert rows["seed"] == str(tuning["seed"].default)


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
