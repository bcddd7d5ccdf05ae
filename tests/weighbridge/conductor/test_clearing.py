from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Timer
from types import SimpleNamespace
from typing import Any

import click
import pytest
from pydantic import SecretStr

from lying_store import lying_store
from stub_run import Run, Seen
from weighbridge.command import weighbridge
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import BucketsLeft, DriverError, LeftBehind, ObjectsLeft
from weighbridge.conductor import clearing as clearing_room
from weighbridge.conductor import conductor
from weighbridge.conductor.capable import SHEET
from weighbridge.conductor.clearing import HINT, SOON_S, clear, clearing
from weighbridge.conductor.interruption import Interrupted, interruptible
from weighbridge.gateways.capabilities.capability import Answer
from weighbridge.gateways.capabilities.matrix import LayoutAnswers
from weighbridge.gateways.existing.existing import RunningExisting
from weighbridge.results.judge.host_equality import host_doubts
from weighbridge.results.run.store import RunStore
from weighbridge.topologies import deployment as deployments
from weighbridge.topologies.attestation import Attestation, AttestOptions, HostCeiling
from weighbridge.topologies.fake import ThisHost

LEFT = BucketsLeft(["wb-1-small-0"], ["wb-1-small-0: no answer"])
NOTE = "buckets that may be left: wb-1-small-0"


def standing(gateway: object) -> Any:
    hardware = SimpleNamespace(of=SimpleNamespace(for_running_gateways=True))
    return SimpleNamespace(running_gateway=gateway, hardware=hardware)


class Kept:
    """A gateway that outlives its deployment; `fails`: errors of its next attempts to clear."""

    def __init__(self, *fails: BaseException) -> None:
        self.asked: list[Sequence[str]] = []
        self.within_s: list[float | None] = []
        self.fails = list(fails)
        self.said: list[str] = []

    def clear(self, buckets: Sequence[str], *, within_s: float | None = None) -> tuple[str, ...]:
        self.asked.append(buckets)
        self.within_s.append(within_s)
        if self.fails:
            raise self.fails.pop(0)
        return (f"deleted {', '.join(buckets)}",)

    def through(self, error: BaseException | None = None) -> None:
        with clearing(standing(self), ["wb-1-small-0"], self.said.append):
            if error is not None:
                raise error


def test_buckets_are_deleted_after_success() -> None:
    kept = Kept()
    kept.through()
    assert kept.asked == [["wb-1-small-0"]]
    assert kept.said == ["deleted wb-1-small-0"]


@pytest.mark.parametrize("error", [Interrupted(15), DriverError("it broke"), KeyError("a defect")])
def test_buckets_are_deleted_after_any_error_which_stays_the_error(error: BaseException) -> None:
    kept = Kept()
    with pytest.raises(type(error)) as raised:
        kept.through(error)
    assert raised.value is error
    assert kept.said[-1] == "deleted wb-1-small-0"
    assert (HINT in kept.said) == isinstance(error, Interrupted)
    assert not hasattr(error, "__notes__")


def test_a_bucket_that_cannot_be_deleted_is_an_error_unless_there_is_another() -> None:
    kept = Kept(LEFT)
    with pytest.raises(BucketsLeft, match="left:\n  wb-1-small-0: no answer"):
        kept.through()
    assert len(kept.asked) == 1


def test_a_bucket_that_cannot_be_deleted_after_another_error_is_reported_beside_it() -> None:
    kept = Kept(LEFT)
    with pytest.raises(Interrupted) as error:
        kept.through(Interrupted(2))
    assert kept.said == [HINT, str(LEFT)]
    assert error.value.__notes__ == [NOTE]


def test_interrupted_deleting_gets_a_few_more_seconds_to_end() -> None:
    kept = Kept(Interrupted(2))
    with pytest.raises(Interrupted) as error:
        kept.through()
    assert kept.within_s == [None, SOON_S]
    assert kept.said == ["deleted wb-1-small-0"]
    assert not hasattr(error.value, "__notes__")


def test_the_first_signal_stays_the_error_when_a_second_one_ends_deleting() -> None:
    kept = Kept(Interrupted(2), LEFT)
    first = Interrupted(15)
    with pytest.raises(Interrupted) as error:
        kept.through(first)
    assert error.value is first
    assert first.__notes__ == [NOTE]


@pytest.mark.parametrize("signals", [1, 2])
@pytest.mark.long
def test_a_signal_ends_deleting_that_would_not_end_and_its_buckets_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, signals: int
) -> None:
    """Two: the first comes in a step, before anything is deleted. The store lists for ever: that
    this ends at all is by the signal.
    """
    monkeypatch.setattr(clearing_room, "SOON_S", 1.0)
    client = ThisHost("client-1", "127.0.0.1", tmp_path / "client-1")
    said: list[str] = []
    sent = Timer(1.0, os.kill, (os.getpid(), signal.SIGTERM))

    def run(gateway: RunningExisting) -> None:
        with interruptible(), clearing(standing(gateway), ["wb-1-small-0"], said.append):
            sent.start()
            if signals == 2:
                os.kill(os.getpid(), signal.SIGTERM)

    with lying_store() as url:
        known = Endpoint(api="s3", url=url, user="weigh:er", key=SecretStr("planted"))
        with pytest.raises(Interrupted) as error:
            run(RunningExisting(client, [known], {}))
    assert error.value.__notes__ == [NOTE]
    assert said[-1].startswith("buckets that this run made may be left:\n  wb-1-small-0: ")


