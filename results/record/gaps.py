"""What a run folder lacks, as sentences: unmeasured steps, torn lines, missing files.

None of it is an error: what is there is used, and what is missing is unknown, never zero. A run
that is still in progress has gaps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from weighbridge.results.record.interval_log import log_header
from weighbridge.results.record.reading import count_lines, torn
from weighbridge.results.record.resolved import ResolvedPlan
from weighbridge.results.record.step import StepResult
from weighbridge.results.record.store import RunStore
from weighbridge.results.record.trial import TRIALS, TuningStore

BUDGET: Final = "budget"
"""The kind of event that the conductor logs when the run's budget ends it."""


def gaps(store: RunStore, plan: ResolvedPlan, steps: Iterable[StepResult]) -> tuple[str, ...]:
    """All gaps; empty for a complete run. `steps` are the latest result of each step.

    Raises UsageError on unreadable files.
    """
    found = list(steps)
    unmeasured = (
        _unmeasured(store, plan, found)
        if TuningStore(store.folder).run() is None
        else _untried(store)
    )
    return (*unmeasured, *_torn(store), *_missing(store, found))


def _unmeasured(store: RunStore, plan: ResolvedPlan, found: Sequence[StepResult]) -> Iterator[str]:
    """How the run ended, if not well, and how many of its steps have a result."""
    planned = plan.suite.repeats * sum(
        len(workload.workers)
        for layout in plan.layouts
        for one in plan.passes_of(layout.name)
        for workload in one.workloads
    )
    many = sum(step.key.rate_per_s is None for step in found)
    there = f"{many} of {planned} steps have a result"
    if store.manifest.state != "done":
        yield _not_done(store, "the run", there)
    elif many < planned:
        reason = "the run's budget ended it: " if _by_budget(store) else "the run is done, but "
        yield f"{reason}{there}"


def _untried(store: RunStore) -> Iterator[str]:
    """How a tuning ended, if not well. How many trials it needs is not known beforehand."""
    there = f"{len(TuningStore(store.folder).trials())} trials were made"
    if store.manifest.state != "done":
        yield _not_done(store, "the tuning", there)
    elif _by_budget(store):
        yield f"the tuning's budget ended it: {there}"


def _not_done(store: RunStore, what: str, there: str) -> str:
    state, why = store.manifest.state, store.manifest.error.partition("\n")[0]
    if state == "running":
        return f"{what} is still running, or was killed: {there}"
    ended = "failed" if state == "failed" else "was interrupted"
    return f"{what} {ended}{f' ({why})' if why else ''}: {there}"


def _by_budget(store: RunStore) -> bool:
    return any(event.kind == BUDGET for event in store.events())


def _torn(store: RunStore) -> Iterator[str]:
    for name in ("steps.jsonl", "events.jsonl", "attestation.jsonl", TRIALS):
        if torn(store.folder / name):
            yield f"{name}: the last line is incomplete and was ignored"


def _missing(store: RunStore, found: Sequence[StepResult]) -> Iterator[str]:
    """Missing files of measured steps; telemetry only if some step has it, since it is optional."""
    measured = [step for step in found if step.measurement is not None]
    kinds = (
        (
            "latency",
            "hlog",
            "steps.jsonl has these histograms too",
            [one for one in measured if _has_histogram(one)],
        ),
        ("series", "jsonl", "steps.jsonl has these seconds too", measured),
        ("telemetry", "jsonl", "what the hosts used in these steps is unknown", measured),
    )
    for folder, ending, meaning, wanted in kinds:
        paths = [store.folder / folder / f"{step.key.file_name}.{ending}" for step in wanted]
        missing = [path for path in paths if not path.exists()]
        if missing and (folder != "telemetry" or len(missing) < len(paths)):
            yield f"{_files(missing, len(paths), store.folder)}: {meaning}"
        if folder in _LINES:
            short = [
                path
                for path, step in zip(paths, wanted, strict=True)
                if path.exists() and count_lines(path, folder=store.folder) < _LINES[folder](step)
            ]
            if short:
                yield f"{_files(short, len(paths), store.folder, 'cut short')}: {meaning}"
        if folder == "telemetry":
            torn_files = [path for path in paths if torn(path, folder=store.folder)]
            if torn_files:
                named = _files(torn_files, len(paths), store.folder, "torn")
                yield f"{named}: their last lines were ignored"


def _has_histogram(step: StepResult) -> bool:
    return step.measurement is not None and any(
        tally.latency is not None for tally in step.measurement.tallies
    )


def _seconds(step: StepResult) -> int:
    return 0 if step.measurement is None else len(step.measurement.seconds)


def _histograms(step: StepResult) -> int:
    """Lines of the interval log, header included."""
    if step.measurement is None:
        return 0
    logged = sum(
        (tally.latency is not None) + (tally.first_byte is not None)
        for tally in step.measurement.tallies
    )
    return log_header(step.measurement.started_at).count("\n") + logged


_LINES: Final[Mapping[str, Callable[[StepResult], int]]] = MappingProxyType(
    {"series": _seconds, "latency": _histograms}
)
"""The minimum number of lines in the file of a step, by folder."""


def _files(paths: Sequence[Path], of: int, folder: Path, what: str = "missing") -> str:
    """`series: 2 of 40 files are missing (the first: series/swift.jsonl)`."""
    first = paths[0].relative_to(folder)
    return (
        f"{first.parts[0]}: {len(paths)} of {of} files {'is' if len(paths) == 1 else 'are'} "
        f"{what} (the first: {first})"
    )
