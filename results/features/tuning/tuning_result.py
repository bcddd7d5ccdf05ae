"""The results of a tuning, and the sentences about them for page, terminal and slides."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from weighbridge.common.structure import Scope, widest
from weighbridge.results.features.durability import durability
from weighbridge.results.features.tuning.setting_table import (
    SettingEntry,
    SettingTable,
    interval_words,
    objective_words,
    setting_table,
)
from weighbridge.results.figures.doubt import PowerMark, few, not_tried
from weighbridge.results.figures.metrics import METRICS
from weighbridge.results.figures.statistics import (
    REPEATS_FOR_A_CLAIM,
    Ratio,
    geometric_mean,
    ratio,
    welch,
)
from weighbridge.results.figures.summary import JudgedStep, Row, rows_of
from weighbridge.results.judge.comparing import comparable, effect_of, judge, reason, with_test
from weighbridge.results.judge.comparison import Comparison, Effect, kind_of, subjects
from weighbridge.results.judge.run_data import RunData, of_run
from weighbridge.results.judge.words import Card, did, opening, strength
from weighbridge.results.numbers import (
    TIMES,
    UNKNOWN,
    counted,
    listed,
    show_figure,
    show_percent,
    show_ratio,
    upper,
)
from weighbridge.results.run import Fragment, LayoutVariant, State, Trial, TuningRun, Winner
from weighbridge.results.run.resolved import ResolvedPlan
from weighbridge.results.run.step import StepKey
from weighbridge.results.run.trial import CONFIRMATION, EntryVerdict, TuningStore
from weighbridge.suites import Bounds
from weighbridge.suites.tuning import Objective, Parameter, show_setting

# The winner on fresh deployments.


@dataclass(frozen=True)
class Confirmation:
    """The results of the run that confirms a winner; `effects` are in the objectives' order."""

    folder: Path
    state: State
    repeats: int
    """Visits of the side that has fewer; 0 if nothing was comparable."""
    effects: tuple[Effect | None, ...]
    """None: the run has nothing about this objective."""
    survival: PowerMark | None
    """What power cuts took from the winner; None: the tuning does not ask."""

    @property
    def known(self) -> tuple[Effect, ...]:
        return tuple(one for one in self.effects if one is not None and one.ratio is not None)

    @property
    def without_results(self) -> str:
        """Why nothing is known of any objective."""
        why = "; ".join(one.text.rstrip(".") for one in self.effects if one is not None)
        nothing = f"its run ({self.state}) has nothing that can be compared"
        return f"{nothing}: {why}" if why else nothing

    @property
    def confirmed(self) -> bool:
        """Whether it is better in one objective, worse in none, and lost nothing in power cuts."""
        verdicts = [one.verdict for one in self.effects if one is not None]
        return (
            (self.survival is None or self.survival.judgement == "kept")
            and len(self.known) == len(self.effects)
            and "better" in verdicts
            and "worse" not in verdicts
        )


def confirmation_folder(folder: Path) -> Path | None:
    """The newest run folder below this one; None if there is none. Links are not followed."""
    if folder.is_symlink():
        return None
    runs = (path.parent for path in folder.glob("*/manifest.json") if not path.parent.is_symlink())
    return max(runs, key=lambda path: path.name, default=None)


def _confirmation(run: TuningRun, fresh: RunData) -> Confirmation | None:
    """The verdict of a run of baseline and winner; None without both."""
    comparison, bounds = fresh.comparison, fresh.plan.suite.bounds
    if not comparison.subjects:
        return None
    sides = comparison.baseline, comparison.subjects[0]
    effects = tuple(
        _at(one, sides[1], comparison)
        if one.p90_within is None
        else _within(one, one.p90_within * 1000, sides, fresh.rows, bounds)
        for one in run.objectives
    )
    repeats = [one.ratio.repeats for one in effects if one is not None and one.ratio is not None]
    survival = None
    if run.tuning.constraints.lost is not None:
        marks = (one.mark for one in durability(fresh) if one.layout == sides[1])
        survival = next(marks, not_tried(sides[1]))
    return Confirmation(
        folder=fresh.store.folder,
        state=fresh.manifest.state,
        repeats=min(repeats, default=0),
        effects=effects,
        survival=survival,
    )


def _at(objective: Objective, winner: str, comparison: Comparison) -> Effect | None:
    wanted = (winner, objective.workload, objective.operation, objective.workers, objective.of)
    for one in comparison.effects:
        if (one.subject, one.workload, one.operation, one.workers, one.metric) == wanted:
            return one
    return None


