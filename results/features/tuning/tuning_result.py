"""The results of a tuning, and the sentences about them for page, terminal and slides."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from pydantic import NonNegativeInt

from weighbridge.common.record import Record
from weighbridge.common.structure import Scope, widest
from weighbridge.results.features.durability import LayoutDurability, durability
from weighbridge.results.features.tuning.setting_effects import objective_words
from weighbridge.results.features.tuning.setting_table import (
    SettingEntry,
    SettingTable,
    setting_table,
)
from weighbridge.results.figures.doubt import few
from weighbridge.results.figures.metrics import METRICS
from weighbridge.results.figures.power_mark import PowerMark, not_tried
from weighbridge.results.figures.statistics import (
    REPEATS_FOR_A_CLAIM,
    Ratio,
    geometric_mean,
    ratio,
    welch,
)
from weighbridge.results.figures.summary import Row, rows_of
from weighbridge.results.figures.visit import JudgedStep
from weighbridge.results.judge.comparing import judge
from weighbridge.results.judge.comparison import Comparison, Effect, kind_of, subjects
from weighbridge.results.judge.contrast import comparable, effect_of, reason, with_test
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


class Confirmation(Record):
    """The results of the run that confirms a winner; `effects` are in the objectives' order."""

    folder: Path
    state: State
    baseline: str
    winner: str
    """The layouts, by their names in that run."""
    repeats: NonNegativeInt
    """Visits of the side that has fewer; 0 if nothing was comparable."""
    effects: tuple[Effect | None, ...]
    """None: the run has nothing about this objective."""
    survival: PowerMark | None = None
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

    @property
    def gain(self) -> Ratio | None:
        """The geometric mean over the objectives, with the interval of a single one."""
        ratios = [
            one.ratio if METRICS[one.metric].better == "more" else one.ratio.inverted
            for one in self.known
            if one.ratio is not None
        ]
        if not ratios or len(ratios) < len(self.effects):
            return None
        value = geometric_mean([one.value for one in ratios])
        return ratios[0] if len(ratios) == 1 else Ratio(value=value, repeats=self.repeats or 1)


def confirmation_folder(folder: Path) -> Path | None:
    """The newest run folder below this one; None if there is none. Links are not followed."""
    if folder.is_symlink():
        return None
    runs = (path.parent for path in folder.glob("*/manifest.json") if not path.parent.is_symlink())
    return max(runs, key=lambda path: path.name, default=None)


def confirmation(
    folder: Path,
    state: State,
    run: TuningRun,
    comparison: Comparison,
    rows: tuple[Row, ...],
    bounds: Bounds,
    durability: Sequence[LayoutDurability] = (),
) -> Confirmation | None:
    """The verdict of a run of baseline and winner, `durability` included; None without both."""
    if not comparison.subjects:
        return None
    sides = comparison.baseline, comparison.subjects[0]
    effects = tuple(
        _at(one, sides[1], comparison)
        if one.p90_within is None
        else _within(one, sides, rows, bounds)
        for one in run.objectives
    )
    repeats = [one.ratio.repeats for one in effects if one is not None and one.ratio is not None]
    survival = None
    if run.tuning.constraints.lost is not None:
        mine = (one.mark for one in durability if one.layout == sides[1])
        survival = next(mine, not_tried(sides[1]))
    return Confirmation(
        folder=folder,
        state=state,
        baseline=sides[0],
        winner=sides[1],
        repeats=min(repeats, default=0),
        effects=effects,
        survival=survival,
    )


def _at(objective: Objective, winner: str, comparison: Comparison) -> Effect | None:
    return next(
        (
            one
            for one in comparison.effects
            if (one.subject, one.workload, one.operation, one.workers, one.metric)
            == (winner, objective.workload, objective.operation, objective.workers, objective.of)
        ),
        None,
    )


