"""What earlier runs on a machine showed of it, which repeats within a run cannot: a line for each,
in a file of the machine, and a copy in each run's folder, so that its results can be derived
anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field

from weighbridge.common.record import Record
from weighbridge.results.run.reading import append_line, read_lines, write_atomically
from weighbridge.results.run.resolved import Manifest

KNOWN: Final = "machine.jsonl"
"""The file, in the state folder and in run folders."""
RUNS: Final = 50
"""How many of them count: the last ones."""
SAME: Final = ("cpu", "cpus", "hardware")
"""Facts of a machine that must be the same."""


MAX_LOG: Final = 30.0
"""Beyond e^30 nothing is a ratio, and a slope that is known no better says nothing."""
Logarithm = Annotated[float, Field(ge=-MAX_LOG, le=MAX_LOG)]
Error = Annotated[float, Field(ge=0, le=MAX_LOG)]


class ControlRatio(Record):
    """What the A/A control of a layout showed for a metric: the mean logarithm of its figure
    relative to the layout's, over the repeats, and its standard error.
    """

    metric: str
    difference: Logarithm
    error: Error


class LoadSlope(Record):
    """How the logarithm of a layout's figure changes with the share of the machine's CPUs that
    other programs use, and the standard error of that.
    """

    layout: str
    metric: str
    slope: Logarithm
    error: Error


class MachineRun(Record):
    """What one run showed. `machine` names machine and hardware; others say nothing about it."""

    run_id: str
    machine: str
    controls: tuple[ControlRatio, ...] = ()
    slopes: tuple[LoadSlope, ...] = ()


def machine_of(manifest: Manifest) -> str:
    """What a run's machine and hardware are called: `AMD EPYC 7B13, 2, auto-2`."""
    facts = next((sheet.facts for sheet in manifest.sheets if sheet.title == "machine"), {})
    return ", ".join(facts.get(name, "") for name in SAME)


def keep_runs(folder: Path, runs: Iterable[MachineRun]) -> None:
    """Write the file of a run's folder. Raises StoreError."""
    write_atomically(folder / KNOWN, "".join(f"{run.model_dump_json()}\n" for run in runs))


def add_run(folder: Path, run: MachineRun) -> None:
    """Add a run to the machine's file. Raises StoreError."""
    append_line(folder / KNOWN, run.model_dump_json())


def earlier_runs(folder: Path, manifest: Manifest) -> tuple[MachineRun, ...]:
    """The other runs of a run's machine in a folder's file, of each its last line. Raises
    InvalidMeasurement with file:line.
    """
    runs = {run.run_id: run for run in read_lines(folder / KNOWN, MachineRun.model_validate_json)}
    machine = machine_of(manifest)
    runs.pop(manifest.run_id, None)
    return tuple(run for run in runs.values() if run.machine == machine)[-RUNS:]
