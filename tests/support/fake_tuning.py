"""A whole tuning made up for tests and for trying its page: seeded, with settings that help, harm,
do nothing, break and fail.

What each setting does is written down here, the machine drifts while it is measured, and every
trial scatters: a ledger of it must find the first again and none of the others. The figures say
nothing about any real gateway.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Final

from fake_layers import hardware, structure
from made_up import fake_measurement
from weighbridge.common.scope import Scope, widest
from weighbridge.results.analysis.steps.validity import judge
from weighbridge.results.record.manifest import ConfigFile, Sheet, State
from weighbridge.results.record.resolved import PlannedLayout, ResolvedPlan
from weighbridge.results.record.step import StepKey, StepResult
from weighbridge.results.record.store import RunStore
from weighbridge.results.record.telemetry import Head, HostLimits, HostSecond, Tail
from weighbridge.results.record.trial import (
    CONFIRMATION,
    Arm,
    Fragment,
    Trial,
    TrialBook,
    TuningRun,
    Winner,
)
from weighbridge.suites import Bounds, Objects, Workload
from weighbridge.suites.tuning import Level, Objective, Parameter, Setting, Trials, Tuning

BASELINE: Final = "rgw-beast"
RELEASE: Final = "none-0"
WORKLOADS: Final = (
    Workload(
        name="small-read",
        objects=Objects(size=64_000),
        operations={"read": 100},
        workers=(16,),
        runtime=2.0,
    ),
    Workload(
        name="small-write",
        objects=Objects(size=64_000),
        operations={"write": 100},
        workers=(8,),
        runtime=2.0,
    ),
)
OBJECTIVES: Final = (Objective(workload="small-read"), Objective(of="p90", workload="small-write"))
_MEAN_MS: Final = {"small-read": 11.0, "small-write": 9.0}
"""Of the baseline, at first."""
CREATED: Final = "2026-11-04T09:00:00+00:00"
_TRIAL_S: Final = 9.0


@dataclass(frozen=True)
class Knob:
    """A parameter of the made-up gateway, what it is by itself, and by how much each value makes
    the gateway faster.
    """

    key: str
    was: Setting | None
    faster: Mapping[Setting, float]
    scope: Scope = "restart"
    cpu: float = 1.0
    """CPU for an operation, as times the baseline's, of every value."""
    effect: str = "Made up."
    trap: str = ""
    erring: bool = False
    """Whether requests fail with it."""
    fails: str = ""
    """Why the gateway does not come up with it."""
    also: Mapping[str, Setting] = field(default_factory=dict)


KNOBS: Final = (
    Knob(
        "radosgw.threads",
        512,
        {64: 1.0, 16: 0.62},
        effect="Requests that radosgw works on at once.",
        trap="Too few block.",
    ),
    Knob(
        "radosgw.tcp_nodelay",
        was=True,
        faster={False: 0.71},
        effect="Small answers are sent without waiting for more.",
    ),
    Knob(
        "radosgw.max_concurrent_requests",
        1024,
        {64: 1.22, 256: 1.1},
        cpu=0.9,
        effect="A bound on what is in hand.",
    ),
    Knob(
        "options.client.rgw_get_obj_window_size",
        "16MiB",
        {"1MiB": 0.93, "64MiB": 1.0},
        effect="Read ahead for one request.",
    ),
    Knob(
        "options.client.objecter_inflight_ops",
        None,
        {256: 1.0, 4096: 1.0},
        effect="Operations on the way to OSDs.",
    ),
    Knob(
        "options.client.rgw_cache_enabled",
        was=None,
        faster={False: 0.55},
        cpu=1.6,
        effect="Metadata kept in memory.",
    ),
    Knob(
        "radosgw.ops_log",
        was=False,
        faster={True: 0.985},
        cpu=1.05,
        effect="A line for each request.",
    ),
    Knob(
        "radosgw.gc.processor_period",
        3600,
        {600: 1.0},
        scope="nothing",
        effect="Tells the noise: nothing is deleted.",
    ),
    Knob(
        "radosgw.index_shards",
        11,
        {1: 1.0, 64: 0.96},
        scope="buckets",
        effect="Parts of a bucket’s index.",
    ),
    Knob(
        "radosgw.chunk",
        "4MiB",
        {"1MiB": 1.0},
        scope="buckets",
        also={"radosgw.stripe": "1MiB"},
        effect="Written at once.",
    ),
    Knob(
        "radosgw.request_timeout_ms",
        65000,
        {5: 1.3},
        erring=True,
        effect="When a client is cut off.",
        trap="Cuts slow ones.",
    ),
    Knob(
        "radosgw.frontend_backlog",
        None,
        {-1: 1.0},
        fails="radosgw on gateway-1 ended with 22: invalid argument",
    ),
)


