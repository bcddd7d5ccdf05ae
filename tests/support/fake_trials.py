"""Made-up tunings for tests of their analysis: trials in rounds, with the fields that it reads."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from made_rows import made_point
from weighbridge.results.figures.summary import JudgedStep, Point
from weighbridge.results.run.step import StepKey
from weighbridge.results.run.trial import LayoutVariant, Trial, TuningRun
from weighbridge.suites import Bounds, Objects, Workload
from weighbridge.suites.tuning import Constraints, Objective, Parameter, Trials, Tuning

THREADS = "radosgw.threads"
TRIAL_S = 40.0


def tuning_run(
    *objectives: Objective,
    workers: tuple[int, ...] = (16,),
    trials: Trials | None = None,
    constraints: Constraints | None = None,
    threshold: Bounds | None = None,
) -> TuningRun:
    """A run whose baseline has 512 threads; default objective: throughput of 64 kB reads."""
    workload = Workload(
        name="small-read",
        objects=Objects(size=64_000),
        operations={"read": 1.0},
        workers=workers,
        runtime=30.0,
    )
    tuning = Tuning(
        name="threads",
        about="threads of radosgw",
        layout="rgw-beast",
        workloads=(workload,),
        objectives=objectives or (Objective(workload="small-read"),),
        parameters=(
            Parameter(key=THREADS, values=(64, 128)),
            Parameter(key="apache.threads_per_child", values=(64,)),
        ),
        trials=trials or Trials(),
        constraints=constraints or Constraints(),
        threshold=threshold or Bounds(),
    )
    suite = tuning.suite_of(None)
    return TuningRun(
        tuning=tuning,
        suite=suite,
        objectives=tuple(one.resolved(suite) for one in tuning.objectives),
        baseline="rgw-beast",
        layout_settings={THREADS: 512, "apache.threads_per_child": 25, "apache.server_limit": None},
    )


def fake_variant(value: int, key: str = THREADS) -> LayoutVariant:
    return LayoutVariant(
        name=f"{key.rpartition('.')[2].replace('_', '-')}-{value}", settings={key: value}
    )


def suite_point(repeat: int, ops_s: float, p90_ms: float | None = None, **more: object) -> Point:
    """A point of reads; by default with the p90 that Little's law implies."""
    known = {"samples": round(ops_s * 30), "valid": True, "steady": True, **more}
    return made_point(
        **{"repeat": repeat, "throughput_ops_s": ops_s, "p90_ms": p90_ms or 16_000 / ops_s, **known}
    )


@dataclass
class TrialMaker:
    """Makes trials one after another, with their visits.

    `level` is the baseline's throughput at a time in s, in op/s.
    """

    run: TuningRun
    level: Callable[[float], float] = lambda _: 1000.0
    scatter: float = 0.0
    seed: int = 1
    trials: list[Trial] = field(default_factory=list)
    visits: dict[StepKey, JudgedStep] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.draw = random.Random(self.seed)
        self.repeats: dict[str, int] = {}

    def visit(
        self,
        who: LayoutVariant,
        factor: float = 1.0,
        *,
        round: int = 0,  # noqa: A002
        deployment: int = 0,
        **point: object,
    ) -> Trial:
        """One trial: the baseline's throughput at that time, times `factor` and a random factor."""
        trial = self._trial(who, round=round, deployment=deployment)
        chance = math.exp(self.draw.gauss(0, self.scatter)) if self.scatter else 1.0
        ops_s = self.level(trial.started_s) * factor * chance
        name, counts = self.run.suite.workloads[0].name, self.run.suite.workloads[0].workers
        repeat = trial.repeat
        for workers in counts:
            key = StepKey(layout=who.name, api="s3", workload=name, workers=workers, repeat=repeat)
            made = suite_point(repeat, ops_s * workers / counts[-1], **point)  # type: ignore[arg-type]
            verdict = {"valid": made.valid, "steady": made.steady, "notes": made.notes}
            self.visits[key] = JudgedStep(key=key, points={"read": made}, **verdict)
        return trial

    def fail(self, who: LayoutVariant, why: str, *, round: int = 0) -> None:  # noqa: A002
        self._trial(who, round=round, failed=why)

    def _trial(self, who: LayoutVariant, **fields: Any) -> Trial:
        repeat = self.repeats[who.name] = self.repeats.get(who.name, -1) + 1
        number = len(self.trials)
        at_s = number * TRIAL_S
        trial = Trial(
            number=number, arm=who, repeat=repeat, scope="restart", started_s=at_s, **fields
        )
        self.trials.append(trial)
        return trial

    def go_round(
        self,
        variants: Sequence[tuple[LayoutVariant, float]],
        number: int,
        *,
        baseline_every: int = 5,
    ) -> None:
        """One round in seeded random order, with the baseline first, last and every few trials."""
        order = self.draw.sample(variants, len(variants))
        for place, (who, factor) in enumerate(order):
            if place % baseline_every == 0:
                self.visit(self.baseline, round=number)
            self.visit(who, factor, round=number)
        self.visit(self.baseline, round=number)

    @property
    def baseline(self) -> LayoutVariant:
        return LayoutVariant(name=self.run.baseline)
