"""The suite's command as a program of its own, as its users start it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import IO

import yaml

from weighbridge.common.errors import EXIT_FINE, EXIT_INVALID
from weighbridge.common.host import Host
from weighbridge.results.run.store import RunStore
from weighbridge.suites import Suite
from weighbridge.topologies.lab.host import LabHost

COMMAND = (sys.executable, "-m", "weighbridge")
_TRIAL = """
name: trial
settle: 0s
about: As short as it can be
api: {api}
{suite}
workloads:
  - name: {name}
    objects: {{size: {size}, containers: {containers}, per_container: {per_container}}}
    operations: {operations}
    workers: [{workers}]
    rate_per_s: {rate}
    runtime: {runtime}
    warmup: {warmup}
    verify: {verify}
    {workload}
"""
_USUAL = {
    "suite": "",
    "name": "small",
    "size": "4KiB",
    "containers": 1,
    "per_container": 5,
    "workers": 2,
    "rate": "null",
    "warmup": "0s",
    "verify": "1%",
    "workload": "",
}


def trial(api: str, operations: str, runtime: str, **changes: object) -> str:
    """The text of a suite of one step an API; `suite` and `workload` are further lines of each."""
    changed = {"api": api, "operations": operations, "runtime": runtime, **changes}
    return _TRIAL.format(**{**_USUAL, **changed})


def trial_suite(api: str, operations: str, runtime: str, **changes: object) -> Suite:
    return Suite.model_validate(yaml.safe_load(trial(api, operations, runtime, **changes)))


def weighbridge(
    words: str,
    *,
    stdin: str | None = None,
    timeout_s: float = 900,
    cwd: Path | None = None,
    within: tuple[str, ...] = (),
    env: Mapping[str, str] = MappingProxyType({}),
) -> subprocess.CompletedProcess[str]:
    """What the command came to. `within`: what starts it, as in another network namespace."""
    return subprocess.run(
        [*within, *COMMAND, *shlex.split(words)],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout_s,
        cwd=cwd,
        env={**os.environ, **env},
    )


def started(
    words: str,
    output: IO[str] | int,
    *,
    cwd: Path | None = None,
    within: tuple[str, ...] = (),
    env: Mapping[str, str] = MappingProxyType({}),
    start_new_session: bool = False,
) -> subprocess.Popen[str]:
    """The command, which goes on; all that it prints goes to `output`."""
    return subprocess.Popen(
        [*within, *COMMAND, *shlex.split(words)],
        stdout=output,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=cwd,
        env={**os.environ, **env},
        start_new_session=start_new_session,
    )


def in_network_of(host: Host) -> tuple[str, ...]:
    assert isinstance(host, LabHost)
    return "nsenter", f"--net=/proc/{host.pid}/ns/net"


def heard(run: subprocess.Popen[str], words: str) -> str:
    """What a command has printed to its pipe when some words have come."""
    assert run.stdout is not None
    said = ""
    while words not in said:
        said += (line := run.stdout.readline())
        assert line, said
    return said


def ended(run: subprocess.Popen[str]) -> tuple[int, str]:
    try:
        said = run.communicate(timeout=600)[0]
    finally:
        run.kill()
    assert "Traceback" not in said, said
    return run.returncode, said


def printed(run: subprocess.Popen[str], output: Path, seen: Callable[[str], bool]) -> None:
    """Wait until it is seen in what a command has printed to its file."""
    deadline = time.monotonic() + 400
    while not seen(output.read_text()):
        assert run.poll() is None, output.read_text()
        assert time.monotonic() < deadline, output.read_text()
        time.sleep(0.02)


def measured(done: subprocess.CompletedProcess[str], runs: Path) -> RunStore:
    """The one run that a folder has, of a command that ended well: see `valid_steps`."""
    said = done.stdout + done.stderr
    assert "Traceback" not in said, said
    found = list(runs.iterdir()) if runs.exists() else []
    assert len(found) == 1, said
    return valid_steps(done.returncode, said, RunStore.open(found[0]))


def valid_steps(code: int, said: str, store: RunStore) -> RunStore:
    """A run whose command ended well. Beside other tests nothing of it may be ranked, and then the
    command ends with 4, as it does if nothing valid was measured: but something was.
    """
    assert code in (EXIT_FINE, EXIT_INVALID), said
    steps = store.latest().values()
    assert any(step.valid for step in steps), [said, *(step.notes for step in steps)]
    return store