def _within(
    objective: Objective, sides: tuple[str, str], rows: tuple[Row, ...], bounds: Bounds
) -> Effect | None:
    """The largest throughput with p90 within its bound, per visit, for both sides."""
    mine = [
        row
        for row in rows
        if (row.workload, row.operation) == (objective.workload, objective.operation)
    ]
    heads = [next((row for row in mine if row.layout == side), None) for side in sides]
    base, sub = heads
    if base is None or sub is None:
        return None
    bound_ms = (objective.p90_within or 0.0) * 1000
    before, after = (
        _largest([row for row in mine if row.layout == side], bound_ms) for side in sides
    )
    about = subjects(rows)[kind_of(base)]
    made = effect_of(METRICS["throughput"], base, sub, about).model_copy(
        update={
            "baseline_value": geometric_mean(before) if before else None,
            "subject_value": geometric_mean(after) if after else None,
        }
    )
    if not before or not after:
        side = sides[0] if not before else sides[1]
        of_side = [row for row in mine if row.layout == side]
        doubted = list(dict.fromkeys(reason(row) for row in of_side if not comparable(row)))
        kept = f"keeps p90 within {bound_ms:g} ms"
        if doubted:
            kept = f"counts and {kept} ({listed(doubted)})"
        text = f"{about}: no visit of {side} {kept}."
        return made.model_copy(update={"verdict": "not comparable", "text": text})
    measure, lone = ratio(after, before), few(min(len(before), len(after)))
    made = made.model_copy(update={"ratio": measure, "doubts": () if lone is None else (lone,)})
    if min(len(before), len(after)) > 1:
        made = with_test(made, welch(after, before))
    (judged,), _ = judge([made], bounds)
    text = (
        f"{opening(judged)}{sides[1]} {did(judged, 'serves', 'served')} "
        f"{show_ratio(measure.value)} {sides[0]}’s {about} with p90 within {bound_ms:g} ms; "
        f"{strength(judged)}."
    )
    return judged.model_copy(update={"q": judged.p, "text": text, "smallest": None, "doubts": ()})


def _largest(rows: list[Row], bound_ms: float) -> list[float]:
    found: dict[int, float] = {}
    for row in rows:
        for point in row.points:
            p90_ms = point.value("p90")
            if point.ranked and p90_ms is not None and p90_ms <= bound_ms and point.ops_s > 0:
                found[point.repeat] = max(found.get(point.repeat, 0.0), point.ops_s)
    return list(found.values())