def test_what_a_killed_run_left_is_named_if_a_signal_ends_its_deletion() -> None:
    kept = Kept(Interrupted(15), LEFT)
    with pytest.raises(Interrupted) as error:
        clear(standing(kept), ["wb-1-small-0"], kept.said.append)
    assert error.value.__notes__ == [NOTE]


def test_what_else_a_run_made_is_deleted_too_and_all_that_is_left_is_named_at_once() -> None:
    kept = Kept(LEFT)
    objects = ObjectsLeft("pool bench, namespace wb-1, by gateway-1", "no answer")

    def sweep(within_s: float | None) -> tuple[str, ...]:
        assert within_s is None
        raise objects

    with pytest.raises(LeftBehind) as error:
        clear(standing(kept), ["wb-1-small-0"], kept.said.append, sweep)
    assert error.value.words == f"{NOTE}; {objects.words}"
    assert error.value.message == f"{LEFT.message}\n{objects.message}"


def test_a_sweep_that_a_signal_ends_gets_a_few_more_seconds() -> None:
    kept = Kept()
    asked: list[float | None] = []

    def sweep(within_s: float | None) -> tuple[str, ...]:
        asked.append(within_s)
        if within_s is None:
            raise Interrupted(2)
        return ("deleted 3 objects",)

    swept = clearing(standing(kept), ["wb-1-small-0"], kept.said.append, sweep)
    with pytest.raises(Interrupted), swept:
        pass
    assert asked == [None, SOON_S]
    assert kept.said[-1] == "deleted 3 objects"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_becomes_one_exception_that_click_lets_through_with_its_number(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch, run_cli: Callable[..., tuple[str, str]]
) -> None:
    @click.command()
    def verb() -> None:
        with interruptible():
            os.kill(os.getpid(), number)

    with pytest.raises(Interrupted) as error:
        verb.main([], standalone_mode=False)
    assert error.value.signal == number
    monkeypatch.setattr(weighbridge, "main", lambda **how: verb.main([], **how))
    _, said = run_cli(128 + number)
    assert number.name in said


def test_signals_after_the_first_do_not_disturb_the_teardown_and_handlers_come_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    torn_down = []

    def work() -> None:
        with interruptible():
            try:
                os.kill(os.getpid(), signal.SIGTERM)
            finally:
                os.kill(os.getpid(), signal.SIGTERM)
                os.kill(os.getpid(), signal.SIGINT)
                torn_down.append(True)

    with pytest.raises(Interrupted):
        work()
    assert torn_down
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize(
    ("notes", "said"),
    [
        ((), "all that was started is ended"),
        (
            ("buckets that may be left: wb-1-a-0",) * 2,
            "buckets that may be left: wb-1-a-0; all else that was started is ended",
        ),
    ],
)
def test_a_command_that_a_signal_ends_says_that_all_is_ended_only_if_nothing_is_left(
    monkeypatch: pytest.MonkeyPatch,
    run_cli: Callable[..., tuple[str, str]],
    notes: tuple[str, ...],
    said: str,
) -> None:
    def ended(*_: object) -> None:
        error = Interrupted(signal.SIGTERM)
        for note in notes:
            error.add_note(note)
        raise error

    monkeypatch.setattr("weighbridge.running.print_running", ended)
    _, printed = run_cli(143, "status")
    assert printed == f"weighbridge: ended by SIGTERM; {said}\n"


ANSWERS = {
    "s3-delete": Answer(outcome="works"),
    "s3-copy": Answer(outcome="wrong", status=200, text="ignored"),
    "swift-put": Answer(outcome="refused", status=501, code="NotImplemented"),
}


def conducted(
    run: Run, monkeypatch: pytest.MonkeyPatch, *, wanted: bool, died: str = ""
) -> tuple[RunStore, Seen, list[tuple[str, int]]]:
    store, seen, asked = run.store(), Seen(), list[tuple[str, int]]()

    def ask(planned: Any, deployment: Any, say: Any, *, log: Path) -> LayoutAnswers:
        name = planned.layout.name
        assert deployment.layout.name == name
        asked.append((name, sum(step.key.layout == name for step in store.steps())))
        return LayoutAnswers(layout=name, release="any", answers=ANSWERS, died=died)

    monkeypatch.setattr(conductor, "ask_for_run", ask)
    plan = run.plan().model_copy(update={"capabilities": wanted})
    run.into(store, display=seen, plan=plan)
    return store, seen, asked


