"""The results of a tuning, and the sentences about them for page, terminal and slides."""

from __future__ import annotations

from collections.abc import Sequence

from weighbridge.common.record import Record
from weighbridge.common.scope import Scope, widest
from weighbridge.results.analysis.comparison import Effect
from weighbridge.results.analysis.sentence import opening
from weighbridge.results.analysis.tuning.confirmation import Confirmation
from weighbridge.results.analysis.tuning.setting_table import SettingEntry, SettingTable
from weighbridge.results.analysis.tuning.setting_words import objective_words
from weighbridge.results.figures import counted, listed, show_figure
from weighbridge.results.metrics import METRICS
from weighbridge.results.percent import TIMES, show_percent
from weighbridge.results.record import Fragment, LayoutVariant, State, Trial, TuningRun, Winner
from weighbridge.results.statistics import REPEATS_FOR_A_CLAIM
from weighbridge.suites.tuning import Parameter, show_setting


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
        """Settings that are not allowed or could not be tried."""
        return tuple(one for one in self.table.entries if one.verdict in ("not allowed", "failed"))

    @property
    def rounds(self) -> int:
        """The number of rounds over the baseline and open settings."""
        return len({one.round for one in self.trials})

    @property
    def failures(self) -> tuple[Trial, ...]:
        """Trials that could not be made."""
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
        """The winner's configuration; empty without one, and if it lost acknowledged writes."""
        return () if self.winner is None or self._lost_writes else self.winner.fragments

    # ---- sentences

    @property
    def headline(self) -> str:
        """The result in one sentence without a full stop."""
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
            return f"Not confirmed: its run ({found.state}) has nothing that can be compared."
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
        """`throughput of 64 kB reads at 16 workers +19 % (+14 % to +24 %), 1,730 op/s vs 1,470
        op/s`.
        """
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
        """Whether a complete confirmation with enough visits for a claim did not confirm, or power
        cuts took writes from the winner.
        """
        found = self.confirmation
        if found is None:
            return False
        if self._lost_writes:
            return True
        enough = found.state == "done" and found.repeats >= REPEATS_FOR_A_CLAIM
        return enough and not found.confirmed

    @property
    def _unconfirmed(self) -> str:
        """`was not confirmed`, or what power cuts took from it."""
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
