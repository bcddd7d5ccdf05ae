"""A made-up tuning for tests: seeded, with settings that help, harm, do nothing, break or fail.

Knobs declare what each setting does, the machine drifts during the measurement, and every trial
scatters: the analysis must find the effects of the knobs and no others.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Final

from fake_knobs import BASELINE, KNOBS, Knob, knob_of, winner_of
from fake_layers import hardware, structure
from made_up import host_second, measured_step
from weighbridge.common.structure import widest
from weighbridge.results.run.resolved import ConfigFile, PlannedLayout, ResolvedPlan, Sheet, State
from weighbridge.results.run.step import StepKey, StepResult
from weighbridge.results.run.store import RunStore
from weighbridge.results.run.telemetry import Head, HostLimits, Tail
from weighbridge.results.run.trial import CONFIRMATION, LayoutVariant, Trial, TuningRun, TuningStore
from weighbridge.suites import Objects, Operation, Workload
from weighbridge.suites.tuning import Constraints, Objective, Trials, Tuning

RELEASE: Final = "none-0"


def _workload(name: str, operation: Operation, workers: int) -> Workload:
    return Workload(
        name=name,
        objects=Objects(size=64_000),
        operations={operation: 100},
        workers=(workers,),
        runtime=2.0,
    )


WORKLOADS: Final = (_workload("small-read", "read", 16), _workload("small-write", "write", 8))
OBJECTIVES: Final = (Objective(workload="small-read"), Objective(of="p90", workload="small-write"))
_MEAN_MS: Final = {"small-read": 11.0, "small-write": 9.0}
"""Latency of the baseline at the start."""
_TRIAL_S: Final = 9.0
_BASE: Final = LayoutVariant(name=BASELINE)
_HOSTS: Final = (
    HostLimits(host="gateway-1", tier="gateway", cpus=1.0, memory_bytes=2**30),
    HostLimits(host="store-1", tier="storage", cpus=1.0, memory_bytes=2**30),
)


@dataclass(frozen=True)
class FakeCourse:
    """How a made-up tuning goes.

    `drift` is the factor by which the machine gets faster within an hour.
    """

    rounds: int = 6
    scatter: float = 0.03
    drift: float = 0.8
    state: State = "done"
    seed: int = 2014
    confirmed: float | None = 1.2
    """How much faster than the baseline the winner is on fresh deployments; None: not confirmed."""
    choose: bool = True

    def mean_ms(self, workload: str, workers: int, faster: float, draw: random.Random) -> float:
        """A latency with this scatter, `faster` times as fast as the baseline."""
        base_ms = _MEAN_MS.get(workload, 10.0) * workers / 16 / faster
        return base_ms * math.exp(draw.gauss(0, self.scatter))


def fake_tuning(
    runs: Path,
    course: FakeCourse | None = None,
    *,
    knobs: Sequence[Knob] = KNOBS,
    objectives: Sequence[Objective] = OBJECTIVES,
    workloads: Sequence[Workload] = WORKLOADS,
    constraints: Constraints | None = None,
) -> RunStore:
    """The run of a tuning below `runs`, as far as its course says. Raises StoreError."""
    course = course or FakeCourse()
    tuning = Tuning(
        name="made-up",
        about="Made-up figures",
        layout=BASELINE,
        workloads=tuple(workloads),
        objectives=tuple(objectives),
        constraints=constraints or Constraints(),
        parameters=tuple(knob.parameter for knob in knobs),
        trials=Trials(least=5, most=8),
        seed=course.seed,
    )
    suite = tuning.suite_of(None)
    variants = tuple(variant for knob in knobs for variant in knob.variants)
    book_run = TuningRun(
        tuning=tuning,
        suite=suite,
        objectives=tuple(one.resolved(suite) for one in objectives),
        baseline=BASELINE,
        arms=variants,
        scopes={key: knob.scope for knob in knobs for key in (knob.key, *knob.also)},
        layout_settings={knob.key: knob.was for knob in knobs},
        release=RELEASE,
    )
    plan = ResolvedPlan(
        suite=suite,
        hardware=hardware(),
        layouts=tuple(_layout(variant) for variant in (_BASE, *variants)),
        structures={BASELINE: structure(BASELINE)},
    )
    store = _store(runs, plan, ("weighbridge", "tune", "made-up.yaml"))
    book = TuningStore(store.folder)
    book.begin(book_run)
    _Machine(store, book, knobs, workloads, course).run(variants, tuning.trials.baseline_every)
    winner = winner_of(knobs, variants) if course.choose else None
    if winner is not None:
        book.choose(winner)
        if course.confirmed is not None:
            _confirm(store, plan, winner.arm, course)
    if course.state != "running":
        store.set_state(course.state)
    return store


def _layout(variant: LayoutVariant) -> PlannedLayout:
    return PlannedLayout(name=variant.name, about="Made-up figures", gateway="rgw", release=RELEASE)


def _store(runs: Path, plan: ResolvedPlan, command: tuple[str, ...]) -> RunStore:
    machine = {"kernel": "Linux 6.1", "processor": "made up", "cores": "2"}
    store = RunStore.create(
        runs,
        plan_yaml=f"name: {plan.suite.name}\n",
        plan=plan,
        suite=plan.suite.name,
        command=command,
        weighbridge_version="0.1.0",
        sheets=[Sheet(title="machine", facts=machine)],
    )
    facts = {"replicas": "3", "acknowledgement": "majority"}
    text = "[made-up]\nkey = ***\n"
    store.add_facts(
        [Sheet(title="gateway", layout=BASELINE, facts=facts)],
        [ConfigFile(layout=BASELINE, host="gateway-1", path="/etc/made-up.conf", text=text)],
    )
    return store


@dataclass
class _Machine:
    """The gateway that is tuned: its settings and the time of day make it faster or slower."""

    store: RunStore
    book: TuningStore
    knobs: Sequence[Knob]
    workloads: Sequence[Workload]
    course: FakeCourse
    number: int = 0
    order: int = 0
    made: dict[str, int] = field(default_factory=dict)
    current: LayoutVariant = _BASE

    def run(self, variants: Sequence[LayoutVariant], baseline_every: int) -> None:
        """Each round: the baseline, some settings in random order, the baseline, and so on."""
        untried = list(variants)
        for number in range(self.course.rounds):
            draw = random.Random(f"{self.course.seed} order {number}")
            shuffled = draw.sample(untried, len(untried))
            self._trial(_BASE, number)
            for _, part in groupby(enumerate(shuffled), key=lambda one: one[0] // baseline_every):
                for _, variant in part:
                    if not self._trial(variant, number):
                        untried.remove(variant)
                self._trial(_BASE, number)

    def _trial(self, variant: LayoutVariant, number: int) -> bool:
        """One trial in the round of this number; whether the gateway started with it."""
        started_s = int(self.number * _TRIAL_S)
        knob = knob_of(variant, self.knobs)
        failed = knob.fails if knob is not None else ""
        changed = set(variant.settings.items()) ^ set(self.current.settings.items())
        keys = {key for key, _ in changed}
        scope = widest(one.scope for one in self.knobs if one.key in keys)
        repeat = self.made.get(variant.name, 0)
        if not failed:
            for workload in self.workloads:
                for workers in workload.workers:
                    self._step(variant, knob, workload, workers, repeat, started_s)
        minutes, seconds = divmod(started_s, 60)
        self.book.add(
            Trial(
                number=self.number,
                arm=variant,
                repeat=repeat,
                round=number,
                scope=scope,
                changed=() if scope == "nothing" else ("radosgw on gateway-1 restarted",),
                changed_s=1.5,
                started_s=started_s,
                at=f"2026-11-04T{9 + minutes // 60:02d}:{minutes % 60:02d}:{seconds:02d}Z",
                failed=failed,
            )
        )
        self.number += 1
        self.made[variant.name] = repeat + 1
        self.current = variant if not failed else _BASE
        return not failed

    def _step(
        self,
        variant: LayoutVariant,
        knob: Knob | None,
        workload: Workload,
        workers: int,
        repeat: int,
        at_s: int,
    ) -> None:
        key = StepKey(
            layout=variant.name, api="s3", workload=workload.name, workers=workers, repeat=repeat
        )
        draw = random.Random(f"{self.course.seed} {key}")
        faster = 1.0 if knob is None else knob.faster[variant.settings[knob.key]]
        hour = self.course.drift ** (at_s / 3600)
        mean_ms = self.course.mean_ms(workload.name, workers, faster * hour, draw)
        errors = {"http-408": 60} if knob is not None and knob.erring else None
        seed = draw.randrange(2**31)
        step = measured_step(key, workload, mean_ms, self.order, seed, errors=errors)
        cpu = 1.0 if knob is None else knob.cpu
        _record(self.store, step, cpu_s_per_op=0.0004 * cpu * math.exp(draw.gauss(0, 0.01)))
        self.store.append(step)
        self.order += 1


def _record(store: RunStore, step: StepResult, *, cpu_s_per_op: float) -> None:
    """Telemetry of each second of the window: storage uses half the CPU of the gateway."""
    if step.measurement is None:
        return
    rate = sum(tally.count for tally in step.measurement.tallies) / step.measurement.window_s
    gateway, storage = _HOSTS
    cpu_s = rate * cpu_s_per_op
    with store.record_telemetry(Head(key=step.key, hosts=_HOSTS)) as file:
        for second in range(math.ceil(step.measurement.window_s)):
            file.write(
                [host_second(gateway, second, cpu_s), host_second(storage, second, cpu_s / 2)]
            )
        file.write([Tail(opened_within_s=0.01)])


def _confirm(
    store: RunStore, plan: ResolvedPlan, winner: LayoutVariant, course: FakeCourse
) -> None:
    """An ordinary run of baseline and winner, in a folder of the tuning's run."""
    layouts = (_layout(_BASE), _layout(winner))
    suite = plan.suite.model_copy(update={"repeats": 5})
    run = _store(
        store.folder / CONFIRMATION,
        plan.model_copy(update={"layouts": layouts, "suite": suite, "structures": {}}),
        ("weighbridge", "compare"),
    )
    keys = (
        (
            workload,
            StepKey(
                layout=layout.name, api="s3", workload=workload.name, workers=workers, repeat=repeat
            ),
        )
        for repeat in range(suite.repeats)
        for layout in layouts
        for workload in suite.workloads
        for workers in workload.workers
    )
    for order, (workload, key) in enumerate(keys):
        draw = random.Random(f"{course.seed} fresh {key}")
        faster = (course.confirmed or 1.0) if key.layout == winner.name else 1.0
        mean_ms = course.mean_ms(key.workload, key.workers, faster, draw)
        run.append(measured_step(key, workload, mean_ms, order, draw.randrange(2**31)))
    run.set_state("done")
