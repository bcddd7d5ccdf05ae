"""The ledger of a tuning: each setting that was tried, how it differs from the baseline, and whether that is real."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import NonNegativeFloat, NonNegativeInt

from ground.record import Record
from results.comparison import Effect
from results.statistics import Ratio
from results.step import StepKey
from results.trial import Arm, EntryVerdict, Trial, TuningRun
from results.visit import Visit
from suites.tuning import Objective


class Reading(Record):
    """The figure of one objective in one trial: op/s, or ms of p90."""

    trial: NonNegativeInt
    objective: NonNegativeInt
    """By its place among the run's objectives."""
    value: float | None
    """None: it has none, and `why` says so."""
    why: str = ""
    reference: float | None = None
    """The baseline's figure at that moment, between its trials on both sides; None of the baseline's own, and where it has none."""


class Entry(Record):
    """One arm: what it sets, its trials, and what they came to. `effects` are in the order of the objectives."""

    arm: Arm
    name: str
    """The setting in words: `radosgw.threads 512 → 64`; of several, all of them."""
    trials: NonNegativeInt
    """Those that count."""
    effects: tuple[Effect, ...]
    verdict: EntryVerdict
    clear: bool
    """Whether each objective's interval is clear of its threshold: beyond it, or within it to both sides. No more is learnt."""
    gain: float | None
    """Geometric mean over the objectives of how much better it is than the baseline: 1.1 is 10 % better. None: not known."""
    gain_low: float | None = None
    gain_high: float | None = None
    """Its running 95 % interval as of one look, for pruning proposals; None with fewer than 2 trials."""
    gateway_cpu: Ratio | None = None
    storage_cpu: Ratio | None = None
    """CPU seconds for 1000 operations as times the baseline's, over the objectives' steps; None where not recorded."""
    notes: tuple[str, ...] = ()
    """Why it is not allowed or failed, and what else must be known."""


class Drift(Record):
    """How the baseline moved over the run, for one objective."""

    objective: NonNegativeInt
    trials: NonNegativeInt
    per_hour: float | None = None
    """By which factor it changed in an hour, by the line through the logarithms of its trials; None where it cannot be told."""
    p: float | None = None
    """How often chance alone would make such a line."""
    spread: NonNegativeFloat | None = None
    """Standard deviation of its logarithms: by how much trials of the same scatter, as a share."""
    range: NonNegativeFloat | None = None
    """Its highest trial over its lowest."""
    words: str
    """All that in one sentence, and that trials were set against the baseline beside them."""


class Ledger(Record):
    """All entries, the largest gain first, and how the baseline did."""

    baseline: Arm
    objectives: tuple[Objective, ...]
    entries: tuple[Entry, ...]
    readings: tuple[Reading, ...]
    drift: tuple[Drift, ...]
    trials: NonNegativeInt
    """All that were made, the baseline's and failed ones too."""
    looks: NonNegativeInt
    """How often a setting was judged at the most; intervals are corrected for it."""

    @property
    def without_effect(self) -> tuple[Entry, ...]:
        """Settings that were tried often enough and show no effect that matters."""
        return tuple(one for one in self.entries if one.verdict in ("no effect shown", "too small to matter"))

    def entry(self, arm: Arm) -> Entry | None:
        """The entry of an arm; None where it has no trial."""
        return next((one for one in self.entries if one.arm.name == arm.name), None)


def ledger(run: TuningRun, trials: Sequence[Trial], visits: Mapping[StepKey, Visit]) -> Ledger:
    """The ledger of the trials so far. `visits` are what is kept of their steps. A pure function: also called after each round."""
    raise NotImplementedError
