"""What a run folder lacks, in sentences: steps that were not measured, lines that are torn, files
that are not there.

None of it is an error: what is there can be used, and what is not is unknown, never zero. A run
that is still being made has gaps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from weighbridge.results.record.histogram import log_header
from weighbridge.results.record.reading import torn, whole_lines
from weighbridge.results.record.resolved import ResolvedPlan
from weighbridge.results.record.step import StepResult
from weighbridge.results.record.store import RunStore
from weighbridge.results.record.trial import TRIALS, TrialBook

BUDGET: Final = "budget"
"""The kind of the event that the conductor notes when a run's budget ends it."""


def gaps(store: RunStore, plan: ResolvedPlan, steps: Iterable[StepResult]) -> tuple[str, ...]:
    """All of them; empty for a run that is whole.

    `steps` are the last result of each. Raises UsageError on unreadable files.
    """
    found = list(steps)
    unmeasured = (
        _unmeasured(store, plan, found)
        if TrialBook(store.folder).run() is None
        else _untried(store)
    )
    return (*unmeasured, *_torn(store), *_missing(store, found))


def _unmeasured(store: RunStore, plan: ResolvedPlan, found: Sequence[StepResult]) -> Iterator[str]:
    """How the run ended, where it did not end well, and how many of its steps are there."""
    visits = [
        workload
        for layout in plan.layouts
        for one in plan.passes_of(layout.name)
        for workload in one.workloads
    ]
    planned = plan.suite.repeats * sum(len(workload.workers) for workload in visits)
    there = f"{len(found)} of {planned} steps are there"
    if store.manifest.state != "done":
        yield _not_done(store, "the run", there)
    elif len(found) < planned:
        yield (
            f"the run's budget ended it: {there}"
            if _by_budget(store)
            else f"the run is done, and {there}"
        )


def _untried(store: RunStore) -> Iterator[str]:
    """How a tuning ended, where it did not end well: how many trials it would have had is not known
    before it has them.
    """
    there = f"{len(TrialBook(store.folder).trials())} trials are there"
    if store.manifest.state != "done":
        yield _not_done(store, "the tuning", there)
    elif _by_budget(store):
        yield f"the tuning's budget ended it: {there}"


def _not_done(store: RunStore, what: str, there: str) -> str:
    state, why = store.manifest.state, store.manifest.error.partition("\n")[0]
    if state == "running":
        return f"{what} is still being made, or was killed: {there}"
    return (
        f"{what} "
        f"{'failed' if state == 'failed' else 'was interrupted'}{f' ({why})' if why else ''}: "
        f"{there}"
    )


def _by_budget(store: RunStore) -> bool:
    return any(event.kind == BUDGET for event in store.events())


def _torn(store: RunStore) -> Iterator[str]:
    for name in ("steps.jsonl", "events.jsonl", "attestation.jsonl", TRIALS):
        if torn(store.folder / name):
            yield f"{name}: its last line is torn and was left out"


def _missing(store: RunStore, found: Sequence[StepResult]) -> Iterator[str]:
    """Files of measured steps that are not there; telemetry only where some step has it: it can be
    left out of a run.
    """
    measured = [step for step in found if step.measurement is not None]
    kinds = (
        (
            "latency",
            "hlog",
            "their histograms are in steps.jsonl too",
            [one for one in measured if _has_histogram(one)],
        ),
        ("series", "jsonl", "their seconds are in steps.jsonl too", measured),
        ("telemetry", "jsonl", "what the hosts used in these steps is not known", measured),
    )
    for folder, ending, meaning, wanted in kinds:
        paths = [store.folder / folder / f"{step.key.file_name}.{ending}" for step in wanted]
        lacking = [path for path in paths if not path.exists()]
        if lacking and (folder != "telemetry" or len(lacking) < len(paths)):
            yield f"{_named(lacking, len(paths), store.folder)}: {meaning}"
        if folder in _LINES:
            short = [
                path
                for path, step in zip(paths, wanted, strict=True)
                if path.exists() and whole_lines(path, folder=store.folder) < _LINES[folder](step)
            ]
            if short:
                yield f"{_named(short, len(paths), store.folder, 'cut short')}: {meaning}"
        if folder == "telemetry":
            cut = [path for path in paths if torn(path, folder=store.folder)]
            if cut:
                yield (
                    f"{_named(cut, len(paths), store.folder, 'torn')}: their last lines were "
                    "left out"
                )


def _has_histogram(step: StepResult) -> bool:
    return step.measurement is not None and any(
        tally.latency is not None for tally in step.measurement.tallies
    )


def _seconds(step: StepResult) -> int:
    return 0 if step.measurement is None else len(step.measurement.seconds)


def _histograms(step: StepResult) -> int:
    """With the lines of the head."""
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
"""How many lines the file of a step in a folder has at the least."""


def _named(paths: Sequence[Path], of: int, folder: Path, what: str = "missing") -> str:
    """`series: 2 of 40 files are missing (the first: series/swift.jsonl)`."""
    first = paths[0].relative_to(folder)
    return (
        f"{first.parts[0]}: {len(paths)} of {of} files {'is' if len(paths) == 1 else 'are'} "
        f"{what} (the first: {first})"
    )
