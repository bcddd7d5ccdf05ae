from __future__ import annotations

from collections.abc import Iterator

from weighbridge.common.errors import UsageError
from weighbridge.results.analysis.comparison import Effect
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.analysis.tuning.setting_lines import RESTARTED, change_figure
from weighbridge.results.analysis.tuning.setting_table import SettingEntry
from weighbridge.results.analysis.tuning.tuning_result import TuningResult, interval_words
from weighbridge.results.export.paper import PaperColumn, PaperTable
from weighbridge.results.figures import UNKNOWN, show_percent, upper
from weighbridge.results.statistics import REPEATS_FOR_A_CLAIM, Ratio


def tuning_paper(data: RunData) -> PaperTable:
    """Each setting with its effects, in groups by verdict. Raises UsageError if it is no tuning."""
    result = data.tuned
    if result is None:
        raise UsageError(
            f"{data.store.folder}: not a tuning: it has no table of settings",
            advice="Choose another table.",
        )
    groups: dict[str, list[tuple[str, ...]]] = {}
    for entry in result.table.entries:
        groups.setdefault(entry.verdict, []).append(_line(result, entry))
    objectives = [result.called(number) for number in range(len(result.run.objectives))]
    state = "" if data.manifest.state == "done" else f" ({data.manifest.state})"
    return PaperTable(
        name="ledger",
        caption=f"Effect of each setting vs {result.table.baseline.name}; tuning "
        f"{result.run.tuning.name}, run {data.manifest.run_id}{state}",
        columns=(
            PaperColumn(title="Setting"),
            *(
                column
                for name in objectives
                for column in (
                    PaperColumn(title=upper(name), numeric=True),
                    PaperColumn(title="Interval", numeric=True),
                )
            ),
            PaperColumn(title="Verdict"),
            PaperColumn(title="Gateway CPU", numeric=True),
            PaperColumn(title="Storage CPU", numeric=True),
            PaperColumn(title="Trials", numeric=True),
            PaperColumn(title="Needs"),
        ),
        groups=tuple(tuple(lines) for lines in groups.values()),
        notes=tuple(_notes(result)),
    )


def _line(result: TuningResult, entry: SettingEntry) -> tuple[str, ...]:
    scope = result.scope(entry.variant)
    return (
        entry.name,
        *(cell for effect in entry.effects for cell in _cells(effect)),
        entry.verdict,
        _cpu(entry.gateway_cpu),
        _cpu(entry.storage_cpu),
        str(entry.trials),
        UNKNOWN if scope is None else RESTARTED[scope],
    )


def _cells(effect: Effect) -> tuple[str, str]:
    return change_figure(effect), interval_words(effect) or UNKNOWN


def _cpu(ratio: Ratio | None) -> str:
    return UNKNOWN if ratio is None else show_percent(ratio.value)


def _notes(result: TuningResult) -> Iterator[str]:
    looks = result.table.looks
    yield (
        "Change of geometric means from the baseline's trials before and after each trial; more is "
        "better for throughput, less for latencies. Intervals: 95 %"
        f"{f' over {looks} looks' if looks > 1 else ''}. ~: not significant."
    )
    if any(one.verdict == "provisional" for one in result.table.entries):
        yield f"In brackets: fewer than {REPEATS_FOR_A_CLAIM} trials, provisional."
    for one in result.table.drift:
        yield f"{upper(one.words.rstrip('.'))}."
    if result.winner is not None:
        yield result.winner_words
        yield result.confirmation_words
    for entry in result.refused:
        if entry.notes:
            yield f"{entry.name}: {entry.verdict}: {entry.notes[0]}."