class TuningResult(Record):
    """A tuning with its trials, their table, its choice, and that choice on fresh deployments."""

    run: TuningRun
    trials: tuple[Trial, ...]
    table: SettingTable
    winner: Winner | None = None
    confirmation: Confirmation | None = None
    state: State = "done"

    # ---- parts

    @property
    def better(self) -> tuple[SettingEntry, ...]:
        """Settings that are better, largest gain first."""
        return tuple(one for one in self.table.entries if one.verdict == "better")

    @property
    def refused(self) -> tuple[SettingEntry, ...]:
        return tuple(one for one in self.table.entries if one.verdict in ("not allowed", "failed"))

    @property
    def rounds(self) -> int:
        return len({one.round for one in self.trials})

    @property
    def failures(self) -> tuple[Trial, ...]:
        return tuple(one for one in self.trials if one.failed)

    def scope(self, variant: LayoutVariant) -> Scope | None:
        """What must be restarted for a variant; None if unknown."""
        known = [self.run.scopes[key] for key in variant.settings if key in self.run.scopes]
        return widest(known) if known else None

    def parameters(self, variant: LayoutVariant) -> tuple[Parameter, ...]:
        """The parameters that a variant sets, without dependent ones."""
        return tuple(one for one in self.run.tuning.parameters if one.key in variant.settings)

    def named(self, variant: LayoutVariant) -> tuple[str, ...]:
        """Each parameter of a variant in words: `radosgw.threads 512 → 64`."""
        keys = [one.key for one in self.parameters(variant)] or list(variant.settings)
        return tuple(
            f"{key} {show_setting(self.run.layout_settings.get(key))} → "
            f"{show_setting(variant.settings[key])}"
            for key in keys
        )

    def called(self, number: int) -> str:
        """Name of an objective by its index: `throughput of 64 kB reads at 16 workers`."""
        return objective_words(self.run, self.run.objectives[number])

    @property
    def to_paste(self) -> tuple[Fragment, ...]:
        """The winner's configuration, with whether it is confirmed as a comment; empty without a
        winner, and if it lost acknowledged writes.
        """
        if self.winner is None or self._lost_writes:
            return ()
        said = [f"# {line}" for line in textwrap.wrap(self.confirmation_words, 98)]
        fragments = []
        for fragment in self.winner.fragments:
            head, _, rest = fragment.text.partition("\n")
            text = "\n".join((head, *said, rest))
            fragments.append(fragment.model_copy(update={"text": text}))
        return tuple(fragments)

    # ---- sentences

    @property
    def headline(self) -> str:
        entries = self.table.entries
        settings = counted(len(entries), "setting")
        if not entries:
            return "No setting has been tried yet"
        if (
            self.winner is not None
            and self.confirmation is not None
            and self.confirmation.confirmed
        ):
            return (
                f"{self._who} {self._gives(self.confirmation.known)}, confirmed on fresh "
                "deployments"
            )
        if self.better:
            best = self.better[0]
            if self._refuted:
                return (
                    f"{best.name} helped most in its own trials ({self._shown(best)}), but the "
                    f"winner {self._unconfirmed}"
                )
            more = f"; {len(self.better)} of {settings} help" if len(self.better) > 1 else ""
            return f"{best.name} helps most: {self._shown(best)}{more}"
        worse = sum(one.verdict == "worse" for one in entries)
        if worse:
            return (
                f"None of {settings} is better than the baseline; {worse} "
                f"{'is' if worse == 1 else 'are'} worse"
            )
        few = [one for one in entries if one.verdict == "provisional"]
        why = (
            f": fewer than {REPEATS_FOR_A_CLAIM} trials"
            if few and len(few) + len(self.refused) == len(entries)
            else ""
        )
        return f"None of {settings} has a significant effect{why}"

    @property
    def winner_words(self) -> str:
        """Which settings were chosen and why, or that none was."""
        if self.winner is None:
            if self.state != "done":
                return "No setting has been chosen yet."
            if self.better:
                return "No setting was chosen."
            return (
                "No setting was chosen: none is better in at least one objective and worse in none."
            )
        reason = self.winner.reason.rstrip(".")
        names = self.named(self.winner.arm)
        if names and all(name in reason for name in names):
            return f"Chosen: {reason}."
        return f"Chosen: {', '.join(names)}.{f' {reason}.' if reason else ''}"

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
            self._versus(number, one) for number, one in enumerate(found.effects) if one is not None
        )
        enough = found.repeats >= REPEATS_FOR_A_CLAIM
        repeats = f"n = {found.repeats}{'' if enough else ', too few for a claim'}"
        if found.survival is not None:
            repeats += f"; power of the winner: {found.survival.words}"
        if found.confirmed:
            return f"Confirmed on fresh deployments: {effects}; {repeats}."
        unfinished = "" if found.state == "done" else f" (its run is {found.state})"
        return f"Not confirmed{unfinished}: {effects}; {repeats}."

    def _versus(self, number: int, effect: Effect) -> str:
        """`throughput of 64 kB reads at 16 workers +19 % (+14 % to +24 %), 1,730 op/s vs 1,470`."""
        if effect.ratio is None:
            return effect.text.rstrip(".")
        interval, values = interval_words(effect), value_words(effect)
        none = opening(effect).removesuffix(": ")
        doubt = f", {none[:1].lower()}{none[1:]}" if effect.verdict == "not significant" else ""
        change = f"{show_percent(effect.ratio.value)}{f' ({interval})' if interval else ''}{doubt}"
        return f"{self.called(number)} {change}{f', {values}' if values else ''}"

    @property
    def without_effect_words(self) -> str:
        """For how many settings no effect was found, and how many have one too small to matter."""
        none = self.table.without_effect
        if not none:
            judged = {"better", "worse", "trade-off"} & {one.verdict for one in self.table.entries}
            return "Every setting that was tried often enough has an effect." if judged else ""
        small = sum(one.verdict == "too small to matter" for one in none)
        words = [f"no effect was found for {len(none) - small}"] if len(none) > small else []
        if small:
            words.append(f"the effect of {small} is too small to matter")
        return f"Of {counted(len(self.table.entries), 'setting')}: {'; '.join(words)}."

    @property
    def _refuted(self) -> bool:
        """Whether a complete confirmation did not confirm, or power cuts took its writes."""
        found = self.confirmation
        if found is None:
            return False
        if self._lost_writes:
            return True
        enough = found.state == "done" and found.repeats >= REPEATS_FOR_A_CLAIM
        return enough and not found.confirmed

    @property
    def _unconfirmed(self) -> str:
        return self._lost_writes or "was not confirmed"

    @property
    def _lost_writes(self) -> str:
        """`lost acknowledged writes in 3 of 20 power cuts`; empty if the winner is not known to."""
        survival = None if self.confirmation is None else self.confirmation.survival
        return "" if survival is None else survival.loss

    @property
    def _who(self) -> str:
        names = self.named(self.winner.arm) if self.winner is not None else ()
        return names[0] if len(names) == 1 else f"{counted(len(names), 'setting')} together"

    def _gives(self, effects: Sequence[Effect]) -> str:
        verb = (
            "gives" if self.winner is not None and len(self.named(self.winner.arm)) == 1 else "give"
        )
        return f"{verb} {gain_words(effects)}"

    def _shown(self, entry: SettingEntry) -> str:
        return gain_words([one for one in entry.effects if one.ratio is not None])


