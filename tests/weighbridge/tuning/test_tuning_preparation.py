"""All faults of a tuning are reported at once, with their places, before anything starts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from stub_tuning import HARDWARE, Tunable, TuningFixture
from tests.weighbridge.tuning.tunings import values
from weighbridge.common.document import Document, DocumentError
from weighbridge.common.errors import UsageError
from weighbridge.common.registry import Registry
from weighbridge.common.structure import Structure
from weighbridge.gateways.existing.existing import Existing
from weighbridge.gateways.gateway import Gateway
from weighbridge.results.run.store import RunStore
from weighbridge.results.run.trial import TuningRun
from weighbridge.suites.tuning import Tuning
from weighbridge.suites.tuning import loader as tuning_files
from weighbridge.topologies import loader
from weighbridge.tuning import preparation
from weighbridge.tuning.course import Course
from weighbridge.tuning.preparation import Changes


@pytest.fixture(autouse=True)
def _kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds: dict[str, type[Gateway]] = {"tunable": Tunable, "existing": Existing}
    monkeypatch.setattr(loader, "STORES", Registry("none", "gateway", own=kinds))


def faults(bed: TuningFixture) -> list[str]:
    with pytest.raises(DocumentError) as refused:
        bed.ready()
    return [f"{fault.text.strip()} | {fault.message}" for fault in refused.value.faults]


def test_each_level_is_a_candidate_with_the_settings_it_changes(tmp_path: Path) -> None:
    ready = TuningFixture(
        tmp_path, {"threads": 4}, parameters=values(speed=[2.0, 3.0], threads=[16])
    ).ready()
    changes = [one.variant.settings for one in ready.candidates]
    assert changes == [{"speed": 2.0}, {"speed": 3.0}, {"threads": 16}]
    assert [one.planned.layout.settings for one in ready.candidates] == [
        {"threads": 4, "speed": 2.0},
        {"threads": 4, "speed": 3.0},
        {"threads": 16},
    ]
    assert ready.space.layout_settings == {"speed": 1.0, "threads": 4}
    assert [one.planned.layout.name for one in ready.candidates] == [
        one.variant.name for one in ready.candidates
    ]


def test_a_value_that_the_layout_has_already_is_not_tried_and_reported(tmp_path: Path) -> None:
    ready = TuningFixture(tmp_path, parameters=values(speed=[1, 2.0])).ready()
    assert [one.variant.settings for one in ready.candidates] == [{"speed": 2.0}]
    assert ready.remarks == ("speed: tunable already has 1: not tried",)


def test_a_tuning_without_any_other_value_is_refused(tmp_path: Path) -> None:
    [refused] = faults(TuningFixture(tmp_path, parameters=values(speed=[1.0])))
    assert refused.startswith(
        "parameters: | the layout already has every value that is to be tried"
    )


def test_what_a_level_sets_besides_is_part_of_its_candidate_unless_the_layout_has_it(
    tmp_path: Path,
) -> None:
    levels = [{"value": 2.0, "also": {"threads": 16, "dummy": 0}}]
    ready = TuningFixture(tmp_path, parameters=values(speed=levels)).ready()
    assert ready.candidates[0].variant.settings == {"speed": 2.0, "threads": 16}
    assert ready.scopes == {"speed": "restart", "threads": "restart", "dummy": "restart"}


def test_all_faults_of_all_levels_are_reported_at_once_with_their_places(tmp_path: Path) -> None:
    bed = TuningFixture(tmp_path, parameters=values(speeds=[1.0, 2.0], threads=["many"], dummy=[1]))
    refused = faults(bed)
    assert len(refused) == 2
    assert refused[0].startswith("- key: speeds | ")
    assert "did you mean 'speed'" in refused[0]
    assert refused[1].startswith("- many | ")


def test_a_level_with_which_writes_are_acknowledged_on_other_terms_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def structure(self: Tunable, disks: Mapping[str, int]) -> Structure:
        return Structure(
            entrances=("gateway-1",),
            gateways=("gateway-1",),
            stores=("gateway-1",),
            disks={"gateway-1": (0,)},
            replicas=1,
            answers="page cache" if self.settings.dummy else "disk",
            copied_by="gateway",
        )

    monkeypatch.setattr(Tunable, "structure", structure)
    [refused] = faults(TuningFixture(tmp_path, parameters=values(speed=[2.0], dummy=[1])))
    assert refused.endswith(
        "| with dummy=1 the store acknowledges from the page cache; without it, it acknowledges "
        "when on disk: speeds of the two cannot be compared"
    )


def test_a_scope_that_is_not_enough_is_refused_and_a_wider_one_accepted(tmp_path: Path) -> None:
    wanted = values(
        shards={"values": [2], "scope": "restart"},
        speed={"values": [2.0], "scope": "reload"},
        pools={"values": [2], "scope": "nothing"},
    )
    assert faults(TuningFixture(tmp_path, parameters=wanted)) == [
        "scope: restart | shards needs scope buckets: restart is not enough",
        "scope: reload | speed needs scope restart: reload is not enough",
        "scope: nothing | pools needs scope cluster: nothing is not enough",
    ]
    more = values(
        live={"values": [1], "scope": "buckets"}, speed={"values": [2.0], "scope": "nothing"}
    )
    # Only the daemons know whether they take it while running.
    assert TuningFixture(tmp_path, parameters=more).ready().scopes == {
        "live": "buckets",
        "speed": "nothing",
    }


def test_a_grid_with_too_many_combinations_is_refused_with_their_number(tmp_path: Path) -> None:
    many = {"range": {"low": 1, "high": 100, "steps": 30}}
    why = "960 combinations, each tried 5 times at least: 4800 trials, 13:20:00"
    with pytest.raises(UsageError, match=why):
        TuningFixture(
            tmp_path,
            strategy="grid",
            parameters=values(threads=many, dummy={"range": {**many["range"], "low": 2}}),
        ).ready()


@pytest.mark.parametrize("strategy", ["screen", "grid"])
def test_checks_of_more_than_a_second_report_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, strategy: str
) -> None:
    bed = TuningFixture(tmp_path, strategy=strategy, parameters=values(threads=[16, 17, 18]))
    said: list[str] = []
    document, tuning = bed.document, bed.document.into(Tuning)
    preparation.checked(document, tuning, HARDWARE, bed.baseline, say=said.append)
    assert said == []
    monkeypatch.setattr("weighbridge.tuning.space.PROGRESS_EVERY_S", 0.0)
    preparation.checked(document, tuning, HARDWARE, bed.baseline, say=said.append)
    assert said[:3] == [f"checking settings to try: {number} of 3 values" for number in range(3)]
    combined = range(4 if strategy == "grid" else 0)
    assert said[3:] == [f"checking settings to try: {n} of 3 combinations" for n in combined]


def test_candidates_have_unique_names(tmp_path: Path) -> None:
    ready = TuningFixture(tmp_path, parameters=values(dummy=[1, -1])).ready()
    names = [one.variant.name for one in ready.candidates]
    assert names[0] == "tunable-dummy-1"
    assert len(set(names)) == 2
    again = TuningFixture(tmp_path, parameters=values(dummy=[1, -1])).ready()
    assert [one.variant.name for one in again.candidates] == names


def test_a_value_of_two_levels_is_the_parameters_own_or_the_larger_number(tmp_path: Path) -> None:
    wanted = [
        {"key": "speed", "values": [{"value": 2.0, "also": {"threads": 9, "dummy": 5}}]},
        {"key": "live", "values": [{"value": 1, "also": {"threads": 7, "dummy": 6}}]},
        {"key": "threads", "values": [16]},
    ]
    ready = TuningFixture(tmp_path, parameters=wanted).ready()
    together = ready.space.candidate([one.choices[0] for one in ready.candidates])
    assert together.variant.settings == {"speed": 2.0, "live": 1, "threads": 16, "dummy": 6}


def test_options_of_the_command_change_the_tuning(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(TuningFixture(tmp_path).text)
    _, tuning = preparation.read(
        str(path), Changes(strategy="grid", budget_s=60.0, confirm=3, seed=9, hardware="loopback")
    )
    assert (tuning.strategy, tuning.hardware) == ("grid", "loopback")
    assert (tuning.budget, tuning.confirm, tuning.seed) == (60.0, 3, 9)


def test_a_tuning_of_a_run_folder_has_the_candidates_it_began_with(tmp_path: Path) -> None:
    bed = TuningFixture(tmp_path, strategy="grid", parameters=values(speed=[2.0], threads=[16]))
    ready = bed.ready()
    plan = ready.plan(ready.candidates, attest=False)
    store = RunStore.create(bed.out, plan_yaml=ready.text, plan=plan, suite="trial")
    run = TuningRun.model_validate_json(ready.run().model_dump_json())
    again = preparation.prepare_again(store, run, plan)
    assert again.run() == ready.run()
    other = run.model_copy(update={"arms": run.arms[:1]})
    with pytest.raises(UsageError, match="other settings of this tuning than the run began with"):
        preparation.prepare_again(store, other, plan)


@pytest.mark.parametrize(
    ("layout", "hardware", "says"),
    [("existing", "this-machine", "existing"), ("rgw-beats", None, "did you mean 'rgw-beast'")],
)
def test_a_layout_that_cannot_be_tuned_is_refused_at_its_place_in_the_file(
    tmp_path: Path, layout: str, hardware: str | None, says: str
) -> None:
    given = {**yaml.safe_load(TuningFixture(tmp_path).text), "layout": layout}
    text = yaml.safe_dump({**given, **({"hardware": hardware} if hardware else {})})
    with pytest.raises(DocumentError, match=says) as refused:
        preparation.prepare(*tuning_files.load(_written(tmp_path, text)))
    assert f"layout: {layout}" in {fault.text.strip() for fault in refused.value.faults}


def test_what_may_lose_nothing_needs_a_confirmation_and_a_store_that_starts_again(
    tmp_path: Path,
) -> None:
    bed = TuningFixture(tmp_path, constraints={"lost": 0}, confirm=2)
    with pytest.raises(UsageError, match="cannot be started again after a power cut"):
        bed.ready()
    path = tmp_path / "t.yaml"
    path.write_text(bed.text)
    with pytest.raises(UsageError, match="power is cut in the confirmation, and `confirm` is 0"):
        preparation.read(str(path), Changes(confirm=0))


@pytest.mark.parametrize(
    ("head", "objective", "key", "levels", "own"),
    [
        # The patience that comparisons with faults have.
        (
            "layout: swift, suite: degrade-lab, api: swift",
            "{of: stall, workload: host-dies, operation: read}",
            "proxy.conn_timeout",
            ("500ms", "5s"),
            (0.5, 5.0),
        ),
        # What follows the size of hosts.
        (
            "layout: rgw-haproxy, suite: quick, hardware: lab-cpu, api: s3",
            "{of: throughput, workload: small-read, workers: 16}",
            "radosgw.threads",
            ("256", "512"),
            (256, 512),
        ),
    ],
)
def test_a_tuning_begins_with_the_settings_that_a_comparison_would_have(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    head: str,
    objective: str,
    key: str,
    levels: tuple[str, str],
    own: tuple[float, float],
) -> None:
    monkeypatch.undo()
    path = _written(
        tmp_path,
        f"{{name: t, about: t, {head}, confirm: 0, objectives: [{objective}],"
        f" parameters: [{{key: {key}, values: [{', '.join(levels)}]}}]}}",
    )
    ready = preparation.prepare(*preparation.read(str(path)))
    assert ready.space.layout_settings[key] == own[0]
    assert [one.variant.settings for one in ready.candidates] == [{key: own[1]}]


def test_an_unknown_objective_is_reported_at_its_place_in_the_file(tmp_path: Path) -> None:
    text = TuningFixture(
        tmp_path, objectives=[{"of": "p9", "workload": "read"}, {"of": "p50", "workload": "read"}]
    ).text
    with pytest.raises(DocumentError) as refused:
        preparation.prepare(
            Document("t.yaml", text), tuning_files.load(_written(tmp_path, text))[1]
        )
    assert [
        fault.message.partition(" (")[0]
        for fault in refused.value.faults
        if "metric" in fault.message
    ] == [
        "no metric 'p9' to compare by",
        "no metric 'p50' to compare by",  # it is shown, and not compared
    ]
    assert "did you mean 'p99'" in str(refused.value) or "did you mean 'p90'" in str(refused.value)


def test_the_course_knows_the_least_and_the_most_trials(tmp_path: Path) -> None:
    ready = TuningFixture(
        tmp_path, parameters=values(speed=[2.0, 3.0], threads=[16], dummy=[1])
    ).ready()
    course = Course(ready, attest=False)
    # Four settings in two parts: three trials of the baseline per round.
    assert (course.least, course.most) == (35, 42)
    assert course.steps == 42
    before_s = course.trial_s("restart")
    course.made("restart", before_s + 10)
    assert course.trial_s("restart") == pytest.approx(before_s + 10)
    assert course.left_s() > 41 * before_s


def _written(folder: Path, text: str) -> Path:
    path = folder / "t.yaml"
    path.write_text(text)
    return path
