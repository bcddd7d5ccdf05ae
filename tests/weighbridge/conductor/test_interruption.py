import os
import signal
from collections.abc import Callable

import click
import pytest

from weighbridge.command import weighbridge
from weighbridge.conductor.interruption import Interrupted, interruptible


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_becomes_one_exception_that_click_lets_through_with_its_number(
    number: signal.Signals,
    monkeypatch: pytest.MonkeyPatch,
    run_cli: Callable[..., tuple[int, str, str]],
) -> None:
    @click.command()
    def verb() -> None:
        with interruptible():
            os.kill(os.getpid(), number)

    with pytest.raises(Interrupted) as error:
        verb.main([], standalone_mode=False)
    assert error.value.signal == number
    monkeypatch.setattr(weighbridge, "main", lambda **how: verb.main([], **how))
    code, _, said = run_cli()
    assert code == 128 + number
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
        ((), "everything is torn down"),
        (
            ("buckets that may be left: wb-1-a-0",) * 2,
            "buckets that may be left: wb-1-a-0; all else is torn down",
        ),
    ],
)
def test_a_command_that_a_signal_ends_says_that_all_is_torn_down_only_if_nothing_is_left(
    monkeypatch: pytest.MonkeyPatch,
    run_cli: Callable[..., tuple[int, str, str]],
    notes: tuple[str, ...],
    said: str,
) -> None:
    def ended(*_: object) -> None:
        error = Interrupted(signal.SIGTERM)
        for note in notes:
            error.add_note(note)
        raise error

    monkeypatch.setattr("weighbridge.screen.deployments.print_running", ended)
    code, _, printed = run_cli("status")
    assert (code, printed) == (143, f"weighbridge: ended by SIGTERM; {said}\n")