def test_each_layout_is_asked_once_after_its_last_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(tmp_path, repeats=2)
    store, _, asked = conducted(run, monkeypatch, wanted=True)
    assert sorted(asked) == sorted((one.layout.name, 6) for one in run.planned)
    sheets = {one.layout: one.facts for one in store.manifest.sheets if one.title == SHEET}
    assert set(sheets) == {one.layout.name for one in run.planned}
    said = ["works", "wrong: 200: ignored", "refused: 501 NotImplemented"]
    assert [list(facts.values()) for facts in sheets.values()] == [said] * 2


def test_nothing_is_asked_unless_the_run_wants_to_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, _, asked = conducted(Run(tmp_path), monkeypatch, wanted=False)
    assert asked == []
    assert not [one for one in store.manifest.sheets if one.title == SHEET]


def test_a_daemon_that_dies_of_a_question_is_recorded_and_changes_no_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, seen, _ = conducted(Run(tmp_path), monkeypatch, wanted=True, died="radosgw had ended")
    assert all(step.valid for step in store.steps())
    failed = [one.text for one in store.events() if one.kind == "failed"]
    assert set(failed) == {"capabilities: radosgw had ended"}
    assert any("radosgw had ended" in text for text in seen.said)


CEILING = HostCeiling(
    host="gateway-1", kind="cpu", what="cpu", value=300.0, unit="events/s", promised=330.0
)


@pytest.fixture
def values() -> dict[tuple[str, int], float]:
    """What the CPU gives instead of 300 events/s, by layout and how often that was attested."""
    return {}


@pytest.fixture
def asked(
    monkeypatch: pytest.MonkeyPatch, values: dict[tuple[str, int], float]
) -> list[AttestOptions]:
    """What was measured of each deployment's hosts, with a made-up result."""
    asked: list[AttestOptions] = []
    times: Counter[str] = Counter()

    def deploy(*arguments: Any, attest: AttestOptions, **named: Any) -> deployments.Deployment:
        made = deployments.deploy(*arguments, attest=attest, **named)
        assert made.attestation is None  # its hosts are pretended
        asked.append(attest)
        if attest:
            name = made.layout.name
            value = 0.0
            for _ in range(2):
                value = max(value, values.get((name, times[name]), CEILING.value))
                ceiling = CEILING.model_copy(update={"value": value})
                times[name] += 1
                if not named["apart"]([ceiling]):
                    break
            made.attestation = Attestation(
                ceilings=(ceiling,), tools={"fio": "fio-3.33"}, took_s=1.0
            )
        return made

    monkeypatch.setattr(conductor, "deploy", deploy)
    return asked


def test_hosts_are_measured_once_for_each_layout_and_recorded_with_the_tools(
    tmp_path: Path, asked: list[AttestOptions]
) -> None:
    store = Run(tmp_path, repeats=2).conduct(attest=True)
    kept = store.attested()
    assert sorted((one.layout, one.repeat) for one in kept) == [("rgw-a", 0), ("swift-b", 0)]
    assert len(asked) == 4
    assert {(one.host, one.kind, one.what, one.value, one.unit, one.promised) for one in kept} == {
        ("gateway-1", "cpu", "cpu", 300.0, "events/s", 330.0)
    }
    assert [sheet.facts for sheet in store.manifest.sheets if sheet.title == "attestation"] == [
        {"fio": "fio-3.33"}
    ]


@pytest.mark.parametrize("lasting", [False, True])
def test_hosts_that_seem_to_differ_are_attested_at_later_visits_until_the_median_decides(
    lasting: bool, tmp_path: Path, asked: list[AttestOptions], values: dict[tuple[str, int], float]
) -> None:
    odd = range(9 if lasting else 2)  # twice in the first deployment
    values.update({("rgw-a", time): 100.0 for time in odd})
    heard = Seen()
    store = Run(tmp_path, repeats=4).conduct(attest=True, display=heard)
    kept = store.attested()
    assert sorted((one.layout, one.repeat) for one in kept) == [
        (layout, repeat) for layout in ("rgw-a", "swift-b") for repeat in range(3)
    ]
    said = [text for text in heard.said if text.startswith("hosts differ so far: ")]
    assert said[0].endswith("; to be attested again: rgw-a, swift-b")
    assert (
        "cpu of gateway-1 gave 100 events/s under rgw-a and 300 events/s under swift-b" in said[0]
    )
    assert bool(host_doubts(kept)) == lasting
    assert ("to be attested again" in said[-1]) != lasting


def test_a_figure_that_is_apart_is_measured_again_before_it_condemns_the_only_repeat(
    tmp_path: Path, asked: list[AttestOptions], values: dict[tuple[str, int], float]
) -> None:
    values["swift-b", 0] = 100.0
    kept = Run(tmp_path).conduct(attest=True).attested()
    assert [one.value for one in kept] == [300.0, 300.0]
    assert len(asked) == 2


def test_a_run_without_attestation_records_none(tmp_path: Path, asked: list[AttestOptions]) -> None:
    assert Run(tmp_path).conduct(attest=False).attested() == ()
    assert set(asked) == {AttestOptions()}