def _within(
    objective: Objective,
    bound_ms: float,
    sides: tuple[str, str],
    rows: Sequence[Row],
    bounds: Bounds,
) -> Effect | None:
    """The largest throughput with p90 within its bound, per visit, for both sides."""
    requests = (objective.workload, objective.operation)
    base, sub = (
        [row for row in rows if row.layout == side and (row.workload, row.operation) == requests]
        for side in sides
    )
    if not base or not sub:
        return None
    before, after = _largest(base, bound_ms), _largest(sub, bound_ms)
    about = subjects(rows)[kind_of(base[0])]
    effect = effect_of(METRICS["throughput"], base[0], sub[0], about).model_copy(
        update={
            "baseline_value": geometric_mean(before) if before else None,
            "subject_value": geometric_mean(after) if after else None,
        }
    )
    if not before or not after:
        side, of_side = (sides[0], base) if not before else (sides[1], sub)
        doubted = list(dict.fromkeys(reason(row) for row in of_side if not comparable(row)))
        kept = f"keeps p90 within {bound_ms:g} ms"
        if doubted:
            kept = f"counts and {kept} ({listed(doubted)})"
        text = f"{about}: no visit of {side} {kept}."
        return effect.model_copy(update={"verdict": "not comparable", "text": text})
    measure, doubts = ratio(after, before), few(min(len(before), len(after)))
    effect = effect.model_copy(update={"ratio": measure, "doubts": doubts})
    if min(len(before), len(after)) > 1:
        effect = with_test(effect, welch(after, before))
    (judged,), _ = judge([effect], bounds)
    text = (
        f"{opening(judged)}{sides[1]} {did(judged, 'serves', 'served')} "
        f"{show_ratio(measure.value)} {sides[0]}’s {about} with p90 within {bound_ms:g} ms; "
        f"{strength(judged)}."
    )
    return judged.model_copy(update={"q": judged.p, "text": text, "smallest": None, "doubts": ()})


def _largest(rows: Sequence[Row], bound_ms: float) -> list[float]:
    largest: dict[int, float] = {}
    for row in rows:
        for point in row.points:
            p90_ms = point.value("p90")
            if point.ranked and p90_ms is not None and p90_ms <= bound_ms and point.ops_s > 0:
                largest[point.repeat] = max(largest.get(point.repeat, 0.0), point.ops_s)
    return list(largest.values())


# The tuning.

SIGNS: Final[dict[EntryVerdict, str]] = {
    "better": "▲",
    "worse": "▼",
    "trade-off": "◆",
    "too small to matter": "=",
    "not significant": "~",
    "provisional": "?",
    "not allowed": "!",
    "failed": "×",
    "not comparable": "–",
}
"""Signs shown before verdicts, so that colour is not needed to read them."""
_RESTARTED: Final[dict[Scope, str]] = {"buckets": "new buckets", "cluster": "new cluster"}


