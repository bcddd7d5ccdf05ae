"""Run the stages of `make test` or `make test-all`, one after the other; all of them, whatever
fails.

    python -P tests/stages.py [--again] [--until EPOCH_S] STAGE...

`--again` is for CI: a test that failed is run once more, alone and when nothing else runs. If it
passes then, it is flaky: it is named, and fails nothing. `--until` ends what runs at that time, and
names what was not run. Exit status: 0 if everything passed, 1 if not.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from types import FrameType
from typing import Any, Final, TextIO

ROOT: Final = Path(__file__).resolve().parent.parent
RECORDS: Final = ROOT / "build" / "tests"
PYTEST_FAILED: Final = 1
GREEN: Final = (0, 5)  # passed, and no test with these marks
MAX_AGAIN: Final = 20
"""More failed tests than this are no flakes: they are not run again."""
POLL_S: Final = 0.2
GRACE_S: Final = 60.0
"""What tests have to take down their deployments after an interrupt."""


@dataclass(frozen=True)
class Stage:
    """Commands that run one after the other; all of them, whatever fails."""

    name: str
    commands: Sequence[Sequence[str]]
    env: Mapping[str, str] = field(default_factory=dict)
    pytest: bool = True
    """The commands are arguments of pytest."""
    beside: bool = False
    """Runs beside the stages after it, until the first with tests."""


@dataclass
class Outcome:
    """What a stage left, and what pytest reported of it."""

    stage: str
    problems: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)
    unreported: list[str] = field(default_factory=list)
    env: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    def judge(self, what: str, status: int | None, good: Sequence[int] = (0,)) -> None:
        """Note that a command did not end well; None: it was ended."""
        if status is None:
            self.problems.append(f"ended, as the time was over: {what}")
        elif status not in good:
            self.problems.append(f"{what} ended with status {status}")

    def add(self, record: Path) -> bool:
        """Read what one call of pytest recorded. Returns whether a test failed."""
        reports = _reports(record)
        last = {one["test"]: one for one in reports if "test" in one and one["decides"]}
        failed = [one["test"] for one in reports if "test" in one and one["outcome"] == "failed"]
        self.failed += dict.fromkeys(failed)
        self.counts.update(
            "failed" if test in failed else one["outcome"] for test, one in last.items()
        )
        self.counts["failed"] += len(set(failed) - set(last))
        collected = dict.fromkeys(chain.from_iterable(one.get("collected", ()) for one in reports))
        self.unreported += [test for test in collected if test not in last and test not in failed]
        self.problems += [f"collection of {one['broken']}" for one in reports if "broken" in one]
        return bool(failed)


class Record:
    """A plugin of pytest: a line for all tests collected, and one for each report."""

    def __init__(self, file: TextIO) -> None:
        self.file = file

    def _line(self, **facts: Any) -> None:
        self.file.write(json.dumps(facts) + "\n")
        self.file.flush()  # what was reported is known, however the process ends

    def pytest_collection_finish(self, session: Any) -> None:
        if session.items:  # the controller of xdist collects nothing itself
            self._line(collected=[item.nodeid for item in session.items])

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self._line(broken=report.nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        decides = report.when == "call" or report.outcome != "passed"
        self._line(
            test=report.nodeid,
            outcome=report.outcome,
            decides=decides,
            seconds=round(getattr(report, "duration", 0.0), 3),
        )


class RecordOfWorkers(Record):
    """For a session with xdist, whose plugins alone know this hook."""

    def pytest_xdist_node_collection_finished(self, node: Any, ids: Sequence[str]) -> None:
        self._line(collected=list(ids))


def recorded_pytest(record: str, arguments: list[str]) -> int:
    """Run pytest in this process, with a record of what it reports."""
    import pytest  # noqa: PLC0415 - only in the process that runs tests

    with Path(record).open("w") as file:
        plugin = RecordOfWorkers if any(one.startswith("-n") for one in arguments) else Record
        return pytest.main(arguments, plugins=[plugin(file)])


def _reports(record: Path) -> list[dict[str, Any]]:
    if not record.exists():
        return []
    lines = record.read_text().splitlines()
    found = []
    for line in lines:
        with suppress(ValueError):  # the last line of a process that was killed
            found.append(json.loads(line))
    return found


@dataclass
class Session:
    """Stages that ran, and the processes that run now."""

    folder: Path = ROOT
    records: Path = RECORDS
    until: float = float("inf")
    out: TextIO = sys.stdout
    grace_s: float = GRACE_S
    now: Callable[[], float] = time.time
    outcomes: list[Outcome] = field(default_factory=list)
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)
    starting: bool = False
    stop_status: int | None = None
    """A signal came while a process was being started: it is in `running` first."""

    def say(self, line: str) -> None:
        self.out.write(line + "\n")
        self.out.flush()

    def start(
        self, command: Sequence[str], env: Mapping[str, str], log: Path | None = None
    ) -> subprocess.Popen[bytes]:
        """Start a command in a process group of its own, by which it can be ended as a whole."""
        output = log.open("wb") if log else None
        self.starting = True
        try:
            child = subprocess.Popen(
                command,
                cwd=self.folder,
                env={**os.environ, **env},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT if output else None,
                start_new_session=True,
            )
            self.running.append(child)
        finally:
            self.starting = False
        if output:
            output.close()
        if self.stop_status is not None:
            raise SystemExit(self.stop_status)
        return child

    def wait(self, child: subprocess.Popen[bytes]) -> int | None:
        """Its exit status; None if the time was over before its end."""
        while self.now() < self.until:
            with suppress(subprocess.TimeoutExpired):
                status = child.wait(POLL_S)
                self.running.remove(child)
                return status
        self.end(child)
        return None

    def end(self, child: subprocess.Popen[bytes]) -> None:
        """Interrupt all processes of its group, and kill those that do not end."""
        for number, wait_s in ((signal.SIGINT, self.grace_s), (signal.SIGTERM, 5.0)):
            with suppress(ProcessLookupError):
                os.killpg(child.pid, number)
            with suppress(subprocess.TimeoutExpired):
                child.wait(wait_s)
                break
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)  # also what its end has left of the group
        child.wait()
        self.running.remove(child)

    def run(self, stage: Stage) -> Outcome:
        outcome = Outcome(stage.name, env=stage.env)
        self.outcomes.append(outcome)
        began = time.monotonic()
        for number, command in enumerate(stage.commands):
            what = " ".join(command)
            if self.now() >= self.until:
                outcome.problems.append(f"not run, as the time was over: {what}")
                continue
            self.say(f"== {stage.name}: {what}")
            record = self.records / f"{stage.name}-{number}.jsonl"
            record.unlink(missing_ok=True)
            program = [sys.executable, "-P", __file__, "--pytest", str(record)]
            child = self.start([*program, *command] if stage.pytest else command, stage.env)
            status = self.wait(child)
            failed = stage.pytest and outcome.add(record)
            if not (failed and status == PYTEST_FAILED):
                outcome.judge(what, status, GREEN if stage.pytest else (0,))
        outcome.seconds = time.monotonic() - began
        return outcome

    def again(self) -> tuple[list[str], list[str]]:
        """Run the tests that failed once more; those that passed now, and those that did not."""
        passed: list[str] = []
        failed: list[str] = []
        for outcome in list(self.outcomes):
            tests = outcome.failed
            if not tests:
                continue
            if len(tests) > MAX_AGAIN or self.now() >= self.until:
                failed += tests
                continue
            arguments = ["-q", "-p", "no:cacheprovider", *tests]
            second = self.run(Stage(f"{outcome.stage} again", [arguments], outcome.env))
            self.outcomes.remove(second)
            # Neither what was skipped nor what the end of the process took is a pass.
            good = not second.problems and not second.counts["skipped"]
            for test in tests:
                bad = not good or test in second.failed or test in second.unreported
                (failed if bad else passed).append(test)
        return passed, failed


@contextmanager
def _ended_by_signals(session: Session) -> Iterator[None]:
    """What was started does not outlive this process, whose terminal or CI ends only itself."""

    def stop(number: int, frame: FrameType | None) -> None:
        session.stop_status = 128 + number
        if not session.starting:
            raise SystemExit(session.stop_status)

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {one: signal.signal(one, stop) for one in numbers}
    try:
        yield
    finally:
        for one in numbers:
            signal.signal(one, signal.SIG_IGN)  # a second one must not stop what ends them
        for child in list(session.running):
            session.end(child)
        for one, handler in before.items():
            signal.signal(one, handler)


def run(stages: Iterable[Stage], session: Session | None = None, *, again: bool = False) -> int:
    """Run stages, print what came out, and return the exit status."""
    session = session or Session()
    session.records.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    beside: list[tuple[Stage, subprocess.Popen[bytes], Path]] = []

    def join() -> None:
        for stage, child, log in beside:
            status = session.wait(child)
            said = log.read_text(errors="replace").rstrip() if status != 0 else "passed"
            session.say(f"== {stage.name}: {' '.join(stage.commands[0])}\n{said}")
            outcome = Outcome(stage.name, seconds=time.monotonic() - began)
            outcome.judge(" ".join(stage.commands[0]), status)
            session.outcomes.append(outcome)
        beside.clear()

    with _ended_by_signals(session):
        for stage in stages:
            if stage.beside:
                log = session.records / f"{stage.name}.log"
                (command,) = stage.commands
                beside.append((stage, session.start(command, stage.env, log), log))
                continue
            if stage.pytest:
                join()
            session.run(stage)
        join()
        flaky, failed = [], [test for one in session.outcomes for test in one.failed]
        if again:
            flaky, failed = session.again()
    return _summary(session, flaky, failed, time.monotonic() - began)


def _summary(session: Session, flaky: list[str], failed: list[str], seconds: float) -> int:
    """Print the result, with a line as pytest's last one at the end."""
    session.say("")
    total: Counter[str] = Counter()
    bad = bool(failed)
    for one in session.outcomes:
        total += one.counts
        words = _counts(one.counts) or ("failed" if one.problems else "passed")
        session.say(f"{one.stage}: {words} in {one.seconds:.0f} s")
        for problem in one.problems:
            session.say(f"  {problem}")
        for file, number in Counter(test.split("::")[0] for test in one.unreported).items():
            session.say(f"  not run: {file} ({number} tests)")
        bad = bad or bool(one.problems or one.unreported)
    for test in failed:
        session.say(f"failed: {test}")
    for test in flaky:
        session.say(f"flaky: {test}")
    if flaky:
        session.say("add to tests/flaky.txt, until they are mended:\n" + "\n".join(flaky))
        total["failed"] -= len(flaky)
        total["flaky"] = len(flaky)
    minutes = f"{seconds // 3600:.0f}:{seconds // 60 % 60:02.0f}:{seconds % 60:02.0f}"
    words = _counts(+total) or "no tests"
    if bad and not total["failed"]:
        words = f"not green, {words}"
    session.say(f"==== {words} in {seconds:.2f}s ({minutes}) ====")
    return int(bad)