@dataclass(frozen=True)
class Course:
    """How a made-up tuning goes.

    `drift` is by which factor the machine gets faster within an hour.
    """

    rounds: int = 6
    scatter: float = 0.03
    drift: float = 0.8
    state: State = "done"
    seed: int = 2014
    confirmed: float | None = 1.2
    """How many times the baseline the winner is on fresh deployments; None: it was not confirmed
    yet.
    """
    choose: bool = True


def fake_tuning(
    runs: Path,
    course: Course | None = None,
    *,
    knobs: Sequence[Knob] = KNOBS,
    objectives: Sequence[Objective] = OBJECTIVES,
    workloads: Sequence[Workload] = WORKLOADS,
) -> RunStore:
    """A tuning's run below `runs`, as far as its course says. Raises StoreError."""
    going = course or Course()
    tuning = Tuning(
        name="made-up",
        about="Made-up figures",
        layout=BASELINE,
        workloads=tuple(workloads),
        objectives=tuple(objectives),
        parameters=tuple(_parameter(knob) for knob in knobs),
        trials=Trials(least=5, most=8),
        seed=going.seed,
    )
    suite = tuning.suite_of(None)
    arms = tuple(_arm(knob, value) for knob in knobs for value in knob.faster)
    book_run = TuningRun(
        tuning=tuning,
        suite=suite,
        objectives=tuple(one.resolved(suite) for one in objectives),
        baseline=BASELINE,
        arms=arms,
        scopes={key: knob.scope for knob in knobs for key in (knob.key, *knob.also)},
        layout_settings={knob.key: knob.was for knob in knobs},
        release=RELEASE,
    )
    plan = ResolvedPlan(
        suite=suite,
        hardware=hardware(),
        layouts=tuple(_layout(arm) for arm in (_BASE, *arms)),
        structures={BASELINE: structure(BASELINE)},
    )
    store = _store(runs, plan, ("weighbridge", "tune", "made-up.yaml"))
    book = TrialBook(store.folder)
    book.begin(book_run)
    _Machine(store, book, knobs, workloads, going).turn(arms, tuning.trials.baseline_every)
    chosen = _winner(knobs, arms) if going.choose else None
    if chosen is not None:
        book.choose(chosen)
    if chosen is not None and going.confirmed is not None:
        _confirm(store, plan, chosen.arm, going)
    if going.state != "running":
        store.set_state(going.state)
    return store


_BASE: Final = Arm(name=BASELINE)


def _parameter(knob: Knob) -> Parameter:
    levels = tuple(Level(value=value, also=dict(knob.also)) for value in knob.faster)
    return Parameter(
        key=knob.key,
        values=levels,
        option=knob.key.rpartition(".")[2],
        default=knob.was,
        effect=knob.effect,
        trap=knob.trap,
        reference="made up",
    )


def _arm(knob: Knob, value: Setting) -> Arm:
    word = str(value).lower().replace(".", "-").strip("-")
    name = f"{BASELINE}-{knob.key.rpartition('.')[2].replace('_', '-')}-{word}"
    return Arm(name=name[:40].strip("-"), settings={knob.key: value, **knob.also})


def _layout(arm: Arm) -> PlannedLayout:
    return PlannedLayout(name=arm.name, about="Made-up figures", gateway="rgw", release=RELEASE)


