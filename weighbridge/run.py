"""A run, from its folder to its report: what comparing layouts and replaying a study have in common."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

from rich.console import Console

from drivers.order import CosbenchSite
from results import derive
from results.derivation import Derived
from results.manifest import Sheet
from results.profile import Chosen
from results.step import StepResult
from results.store import RunStore
from topologies.deployment import Place
from topologies.loader import Planned
from weighbridge import selection
from weighbridge.conductor import Conductor
from weighbridge.display import display_for
from weighbridge.facts import facts_of_machine
from weighbridge.interruption import Interrupted, interruptible
from weighbridge.means import require
from weighbridge.passes import asked_of_hosts, wants_tools
from weighbridge.plan import Plan
from weighbridge.profiling import Profiler, able


def run(
    plan: Plan,
    layouts: Sequence[Planned],
    where: Place,
    screen: Console,
    *,
    out: Path,
    text: str,
    attest: bool,
    cosbench: CosbenchSite | None = None,
    begun: Callable[[RunStore], None] | None = None,
    profile: Chosen | None = None,
) -> tuple[Derived, tuple[StepResult, ...]]:
    """Do a plan in a new folder below `out` and derive its report; returns that, and the last result of each step.

    `text` is the plan as it was given; `begun` is told of the folder before anything is measured; `profile` is the step that is
    profiled. Raises UsageError before anything is started when something cannot be done; any other WeighbridgeError when a gateway
    could not be stood up, all of it then being taken away again.
    """
    require(plan.hardware, where)

    def say(words: str) -> None:
        screen.print(words, markup=False, highlight=False)

    with interruptible():
        # Before the folder of the run is made: what the last layout gets wrong would else be found when the first is measured.
        tools = wants_tools(plan.suite) or bool(asked_of_hosts(plan.suite, sameness=attest))
        selection.check(layouts, plan.hardware, where, say, attest=tools)
        store = RunStore.create(
            out,
            plan_yaml=text,
            plan=plan,
            suite=plan.suite.name,
            command=("weighbridge", *sys.argv[1:]),
            weighbridge_version=version("weighbridge"),
            sheets=[Sheet(title="machine", facts=facts_of_machine(plan.hardware))],
        )
        try:
            if begun is not None:
                begun(store)
            with display_for(plan, screen) as display:
                display.say(f"writing to {store.folder}")
                profiler = None if profile is None else Profiler(profile, store, able())
                Conductor(plan, layouts, store, display, where, cosbench=cosbench, attest=attest, profiler=profiler).run()
        except Interrupted as error:
            store.set_state("interrupted", error=str(error))
            raise
        except BaseException as error:
            store.set_state("failed", error=str(error))
            raise
        store.set_state("done")
    return derive(store.folder), tuple(store.latest().values())
