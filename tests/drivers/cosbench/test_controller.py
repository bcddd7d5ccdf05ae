"""COSBench's controller: submissions, the index, cancelling, credentials."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path

import pytest

from dripping import dripping
from weighbridge.common.errors import DriverError
from weighbridge.drivers.cosbench.archive import LocalFolder
from weighbridge.drivers.cosbench.bench import Stopped, StopRequest, Submission
from weighbridge.drivers.cosbench.controller import Controller, Unanswered, java_date
from weighbridge.drivers.cosbench.script import Script

sys.path.insert(0, str(Path(__file__).parent))
from recorded_controller import DATA, Recorded, Take


def test_only_an_accepted_id_is_a_submission(controller: Recorded) -> None:
    asked = Controller(controller.url, "anonymous", "cosbench")
    assert asked.submit("<workload name='n'><workflow/></workload>") == "w1"
    answers = (DATA / "http" / "submit-errors.txt").read_text().split("\n\n")
    refusals = [
        answer.strip().splitlines()[0]
        for answer in answers
        if answer.startswith(("cannot parse", "Internal Error"))
    ]
    assert len(refusals) >= 3
    for refusal in [*refusals, "Bad Request", "Accepted", "op ratio should sum to 100"]:
        controller.refusal = refusal
        with pytest.raises(DriverError, match="COSBench refused the workload"):
            asked.submit("<workload/>")


def test_credentials_are_in_the_query_and_refusals_are_recognised(controller: Recorded) -> None:
    controller.users = {"bench": "s3 cret&"}
    asked = Controller(controller.url, "bench", "s3 cret&")
    assert asked.index().drivers == {"driver1": "http://127.0.0.1:18088/driver"}
    assert asked.submit("<workload name='n'><workflow/></workload>") == "w1"
    with pytest.raises(DriverError, match="refuses user 'bench': User info") as error:
        Controller(controller.url, "bench", "wrong").index()
    assert "wrong" not in str(error.value)
    controller.users = {}
    controller.refusal = "\n"
    with pytest.raises(DriverError, match="an empty answer: COSBench refuses user"):
        asked.submit("<workload/>")


def test_a_running_workload_is_found_in_the_recorded_index(monkeypatch: pytest.MonkeyPatch) -> None:
    body = (DATA / "http" / "index-running.txt").read_text().partition("\n\n")[2]
    controller = Controller("http://127.0.0.1:1/controller", "u", "p")
    monkeypatch.setattr(Controller, "_ask", lambda *_args: body)
    index = controller.index()
    assert index.drivers == {"driver1": "http://127.0.0.1:18088/driver"}
    (seen,) = index.active
    assert (seen.id, seen.state, seen.stage) == ("w1", "PROCESSING", "s1-init")
    assert seen.submitted == datetime.fromisoformat("2026-11-21T00:21:13")
    assert java_date("Sat Nov 01 00:21:13 CEST 2026").day == 1
    with pytest.raises(Unanswered):
        java_date("today")


def test_a_workload_that_never_ends_is_cancelled_at_its_deadline_and_its_drivers_are_named(
    controller: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller.step = Take("jdk8/w36-cancel-me", ["s2-main-b"], "FINISHED", looks=-1)
    monkeypatch.setattr("weighbridge.drivers.cosbench.bench.STAGE_S", 0.0)
    monkeypatch.setattr("weighbridge.drivers.cosbench.bench.MARGIN_S", 0.1)
    submission = Submission(
        Controller(controller.url, "u", "p"), LocalFolder(str(controller.archive)), StopRequest()
    )
    script = Script(
        "n",
        "<workload name='n'><workflow><workstage name='main'/></workflow></workload>",
        ("s1-main",),
    )
    with pytest.raises(DriverError, match="did not end w1-n within 0 s") as error:
        submission.run(script, 0.0, lambda _stage: None)
    assert "driver1 at http://127.0.0.1:18088/driver" in error.value.advice
    assert controller.cancelled == ["w1"]


def test_a_controller_that_is_silent_for_too_long_is_given_up(
    controller: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unanswered(_self: object) -> None:
        raise Unanswered("gone")

    asked = Controller(controller.url, "u", "p")
    monkeypatch.setattr("weighbridge.drivers.cosbench.bench.SILENCE_S", 0.1)
    monkeypatch.setattr(Controller, "index", unanswered)
    script = Script("n", "<workload name='n'><workflow/></workload>", ())
    submission = Submission(asked, LocalFolder(str(controller.archive)), StopRequest())
    with pytest.raises(Unanswered, match="gone"):
        submission.run(script, 0.0, lambda _stage: None)
    assert controller.cancelled == ["w1"]


def test_waiting_ends_as_soon_as_a_stop_is_requested() -> None:
    stop = StopRequest()
    stop.check()
    stop.ask(5)
    stop.ask(6)
    with pytest.raises(Stopped):
        stop.wait(1000)
    assert stop.code == 5


def test_a_librarys_message_about_the_request_does_not_show_the_password_in_it() -> None:
    controller = Controller("http://127.0.0.1:9/controller\x7f", "bench", "planted password/&")
    with pytest.raises(Unanswered, match="can't contain control characters") as error:
        controller.index()
    assert "planted" not in str(error.value)


@pytest.mark.parametrize(
    "begin", [b"HTTP/1.1 200 OK\r\n\r\nDrivers:", b"HTTP/1.1 100 Continue\r\n\r\n" * 9]
)
def test_a_controller_that_never_ends_its_answer_is_named_within_a_bounded_time(
    monkeypatch: pytest.MonkeyPatch, begin: bytes
) -> None:
    monkeypatch.setattr("weighbridge.drivers.cosbench.controller.TIMEOUT_S", 0.3)
    with dripping(begin) as port, pytest.raises(Unanswered) as error:
        Controller(f"http://127.0.0.1:{port}/controller", "u", "p").index()
    assert f":{port}/controller: COSBench's controller does not" in str(error.value)
    assert "no complete answer within 0.3 s" in str(error.value)