def _store(runs: Path, plan: ResolvedPlan, command: tuple[str, ...]) -> RunStore:
    store = RunStore.create(
        runs,
        plan_yaml=f"name: {plan.suite.name}\n",
        plan=plan,
        suite=plan.suite.name,
        command=command,
        weighbridge_version="0.1.0",
        sheets=[
            Sheet(
                title="machine", facts={"kernel": "Linux 6.1", "processor": "made up", "cores": "2"}
            )
        ],
    )
    facts = {"replicas": "3", "acknowledgement": "majority"}
    configs = [
        ConfigFile(
            layout=BASELINE,
            host="gateway-1",
            path="/etc/made-up.conf",
            text="[made-up]\nkey = ***\n",
        )
    ]
    store.add_facts([Sheet(title="gateway", layout=BASELINE, facts=facts)], configs)
    return store


@dataclass
class _Machine:
    """What is tuned: it is slower or faster as its settings and the hour say."""

    store: RunStore
    book: TrialBook
    knobs: Sequence[Knob]
    workloads: Sequence[Workload]
    course: Course
    number: int = 0
    order: int = 0
    made: dict[str, int] = field(default_factory=dict)
    stood: Arm = _BASE

    def turn(self, arms: Sequence[Arm], baseline_every: int) -> None:
        """Every round: the baseline, some arms in random order, the baseline, and so on."""
        open_arms = list(arms)
        for turn in range(self.course.rounds):
            draw = random.Random(f"{self.course.seed} order {turn}")
            shuffled = draw.sample(open_arms, len(open_arms))
            self._trial(_BASE, turn)
            for _, part in groupby(enumerate(shuffled), key=lambda one: one[0] // baseline_every):
                for _, arm in part:
                    if not self._trial(arm, turn):
                        open_arms.remove(arm)
                self._trial(_BASE, turn)

    def _trial(self, arm: Arm, turn: int) -> bool:
        """One trial; whether the gateway came up with it."""
        began_s = self.number * _TRIAL_S
        knob = _knob_of(arm, self.knobs)
        failed = knob.fails if knob is not None else ""
        differing = {key for key, _ in set(arm.settings.items()) ^ set(self.stood.settings.items())}
        scope = widest(one.scope for one in self.knobs if one.key in differing)
        repeat = self.made.get(arm.name, 0)
        if not failed:
            for workload in self.workloads:
                for workers in workload.workers:
                    self._step(arm, knob, workload, workers, repeat, began_s)
        self.book.add(
            Trial(
                number=self.number,
                arm=arm,
                repeat=repeat,
                round=turn,
                scope=scope,
                changed=() if scope == "nothing" else ("radosgw on gateway-1 restarted",),
                changed_s=1.5,
                started_s=began_s,
                at=f"2026-11-04T{9 + int(began_s // 3600):02d}:{int(began_s // 60) % 60:02d}:{int(began_s) % 60:02d}Z",
                failed=failed,
            )
        )
        self.number += 1
        self.made[arm.name] = repeat + 1
        self.stood = arm if not failed else _BASE
        return not failed

    def _step(
        self,
        arm: Arm,
        knob: Knob | None,
        workload: Workload,
        workers: int,
        repeat: int,
        at_s: float,
    ) -> None:
        key = StepKey(
            layout=arm.name, api="s3", workload=workload.name, workers=workers, repeat=repeat
        )
        draw = random.Random(f"{self.course.seed} {key}")
        faster = 1.0 if knob is None else knob.faster[arm.settings[knob.key]]
        hour = self.course.drift ** (at_s / 3600)
        mean_ms = (
            _MEAN_MS.get(workload.name, 10.0)
            * workers
            / 16
            / faster
            / hour
            * math.exp(draw.gauss(0, self.course.scatter))
        )
        errors = {"http-408": 60} if knob is not None and knob.erring else None
        step = _measured(key, workload, mean_ms, self.order, draw.randrange(2**31), errors)
        cpu = 1.0 if knob is None else knob.cpu
        _record(self.store, step, cpu_s_per_op=0.0004 * cpu * math.exp(draw.gauss(0, 0.01)))
        self.store.append(step)
        self.order += 1


def _knob_of(arm: Arm, knobs: Sequence[Knob]) -> Knob | None:
    return next((knob for knob in knobs if knob.key in arm.settings), None)


def _measured(
    key: StepKey,
    workload: Workload,
    mean_ms: float,
    order: int,
    seed: int,
    errors: Mapping[str, int] | None = None,
) -> StepResult:
    measurement = fake_measurement(
        api=key.api,
        workload=key.workload,
        operations=workload.operations,
        workers=key.workers,
        window_s=workload.runtime,
        mean_ms=mean_ms,
        object_size_bytes=round(workload.objects.mean_bytes),
        errors=errors,
        seed=seed,
    )
    verdict = judge(measurement, _BOUNDS)
    return StepResult(
        key=key, measurement=measurement, valid=verdict.valid, notes=verdict.notes, order=order
    )


_BOUNDS: Final = Bounds()
_HOSTS: Final = (
    HostLimits(host="gateway-1", tier="gateway", cpus=1.0, memory_bytes=2**30),
    HostLimits(host="store-1", tier="storage", cpus=1.0, memory_bytes=2**30),
)


def _record(store: RunStore, step: StepResult, *, cpu_s_per_op: float) -> None:
    """What the hosts used: storage half of what the gateway does, at every second of the window."""
    if step.measurement is None:
        return
    rate = sum(tally.count for tally in step.measurement.tallies) / step.measurement.window_s
    with store.record_telemetry(Head(key=step.key, hosts=_HOSTS)) as file:
        for second in range(math.ceil(step.measurement.window_s)):
            file.write(list(_second(second, rate * cpu_s_per_op)))
        file.write([Tail(opened_within_s=0.01)])


def _second(second: int, cpu_s: float) -> Iterator[HostSecond]:
    for share, limits in zip((1.0, 0.5), _HOSTS, strict=True):
        yield HostSecond(
            second=second,
            at_s=second + 1.0,
            span_s=1.0,
            phase="measure",
            host=limits.host,
            tier=limits.tier,
            cpu_s=cpu_s * share,
            cpu_periods=10,
            throttled_periods=0,
            memory_bytes=700 * 2**20,
            memory_held_bytes=500 * 2**20,
            disks=None,
            received_bytes=0,
            sent_bytes=0,
            network_faults=0,
        )


def _winner(knobs: Sequence[Knob], arms: Sequence[Arm]) -> Winner | None:
    """The best value of each knob that makes the gateway faster, of those that do and break
    nothing.
    """
    settings: dict[str, Setting] = {}
    for arm in arms:
        knob = _knob_of(arm, knobs)
        if knob is None or knob.erring or knob.fails:
            continue
        best = max(knob.faster, key=lambda value: knob.faster[value])
        if knob.faster[best] > 1.05 and arm.settings[knob.key] == best:
            settings |= arm.settings
    if not settings:
        return None
    lines = [
        f"rgw {key.rpartition('.')[2].replace('_', ' ')} = {value}"
        for key, value in settings.items()
    ]
    text = "\n".join(("# Made up, with the evidence above each line.", "[client]", *lines, ""))
    reason = f"The best value of each setting that is better: {', '.join(settings)}."
    return Winner(
        arm=Arm(name=f"{BASELINE}-tuned", settings=settings),
        reason=reason,
        fragments=(Fragment(name="ceph.conf", text=text),),
    )


def _confirm(store: RunStore, plan: ResolvedPlan, winner: Arm, course: Course) -> None:
    """An ordinary run of baseline and winner, beside the tuning's own."""
    layouts = (_layout(_BASE), _layout(winner))
    suite = plan.suite.model_copy(update={"repeats": 5})
    run = _store(
        store.folder / CONFIRMATION,
        plan.model_copy(update={"layouts": layouts, "suite": suite, "structures": {}}),
        ("weighbridge", "compare"),
    )
    order = 0
    for repeat in range(suite.repeats):
        for layout in layouts:
            for workload in suite.workloads:
                for workers in workload.workers:
                    key = StepKey(
                        layout=layout.name,
                        api="s3",
                        workload=workload.name,
                        workers=workers,
                        repeat=repeat,
                    )
                    draw = random.Random(f"{course.seed} fresh {key}")
                    faster = (course.confirmed or 1.0) if layout.name == winner.name else 1.0
                    scatter = math.exp(draw.gauss(0, course.scatter))
                    mean_ms = _MEAN_MS.get(workload.name, 10.0) * workers / 16 / faster * scatter
                    run.append(_measured(key, workload, mean_ms, order, draw.randrange(2**31)))
                    order += 1
    run.set_state("done")
