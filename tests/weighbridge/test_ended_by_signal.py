"""What a command says that a signal ended."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

from weighbridge.conductor.interruption import Interrupted


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