def gain_words(effects: Sequence[Effect]) -> str:
    """The improvements among these effects, else all: `22 % more throughput, 18 % shorter p90`."""
    shown = [one for one in effects if one.verdict == "better"] or list(effects)
    return listed([change_words(one) for one in shown])


def change_words(effect: Effect) -> str:
    """`22 % more throughput`, `18 % shorter p90`; a factor from three times on."""
    if effect.ratio is None:
        return f"an unknown {METRICS[effect.metric].name}"
    metric, value = METRICS[effect.metric], effect.ratio.value
    if value >= TIMES:
        return f"{show_percent(value)} the {metric.name}"
    way = ("more", "less") if metric.better == "more" else ("longer", "shorter")
    return f"{show_percent(value, signed=False).lstrip('−')} {way[value < 1]} {metric.name}"


def could_be_shown(effect: Effect) -> str:
    """The smallest effect that this many trials could have found: `6 %`; empty if unknown."""
    return "" if effect.smallest is None else show_percent(effect.smallest, signed=False)


def interval_words(effect: Effect) -> str:
    """`+15 % to +29 %`; empty without an interval."""
    ratio = effect.ratio
    if ratio is None or ratio.low is None or ratio.high is None:
        return ""
    return f"{show_percent(ratio.low)} to {show_percent(ratio.high)}"


def value_words(effect: Effect) -> str:
    """`412 op/s vs 338 op/s`; empty if a figure is unknown."""
    if effect.baseline_value is None or effect.subject_value is None:
        return ""
    unit = METRICS[effect.metric].unit
    subject, baseline = show_figure(effect.subject_value), show_figure(effect.baseline_value)
    return f"{subject} {unit} vs {baseline} {unit}"


BLUE: Final = "#0072B2"
ORANGE: Final = "#D55E00"
GREY: Final = "#9aa0ab"


@of_run
def setting_results(data: RunData) -> SettingTable | None:
    """The results of the trials; None if the run is not a tuning."""
    if data.tuning is None:
        return None
    return setting_table(data.tuning, data.trials, data.visits)