@dataclass(frozen=True)
class TuningResult:
    """A tuning with its trials, their table, its choice, and that choice on fresh deployments."""

    run: TuningRun
    trials: tuple[Trial, ...]
    table: SettingTable
    winner: Winner | None
    confirmation: Confirmation | None
    state: State

    @property
    def better(self) -> list[SettingEntry]:
        """Settings that are better, largest gain first."""
        return [one for one in self.table.entries if one.verdict == "better"]

    @property
    def by_gain(self) -> list[SettingEntry]:
        """All settings, the largest gain first; those with unknown gain last."""
        return sorted(self.table.entries, key=lambda one: -(one.gain or 0.0))

    @property
    def refused(self) -> list[SettingEntry]:
        return [one for one in self.table.entries if one.verdict in ("not allowed", "failed")]

    @property
    def rounds(self) -> int:
        return len({one.round for one in self.trials})

    @property
    def called(self) -> list[str]:
        """Names of the objectives: `throughput of 64 kB reads at 16 workers`."""
        return [objective_words(self.run, one) for one in self.run.objectives]

    def scope(self, variant: LayoutVariant) -> Scope | None:
        """What must be restarted for a variant; None if unknown."""
        known = [self.run.scopes[key] for key in variant.settings if key in self.run.scopes]
        return widest(known) if known else None

    def needs(self, variant: LayoutVariant) -> str:
        """What must be restarted or created for a variant, in a word or two."""
        scope = self.scope(variant)
        return UNKNOWN if scope is None else _RESTARTED.get(scope, scope)

    def parameters(self, variant: LayoutVariant) -> list[Parameter]:
        """The parameters that a variant sets, without dependent ones."""
        return [one for one in self.run.tuning.parameters if one.key in variant.settings]

    @property
    def chosen(self) -> list[str]:
        """Each parameter of the winner in words: `radosgw.threads 512 → 64`."""
        if self.winner is None:
            return []
        settings = self.winner.arm.settings
        return [
            f"{key} {show_setting(self.run.layout_settings.get(key))} → "
            f"{show_setting(settings[key])}"
            for key in [one.key for one in self.parameters(self.winner.arm)] or settings
        ]

    @property
    def to_paste(self) -> list[Fragment]:
        """The winner's configuration, with whether it is confirmed as a comment; empty without a
        winner, and if it lost acknowledged writes.
        """
        if self.winner is None or self._lost_writes:
            return []
        comment = [f"# {line}" for line in textwrap.wrap(self.confirmation_words, 98)]
        fragments = []
        for fragment in self.winner.fragments:
            head, _, rest = fragment.text.partition("\n")
            text = "\n".join((head, *comment, rest))
            fragments.append(fragment.model_copy(update={"text": text}))
        return fragments

    @property
    def _lost_writes(self) -> str:
        """`lost acknowledged writes in 3 of 20 power cuts`; empty if the winner is not known to."""
        survival = None if self.confirmation is None else self.confirmation.survival
        return "" if survival is None else survival.loss

    # ---- sentences

    @property
    def headline(self) -> str:
        entries, confirmation = self.table.entries, self.confirmation
        settings = counted(len(entries), "setting")
        if not entries:
            return "No setting has been tried yet"
        if self.winner is not None and confirmation is not None and confirmation.confirmed:
            alone = len(self.chosen) == 1
            who = self.chosen[0] if alone else f"{counted(len(self.chosen), 'setting')} together"
            gain = _gain_words(confirmation.known)
            return f"{who} {'gives' if alone else 'give'} {gain}, confirmed on fresh deployments"
        if self.better:
            best = self.better[0]
            gain = _gain_words([one for one in best.effects if one.ratio is not None])
            if refuted := self._refuted:
                own = f"{best.name} helped most in its own trials ({gain})"
                return f"{own}, but the winner {refuted}"
            more = f"; {len(self.better)} of {settings} help" if len(self.better) > 1 else ""
            return f"{best.name} helps most: {gain}{more}"
        worse = sum(one.verdict == "worse" for one in entries)
        if worse:
            are = "is" if worse == 1 else "are"
            return f"None of {settings} is better than the baseline; {worse} {are} worse"
        provisional = sum(one.verdict == "provisional" for one in entries)
        lacking = provisional and provisional + len(self.refused) == len(entries)
        why = f": fewer than {REPEATS_FOR_A_CLAIM} trials" if lacking else ""
        return f"None of {settings} has a significant effect{why}"

    @property
    def _refuted(self) -> str:
        """That a complete confirmation did not confirm, or that power cuts took its writes."""
        found = self.confirmation
        if found is None or self._lost_writes:
            return self._lost_writes
        enough = found.state == "done" and found.repeats >= REPEATS_FOR_A_CLAIM
        return "was not confirmed" if enough and not found.confirmed else ""

    @property
    def winner_words(self) -> str:
        """Which settings were chosen and why, or that none was."""
        if self.winner is None:
            if self.state != "done":
                return "No setting has been chosen yet."
            none = ": none is better in at least one objective and worse in none"
            return f"No setting was chosen{'' if self.better else none}."
        reason = self.winner.reason.rstrip(".")
        if self.chosen and all(name in reason for name in self.chosen):
            return f"Chosen: {reason}."
        return f"Chosen: {', '.join(self.chosen)}.{f' {reason}.' if reason else ''}"

    @property
    def confirmation_words(self) -> str:
        """Whether the winner is better on fresh deployments too."""
        if self.winner is None:
            return "There is nothing to confirm."
        found = self.confirmation
        if found is None:
            return "Not confirmed: it was not compared with the baseline on fresh deployments."
        if not found.known:
            return f"Not confirmed: {found.without_results}."
        effects = "; ".join(
            _versus(called, one)
            for called, one in zip(self.called, found.effects, strict=True)
            if one is not None
        )
        enough = found.repeats >= REPEATS_FOR_A_CLAIM
        repeats = f"n = {found.repeats}{'' if enough else ', too few for a claim'}"
        if found.survival is not None:
            repeats += f"; power of the winner: {found.survival.words}"
        unfinished = "" if found.state == "done" else f" (its run is {found.state})"
        said = "Confirmed on fresh deployments" if found.confirmed else f"Not confirmed{unfinished}"
        return f"{said}: {effects}; {repeats}."

    @property
    def without_effect_words(self) -> str:
        """For how many settings no effect was found, and how many have one too small to matter."""
        none = self.table.without_effect
        if not none:
            judged = {"better", "worse", "trade-off"} & {one.verdict for one in self.table.entries}
            return "Every setting that was tried often enough has an effect." if judged else ""
        small = sum(one.verdict == "too small to matter" for one in none)
        words = [f"no effect was found for {len(none) - small}"] if len(none) > small else []
        words += [f"the effect of {small} is too small to matter"] if small else []
        return f"Of {counted(len(self.table.entries), 'setting')}: {'; '.join(words)}."

    @property
    def drift_words(self) -> list[str]:
        """How the baseline drifted, a sentence for each objective."""
        return [f"{upper(one.words.rstrip('.'))}." for one in self.table.drift]