def _counts(counts: Counter[str]) -> str:
    order = ("failed", "passed", "skipped", "flaky")
    return ", ".join(f"{counts[one]} {one}" for one in order if counts[one])


def _files_with(mark: str) -> list[str]:
    """The files of system tests with a mark: a process that collects all of them takes six CPU
    seconds.
    """
    files = sorted((ROOT / "tests" / "system").glob("test_*.py"))
    return [str(one.relative_to(ROOT)) for one in files if f"mark.{mark}" in one.read_text()]


def stages(names: Sequence[str]) -> list[Stage]:
    new_seed = os.environ.get("WEIGHBRIDGE_FUZZ_SEED") or str(secrets.randbits(32))
    # The tests' programs are compiled once, whatever the environment says. `python3` of pretended
    # hosts is an interpreter, and not the shell script of a version manager that looks for one.
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    env = {"PYTHONDONTWRITEBYTECODE": "", "PATH": path}
    files = ["--dist", "loadfile", "--no-loadscope-reorder"]  # in the order of conftest.py
    unit = ["-q", "tests", "--ignore=tests/system", *files]
    images = [sys.executable, "tests/system/build_images.py"]
    collect = [sys.executable, "-P", "-m", "pytest", "--collect-only"]
    make = ["make", "--no-print-directory", "-o", "setup-test"]

    def system(marks: str) -> list[list[str]]:
        """Most tests wait for daemons: five files at a time; then those that need half of the
        machine; then those that need all of it.
        """
        of = {mark: _files_with(mark) for mark in ("pair", "alone")}
        most = f"not pair and not alone and {marks}"
        return [
            ["-q", "tests/system", "-m", most, "-n", "5", *files],
            ["-q", *of["pair"], "-m", f"pair and {marks}", "-n", "2", *files],
            ["-q", *of["alone"], "-m", f"alone and {marks}"],
        ]

    known = [
        Stage("images", [images], pytest=False, beside=True),
        Stage("images-all", [[*images, "--all"]], pytest=False, beside=True),
        # Compiles tests once: processes that collect at the same time would each compile all.
        Stage("collect", [[*collect, "-qqq", "tests"]], env, pytest=False, beside=True),
        Stage("check", [[*make, "check"]], pytest=False),
        # Of the checks one waits for mypy, of the Rust tests most for the compiler.
        Stage("rust", [[*make, "rust"]], pytest=False, beside=True),
        Stage("wheel", [[*make, "wheel"]], pytest=False),
        # Long tests wait for programs; these are at work all the time.
        Stage("unit-short", [[*unit, "-n", "3", "-m", "not long and not test_all"]], env),
        Stage("unit", [[*unit, "-n", "6", "-m", "not test_all"]], env),
        Stage("system", system("not test_all and not by_hand"), env),
        Stage(
            "unit-all",
            [[*unit, "-n", "5"]],
            {**env, "WEIGHBRIDGE_FUZZ_SEED": new_seed, "WEIGHBRIDGE_FUZZ_CASES": "10000"},
        ),
        Stage("system-all", system("not by_hand"), env),
        Stage("by-hand", [["-q", "tests/system", "-m", "by_hand"]], env),
    ]
    by_name = {one.name: one for one in known}
    return [by_name[name] for name in names]


def main() -> int:
    if sys.argv[1:2] == ["--pytest"]:
        return recorded_pytest(sys.argv[2], sys.argv[3:])
    parser = argparse.ArgumentParser()
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--until", type=float, default=float("inf"))
    parser.add_argument("stage", nargs="+")
    chosen = parser.parse_args()
    wanted = stages(chosen.stage)
    for stage in wanted:
        if "WEIGHBRIDGE_FUZZ_SEED" in stage.env:
            sys.stdout.write(f"{stage.name}: fuzz seed {stage.env['WEIGHBRIDGE_FUZZ_SEED']}\n")
    return run(wanted, Session(until=chosen.until), again=chosen.again)


if __name__ == "__main__":
    sys.exit(main())