@of_run
def confirmed(data: RunData) -> Confirmation | None:
    """The winner on fresh deployments; None if no such run was started."""
    folder = confirmation_folder(data.store.folder / CONFIRMATION)
    if data.tuning is None or folder is None:
        return None
    fresh = type(data)(folder)
    return confirmation(
        folder,
        fresh.manifest.state,
        data.tuning,
        fresh.comparison,
        fresh.rows,
        fresh.plan.suite.bounds,
        durability(fresh),
    )


@of_run
def tuned(data: RunData) -> TuningResult | None:
    """The result of a tuning; None if the run is not one."""
    table = setting_results(data)
    if data.tuning is None or table is None:
        return None
    return TuningResult(
        run=data.tuning,
        trials=data.trials,
        table=table,
        winner=TuningStore(data.store.folder).winner(),
        confirmation=confirmed(data),
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
    rows = [
        row
        for layout in plan.layouts
        if layout.name in repeats
        for row in rows_of(
            plan.model_copy(
                update={
                    "layouts": (layout,),
                    "suite": plan.suite.model_copy(update={"repeats": repeats[layout.name]}),
                },
            ),
            kept,
        )
    ]
    places = {workload.name: number for number, workload in enumerate(plan.suite.workloads)}
    return tuple(sorted(rows, key=lambda row: (places[row.workload], row.operation, row.workers)))


def tuning_comparison(found: SettingTable) -> Comparison:
    """A tuning's effects as the comparison that tables, exports and slides read."""
    effects = tuple(effect for entry in found.entries for effect in entry.effects)
    return Comparison(
        baseline=found.baseline.name,
        subjects=tuple(entry.variant.name for entry in found.entries),
        effects=effects,
        tests=sum(effect.p is not None for effect in effects),
    )


def cards(result: TuningResult) -> tuple[Card, ...]:
    """The cards that have something to say."""
    return (*_best(result), *_confirmed(result), *_without(result), *_harmful(result))


def _best(result: TuningResult) -> Iterator[Card]:
    best = next(iter(result.better), None)
    if best is None:
        return
    found = [
        (number, one, one.ratio)
        for number, one in enumerate(best.effects)
        if one.verdict == "better"
    ]
    for number, effect, change in found[:1]:
        if change is not None:
            yield Card(
                figure=show_percent(change.value),
                about=upper(result.called(number)),
                text=best.name,
                detail=f"{interval_words(effect)}, n = {change.repeats}; in its own trials",
                colour=BLUE,
            )


def _confirmed(result: TuningResult) -> Iterator[Card]:
    if result.winner is None:
        return
    found, names = result.confirmation, result.named(result.winner.arm)
    chosen = names[0] if len(names) == 1 else f"{len(names)} settings together"
    if found is None or not found.known:
        why = "no run on fresh deployments" if found is None else found.without_results
        yield Card(figure=UNKNOWN, about="Not confirmed yet", text=chosen, detail=why, colour=GREY)
        return
    first = next((one for one in found.known if one.verdict == "better"), found.known[0])
    ends = interval_words(first)
    yield Card(
        figure=UNKNOWN if first.ratio is None else show_percent(first.ratio.value),
        about="Confirmed on fresh deployments"
        if found.confirmed
        else "Not confirmed on fresh deployments",
        text=f"{first.metric}: {chosen}",
        detail=f"{f'{ends}, ' if ends else ''}n = {found.repeats}",
        colour=BLUE if found.confirmed else ORANGE,
    )


def _without(result: TuningResult) -> Iterator[Card]:
    verdicts = [one.verdict for one in result.table.entries]
    small = verdicts.count("too small to matter")
    if verdicts:
        yield Card(
            figure=f"{verdicts.count('not significant')} of {len(verdicts)}",
            about="Settings with no effect found",
            text=f"and {small} with one too small to matter" if small else "not significant",
            detail="each with what could have been found",
            colour=GREY,
        )


def _harmful(result: TuningResult) -> Iterator[Card]:
    verdicts = [one.verdict for one in result.table.entries]
    counts = {
        kind: verdicts.count(kind) for kind in ("worse", "trade-off", "not allowed", "failed")
    }
    if any(counts.values()):
        yield Card(
            figure=str(sum(counts.values())),
            about="Settings to avoid",
            text=", ".join(f"{count} {kind}" for kind, count in counts.items() if count),
            detail="the table of trials says why",
            colour=ORANGE,
        )


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


RESTARTED: Final[dict[Scope, str]] = {
    "nothing": "nothing",
    "reload": "reload",
    "restart": "restart",
    "buckets": "new buckets",
    "cluster": "new cluster",
}
"""What must be restarted or created for a setting to take effect, in a word or two."""


_BEFORE: Final = re.compile(r"(?<![^ (])(?:[A-Za-z_][\w:-]*\.)+(?=[A-Za-z_])")
"""The part of a key before its last word."""


class ObjectiveChange(Record):
    """A setting's change of one objective; `tone` is the claim, `value` the sort key."""

    change: str
    interval: str
    figures: str
    tone: str
    value: float | None
    text: str


class SettingLine(Record):
    """One setting."""

    variant: str
    name: str
    trials: int
    changes: tuple[ObjectiveChange, ...]
    verdict: EntryVerdict
    sign: str
    gateway_cpu: str
    storage_cpu: str
    cpu_values: tuple[float | None, float | None]
    restarted: str
    gain: float | None
    notes: tuple[str, ...]

    @property
    def weak(self) -> bool:
        """Whether it claims nothing."""
        return self.verdict not in ("better", "worse", "trade-off")


def setting_lines(result: TuningResult) -> tuple[SettingLine, ...]:
    """The lines by gain, largest first; settings with unknown gain last."""
    entries = sorted(result.table.entries, key=lambda one: -(one.gain or 0.0))
    return tuple(_line(result, one) for one in entries)


def short_names(names: Sequence[str]) -> dict[str, str]:
    """Settings without the prefix of their keys, `threads 512 → 64`, unless two would be equal."""
    short = {name: _BEFORE.sub("", name) for name in names}
    called = list(short.values())
    return {name: brief if called.count(brief) == 1 else name for name, brief in short.items()}


def change_figure(effect: Effect) -> str:
    """The change: `+12 %`; `+2 % ~` if not significant, `(+12 %)` if provisional."""
    if effect.ratio is None:
        return UNKNOWN
    change = show_percent(effect.ratio.value)
    return (
        f"({change})"
        if effect.verdict == "provisional"
        else f"{change} ~"
        if effect.verdict == "not significant"
        else change
    )


def _line(result: TuningResult, entry: SettingEntry) -> SettingLine:
    scope = result.scope(entry.variant)
    return SettingLine(
        variant=entry.variant.name,
        name=entry.name,
        trials=entry.trials,
        changes=tuple(_change(one) for one in entry.effects),
        verdict=entry.verdict,
        sign=SIGNS[entry.verdict],
        gateway_cpu=_cpu(entry.gateway_cpu),
        storage_cpu=_cpu(entry.storage_cpu),
        cpu_values=(_value(entry.gateway_cpu), _value(entry.storage_cpu)),
        restarted=UNKNOWN if scope is None else RESTARTED[scope],
        gain=entry.gain,
        notes=entry.notes,
    )


def _change(effect: Effect) -> ObjectiveChange:
    ratio = effect.ratio
    good = None if ratio is None else METRICS[effect.metric].gain(ratio.value)
    return ObjectiveChange(
        change=change_figure(effect),
        interval=interval_words(effect),
        figures=value_words(effect),
        tone=effect.verdict if effect.verdict in ("better", "worse") else "",
        value=good,
        text=effect.text,
    )


def _cpu(ratio: Ratio | None) -> str:
    if ratio is None:
        return UNKNOWN
    unclear = ratio.low is not None and ratio.high is not None and not ratio.shown
    return f"{show_percent(ratio.value)}{' ~' if unclear else ''}"


def _value(ratio: Ratio | None) -> float | None:
    return None if ratio is None else ratio.value