def _versus(called: str, effect: Effect) -> str:
    """`throughput of 64 kB reads at 16 workers +19 % (+14 % to +24 %), 1,730 op/s vs 1,470`."""
    if effect.ratio is None:
        return effect.text.rstrip(".")
    interval = interval_words(effect)
    text = f"{called} {show_percent(effect.ratio.value)}{f' ({interval})' if interval else ''}"
    if effect.verdict == "not significant":
        none = opening(effect).removesuffix(": ")
        text += f", {none[:1].lower()}{none[1:]}"
    if effect.baseline_value is None or effect.subject_value is None:
        return text
    unit = METRICS[effect.metric].unit
    values = (show_figure(effect.subject_value), show_figure(effect.baseline_value))
    return f"{text}, {values[0]} {unit} vs {values[1]} {unit}"


def _gain_words(effects: Sequence[Effect]) -> str:
    """The improvements among these effects, else all: `22 % more throughput, 18 % shorter p90`."""
    better = [one for one in effects if one.verdict == "better"] or list(effects)
    return listed([change_words(one) for one in better])


def change_words(effect: Effect) -> str:
    """`22 % more throughput`, `18 % shorter p90`; a factor from three times on."""
    metric = METRICS[effect.metric]
    if effect.ratio is None:
        return f"an unknown {metric.name}"
    value = effect.ratio.value
    if value >= TIMES:
        return f"{show_percent(value)} the {metric.name}"
    way = ("more", "less") if metric.better == "more" else ("longer", "shorter")
    return f"{show_percent(value, signed=False).lstrip('−')} {way[value < 1]} {metric.name}"


def change_figure(effect: Effect) -> str:
    """The change: `+12 %`; `+2 % ~` if not significant, `(+12 %)` if provisional."""
    if effect.ratio is None:
        return UNKNOWN
    change = show_percent(effect.ratio.value)
    marks = {"provisional": f"({change})", "not significant": f"{change} ~"}
    return marks.get(effect.verdict, change)


def cpu_words(ratio: Ratio | None) -> str:
    """The change of CPU per operation; `~` if the interval includes none."""
    if ratio is None:
        return UNKNOWN
    unclear = ratio.low is not None and ratio.high is not None and not ratio.shown
    return f"{show_percent(ratio.value)}{' ~' if unclear else ''}"


_BEFORE: Final = re.compile(r"(?<![^ (])(?:[A-Za-z_][\w:-]*\.)+(?=[A-Za-z_])")
"""The part of a key before its last word."""


def short_names(names: Sequence[str]) -> dict[str, str]:
    """Settings without the prefix of their keys, `threads 512 → 64`, unless two would be equal."""
    short = {name: _BEFORE.sub("", name) for name in names}
    called = list(short.values())
    return {name: brief if called.count(brief) == 1 else name for name, brief in short.items()}


BLUE: Final = "#0072B2"
ORANGE: Final = "#D55E00"
GREY: Final = "#9aa0ab"


def cards(result: TuningResult) -> Iterator[Card]:
    """The cards that have something to say."""
    verdicts = [one.verdict for one in result.table.entries]
    for best in result.better[:1]:
        changes = zip(result.called, best.effects, strict=True)
        called, effect = next(change for change in changes if change[1].verdict == "better")
        ends, figure = _ends_and_repeats(effect), change_figure(effect)
        detail = f"{ends}; in its own trials"
        yield Card(upper(called), figure, best.name, detail, colour=BLUE)
    if result.winner is not None:
        yield _confirmation_card(result)
    if verdicts:
        small = verdicts.count("too small to matter")
        text = f"and {small} with one too small to matter" if small else "not significant"
        none = f"{verdicts.count('not significant')} of {len(verdicts)}"
        detail = "each with what could have been found"
        yield Card("Settings with no effect found", none, text, detail, colour=GREY)
    avoid: list[EntryVerdict] = ["worse", "trade-off", "not allowed", "failed"]
    counts = {one: verdicts.count(one) for one in avoid if one in verdicts}
    if counts:
        text = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
        detail = "the table of trials says why"
        yield Card("Settings to avoid", str(sum(counts.values())), text, detail, colour=ORANGE)


def _confirmation_card(result: TuningResult) -> Card:
    found, names = result.confirmation, result.chosen
    chosen = names[0] if len(names) == 1 else f"{len(names)} settings together"
    if found is None or not found.known:
        why = "no run on fresh deployments" if found is None else found.without_results
        return Card("Not confirmed yet", UNKNOWN, chosen, why, colour=GREY)
    first = next((one for one in found.known if one.verdict == "better"), found.known[0])
    return Card(
        figure=change_figure(first),
        about=f"{'Confirmed' if found.confirmed else 'Not confirmed'} on fresh deployments",
        text=f"{first.metric}: {chosen}",
        detail=_ends_and_repeats(first),
        colour=BLUE if found.confirmed else ORANGE,
    )


def _ends_and_repeats(effect: Effect) -> str:
    repeats = 0 if effect.ratio is None else effect.ratio.repeats
    return ", ".join(filter(None, (interval_words(effect), f"n = {repeats}")))


# What is read of a run.


@of_run
def setting_results(data: RunData) -> SettingTable | None:
    """The results of the trials; None if the run is not a tuning."""
    if data.tuning is None:
        return None
    return setting_table(data.tuning, data.trials, data.visits)


@of_run
def tuned(data: RunData) -> TuningResult | None:
    """The result of a tuning; None if the run is not one."""
    table = setting_results(data)
    if data.tuning is None or table is None:
        return None
    folder = confirmation_folder(data.store.folder / CONFIRMATION)
    return TuningResult(
        run=data.tuning,
        trials=data.trials,
        table=table,
        winner=TuningStore(data.store.folder).winner(),
        # On fresh deployments; none, if no such run was started.
        confirmation=None if folder is None else _confirmation(data.tuning, type(data)(folder)),
        state=data.manifest.state,
    )


def tuning_rows(
    plan: ResolvedPlan, visits: Mapping[StepKey, JudgedStep], trials: Sequence[Trial]
) -> tuple[Row, ...]:
    """The table of a tuning, a row a variant, without steps of a trial that was cut off."""
    repeats: dict[str, int] = {}
    for trial in trials:
        repeats[trial.arm.name] = max(repeats.get(trial.arm.name, 0), trial.repeat + 1)
    complete = {(trial.arm.name, trial.repeat) for trial in trials}
    kept = {key: visit for key, visit in visits.items() if (key.layout, key.repeat) in complete}
    rows: list[Row] = []
    for layout in plan.layouts:
        if layout.name in repeats:
            suite = plan.suite.model_copy(update={"repeats": repeats[layout.name]})
            alone = plan.model_copy(update={"layouts": (layout,), "suite": suite})
            rows += rows_of(alone, kept)
    places = {workload.name: number for number, workload in enumerate(plan.suite.workloads)}
    return tuple(sorted(rows, key=lambda row: (places[row.workload], row.operation, row.workers)))


def tuning_comparison(table: SettingTable) -> Comparison:
    """A tuning's effects as the comparison that tables, exports and slides read."""
    effects = tuple(effect for entry in table.entries for effect in entry.effects)
    return Comparison(
        baseline=table.baseline.name,
        subjects=tuple(entry.variant.name for entry in table.entries),
        effects=effects,
        tests=sum(effect.p is not None for effect in effects),
    )
