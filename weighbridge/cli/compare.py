"""Verbs that measure a run: a comparison, a study, a tuning, and what is missing of one of them.

They raise UsageError before anything is started if a request cannot be met; any other
WeighbridgeError if a gateway could not be started, after all of it is torn down.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from weighbridge.cli import complete
from weighbridge.cli.options import (
    RUN_FOLDER,
    as_json,
    bound,
    drivers_own,
    dry_run,
    endpoints,
    hardware,
    hardware_file,
    influx,
    introduce,
    listed,
    names_option,
    out,
    overrides,
    pictures,
    shown,
    split,
    time_option,
    ui,
)
from weighbridge.common.errors import EXIT_FINE, EXIT_INVALID, EXIT_TARGET, UsageError
from weighbridge.common.paths import is_file
from weighbridge.common.structure import LAYERS
from weighbridge.drivers.kind import KINDS

if TYPE_CHECKING:
    from rich.console import Console

    from weighbridge.prepared_study import PreparedStudy
    from weighbridge.results.run.resolved import LatencyBound
    from weighbridge.results.run.store import RunStore
    from weighbridge.results.show.influx import InfluxServer
    from weighbridge.run import Doing, Ran
    from weighbridge.selection import EndpointLine
    from weighbridge.suites.overrides import Overrides
    from weighbridge.suites.tuning import Strategy
    from weighbridge.tuning.preparation import Changes, PreparedTuning
    from weighbridge.tuning.session import TuningOutcome


@drivers_own
@endpoints
@overrides
@click.command("compare")
@names_option(
    "--suite",
    "FILE",
    "Suite file, or the name of one that ships (default: quick; of endpoints: endpoints).",
    complete.suites,
)
@names_option(
    "--layouts",
    "A,B",
    "Layouts to compare, separated by commas (default: the suite's): "
    "NAME[@RELEASE][:KEY=VALUE]..., or files.",
    complete.layouts,
)
@hardware
@names_option(
    "--driver",
    "A[,B]",
    "Load generator, or two that alternate (default: the suite's): "
    + ", ".join(name for name, kind in KINDS.items() if kind.apis)
    + ".",
    complete.words(*(name for name, kind in KINDS.items() if kind.apis)),
)
@click.option(
    "--layers",
    metavar="A,B",
    shell_complete=complete.words(*LAYERS),
    callback=listed,
    help="Layers to measure as well (default: the suite's): " + ", ".join(LAYERS) + ".",
)
@click.option(
    "--repeats",
    type=click.IntRange(1, 1000),
    help="Repeats of every step (default: the suite's); a claim needs 5.",
)
@time_option("--budget", "Time for the complete run, such as 2h: as many repeats as fit.")
@click.option(
    "--aa/--no-aa",
    default=None,
    help="A/A control: measure the first layout twice in each block, as two layouts; their "
    "difference is noise (default: the suite's `control`).",
)
@click.option(
    "--order-seed",
    metavar="N",
    type=click.IntRange(0, 2**63 - 1),
    help="Seed for the order of layouts and worker counts (default: the suite's, else a new one "
    "for each run).",
)
@shown(
    "--attest/--no-attest",
    default=True,
    help="Measure the hosts (CPU, fio, iperf3) before each layout is measured for the first time.",
)
@click.option(
    "--find",
    metavar="BOUND",
    callback=bound,
    help="Search the highest rate that each layout serves within a bound, such as "
    '"p90<=50ms", in at most eight steps for each of the suite\'s reads and writes (one repeat, '
    "unless --repeats or --budget is given).",
)
@names_option(
    "--perf",
    "WORKLOAD:WORKERS",
    "Profile this step once on every layout: stacks of its daemons by perf, and the block "
    "events of one storage disk.",
)
@click.option(
    "--capabilities",
    is_flag=True,
    help=(
        "After its last step, try on each layout all that `weighbridge capabilities` tries, "
        "and show the answers in the report."
    ),
)
@influx
@ui
@pictures
@out
@dry_run("Print the plan, how long it takes and what it can claim; start nothing.")
@as_json
def compare_verb(
    line: EndpointLine,
    overrides: Overrides,
    suite: str | None,
    layouts: str | None,
    hardware: str | None,
    driver: str | None,
    layers: tuple[str, ...] | None,
    repeats: int | None,
    budget: float | None,
    aa: bool | None,
    order_seed: int | None,
    attest: bool,
    find: LatencyBound | None,
    perf: str | None,
    capabilities: bool,
    influx: InfluxServer | None,
    ui: bool,
    pictures: bool,
    out: Path,
    dry_run: bool,
    as_json: bool,
    own: Mapping[str, object],
) -> int:
    """Run a suite on each layout in turn on identical hosts: which is faster, and by how much?"""
    from weighbridge import selection
    from weighbridge.budget import fit, sentences, spread_here
    from weighbridge.conductor.interruption import interruptible
    from weighbridge.conductor.opening import settings_of
    from weighbridge.conductor.passes import finding, left_out_of_search
    from weighbridge.conductor.plan import control_of, make_plan
    from weighbridge.environment import place
    from weighbridge.plan_outline import outline, print_plan
    from weighbridge.results.run.profile import choose
    from weighbridge.results.show.terminal import console, print_line
    from weighbridge.results_output import print_document, show_results
    from weighbridge.run import Doing, run

    if budget is not None and repeats is not None:
        raise UsageError(
            "--budget and --repeats both set how often everything is measured",
            advice=(
                "Use one of them: --budget finds out how many repeats fit, --repeats sets their "
                "number."
            ),
        )
    chosen = selection.select(suite, split(layouts or ""), hardware, line=line, overrides=overrides)
    changed = chosen.suite.changed(repeats=repeats, driver=driver, layers=layers)
    unsearched = ""
    if find is not None:
        whole, changed = changed, finding(changed, repeats=repeats)
        unsearched = left_out_of_search(whole, changed)
    # Refuse what a driver lacks before what it cannot do; `run` makes the settings of all drivers
    # of the plan.
    settings_of(changed.drivers, own, lab=chosen.hardware.of.contained)
    if perf is not None and chosen.hardware.of.by_ssh:
        raise UsageError(
            "--perf works on containers of this machine; the hosts of "
            f"{chosen.hardware.name!r} are real",
            advice="Run perf there yourself, or profile the layout on hardware of kind lab.",
        )
    step = None if perf is None else choose(perf, changed)
    hosts, planned, controls = chosen.hardware, chosen.layouts, {}
    if not dry_run:
        with interruptible():
            hosts, planned = selection.on_sized_hosts(planned, hosts)
    if bool(changed.control) if aa is None else aa:
        control = control_of(planned[0])
        controls = {control.layout.name: planned[0].layout.name}
        planned = (*planned, control)
    if repeats is not None or budget is not None:
        changed = changed.model_copy(update={"further": None})  # the number of repeats is set
    if order_seed is not None:
        changed = changed.model_copy(update={"order_seed": order_seed})
    drawn = secrets.randbelow(2**32)
    screen = console(stderr=as_json)
    introduce(hosts, screen)
    if unsearched:
        print_line(screen, unsearched)
    if budget is None:
        plan = make_plan(changed, hosts, planned, controls=controls, order_seed=drawn, find=find)
    else:
        budgeted = fit(
            changed,
            hosts,
            planned,
            budget,
            controls=controls,
            attest=attest,
            order_seed=drawn,
            find=find,
        )
        plan = budgeted.plan
        for sentence in sentences(budgeted, budget, spread_here(out, hosts)):
            print_line(screen, sentence)
    if dry_run:
        plan = plan.model_copy(update={"attest": attest})
        outlined = outline(plan, planned, spread_here(out, hosts))
        if as_json:
            print_document(outlined)
        else:
            print_plan(outlined, screen)
        return EXIT_FINE
    doing = Doing(place(), screen, influx, ui=ui, pictures=pictures, own=own)
    ran = run(
        plan,
        planned,
        doing,
        out=out,
        text=chosen.suite_text,
        attest=attest,
        profile=step,
        capabilities=capabilities,
    )
    return show_results(ran.derived, screen, exit_code(ran), pictures=pictures, as_json=as_json)


def exit_code(ran: Ran) -> int:
    """3: a step or power cut is missing, or a gateway died; 4: nothing may be ranked; else 0."""
    if ran.uncut or any(not step.complete for step in ran.steps):
        return EXIT_TARGET
    return EXIT_FINE if ran.derived.comparable else EXIT_INVALID


@drivers_own
@click.command("resume")
@click.argument("run", type=RUN_FOLDER)
@names_option(
    "--despite",
    "FACT,...",
    "Continue although these facts have changed since the run began (a refusal names them); "
    "`all`: any of them.",
)
@time_option("--budget", "Time for the rest, such as 2h (default: what is left of the run's own).")
@shown(
    "--repair",
    is_flag=True,
    help="Also measure again the steps in which other programs used a quarter or more of this "
    "machine's CPUs; of each step the least disturbed measurement counts.",
)
@influx
@ui
@pictures
@as_json
def resume_verb(
    run: Path,
    despite: str | None,
    budget: float | None,
    influx: InfluxServer | None,
    *,
    repair: bool,
    ui: bool,
    pictures: bool,
    as_json: bool,
    own: Mapping[str, object],
) -> int:
    """Continue the run in the folder RUN at the first step that is missing, on the same machine.

    Measured steps are not repeated; steps that could not be measured are tried again.
    """
    from weighbridge.environment import place
    from weighbridge.results.run.trial import TuningStore
    from weighbridge.results.show.terminal import console
    from weighbridge.results_output import show_results
    from weighbridge.run import Doing
    from weighbridge.run import resume as resume_run

    doing = Doing(place(), console(stderr=as_json), pictures=pictures, own=own)
    if TuningStore(run).run() is not None:
        if ui or repair:
            option = "--ui" if ui else "--repair"
            raise UsageError(f"{run} is a tuning: `{option}` is for comparisons and studies")
        return resume_tuning(run, doing, despite=split(despite), budget_s=budget, as_json=as_json)
    doing = replace(doing, influx=influx, ui=ui)
    ran = resume_run(run, doing, despite=split(despite), budget_s=budget, repair=repair)
    return show_results(
        ran.derived, doing.screen, exit_code(ran), pictures=pictures, as_json=as_json
    )


@drivers_own
@click.command("study")
@click.argument("name", required=False, shell_complete=complete.studies)
@shown(
    "--scale",
    type=click.Choice(["lab", "full"]),
    default="lab",
    help="At the size of one machine, or with the study's own numbers.",
)
@hardware_file("Hardware file, or the name of one that ships (default: the study's).")
@names_option("--variants", "A,B", "Replay only these, by their names in the study (default: all).")
@click.option(
    "--repeats",
    type=click.IntRange(1, 1000),
    help="Repeats of every step (default: the study's); a claim needs 5.",
)
@names_option(
    "--driver", "A[,B]", "Load generator of gateways, or two that alternate (default: the study's)."
)
@names_option(
    "--despite",
    "A,B",
    "Replay it although the hosts lack these needs of the study; the report says so. A "
    "refusal names them.",
)
@shown(
    "--attest/--no-attest",
    default=False,
    help="Measure the hosts of each deployment first: about 20 s each.",
)
@influx
@ui
@out
@click.option(
    "--list",
    "listed",
    is_flag=True,
    help="List the studies that ship, and how long each takes at least.",
)
@dry_run("Print the plan (variants, steps, least time) and start nothing.")
@as_json
def study_verb(
    name: str | None,
    scale: Literal["lab", "full"],
    hardware: str | None,
    variants: str | None,
    repeats: int | None,
    driver: str | None,
    despite: str | None,
    attest: bool,
    influx: InfluxServer | None,
    ui: bool,
    out: Path,
    listed: bool,
    dry_run: bool,
    as_json: bool,
    own: Mapping[str, object],
) -> int | None:
    """Replay a published study: its layouts and workloads; its tables and map of what changed, with
    its published results beside yours.

    NAME is a study that ships (see --list) or a study file.
    """
    from weighbridge.budget import spread_here
    from weighbridge.environment import place
    from weighbridge.plan_outline import outline
    from weighbridge.prepared_study import prepare
    from weighbridge.results.features.study import FILE, StudyRun
    from weighbridge.results.run.reading import write_atomically
    from weighbridge.results.show.terminal import console, print_line
    from weighbridge.results_output import print_document, show_results
    from weighbridge.run import Doing, run

    if listed and as_json:
        raise click.UsageError("--list prints a table; it has no --json")
    screen = console(stderr=as_json)
    if listed:
        print_studies(screen)
        return None
    if name is None:
        raise click.UsageError("the NAME of a study is missing; --list shows those that ship")
    study = prepare(
        name,
        scale,
        hardware=hardware,
        only=split(variants),
        repeats=repeats,
        driver=driver,
        despite=split(despite),
        ask=not dry_run,
    )
    if dry_run:
        print_study(study, screen)
        if as_json:
            print_document(
                outline(study.plan, study.planned, spread_here(out, study.plan.hardware))
            )
        return None

    def begun(store: RunStore) -> None:
        record = StudyRun(study=study.study, scale=study.scale_name, lacking=study.lacking)
        write_atomically(store.folder / FILE, record.model_dump_json(indent=1) + "\n")

    print_line(screen, f"{study.study.name}: {study.brief}")
    doing = Doing(place(), screen, influx, ui=ui, own=own)
    ran = run(
        study.plan, study.planned, doing, out=out, text=study.text, attest=attest, begun=begun
    )
    return show_results(
        ran.derived, screen, exit_code(ran), pictures=doing.pictures, as_json=as_json
    )


def print_studies(screen: Console) -> None:
    """Print the studies that ship: what each compares, its source, and how long it takes."""
    from weighbridge.prepared_study import prepare
    from weighbridge.results.show.terminal import print_line, print_table
    from weighbridge.suites.studies import loader

    rows = []
    for name in loader.shipped():
        one = prepare(name)
        counts = (str(len(one.planned)), str(one.plan.steps), one.least)
        rows.append((name, one.study.about, " ".join(one.study.scales), *counts))
    numbers = ("variants", "steps", "at least")
    print_table(screen, ("study", "what it compares", "scales", *numbers), rows, right=numbers)
    print_line(
        screen,
        "At the lab scale: warm-ups, windows and deployments. Writing the objects to be read comes "
        "on top.",
        "dim",
    )


def print_study(prepared: PreparedStudy, screen: Console) -> None:
    """Print what a study would do."""
    from weighbridge.results.features.study import parameter_table
    from weighbridge.results.show.terminal import print_line, print_table

    study = prepared.study
    print_line(screen, f"{study.name}: {study.about}\nafter {study.source}")
    for sentence in prepared.scale.about:
        print_line(screen, f"  {sentence}", "dim")
    here = {one.layout.name for one in prepared.planned}
    variants = []
    for variant in study.variants:
        if variant.name in here:
            levels = (study.label(variant.factors[factor]) for factor in study.factors)
            variants.append((variant.name, *levels, variant.layout))
    print_table(screen, ("variant", *study.factors, "layout"), variants)
    for lacking in prepared.lacking:
        print_line(screen, f"  accepted: {lacking}", "dim")
    shown_of = parameter_table(study.scales[prepared.scale_name], prepared.lacking)
    if shown_of is not None:
        print_line(screen, f"\n{shown_of.title}")
        print_table(screen, shown_of.head, shown_of.shown)
    if study.common:
        print_line(screen, f"and in all of them {study.common.removeprefix(':')}\n")
    ways = {
        (one.api, one.driver, one.layer): one
        for passes in prepared.plan.passes.values()
        for one in passes
    }
    loads = []
    for way in ways.values():
        for load in way.workloads:
            workers = " ".join(map(str, load.workers))
            loads.append((load.name, f"{way.driver}, {way.api}", workers, f"{load.runtime:g} s"))
    print_table(screen, ("workload", "by", "workers", "window"), loads)
    print_line(screen, prepared.brief)


@drivers_own
@click.command("tune")
@click.argument("tuning", required=False, shell_complete=complete.tunings)
@click.option(
    "--resume",
    "again",
    is_flag=True,
    help="Continue the newest unfinished run of TUNING, or the run of a folder.",
)
@hardware_file("Hardware file, or the name of one that ships (default: the tuning's).")
@click.option(
    "--strategy",
    type=click.Choice(["screen", "grid", "search"]),
    help="How settings are tried (default: the tuning's).",
)
@time_option("--budget", "Time for all of it, such as 2h (default: the tuning's).")
@click.option(
    "--confirm",
    type=click.IntRange(0, 100),
    help="Repeats of the winner on fresh deployments (default: the tuning's).",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    help="Seed for the order of trials, and for a search (default: the tuning's).",
)
@shown(
    "--attest/--no-attest",
    default=True,
    help="Measure the hosts of each deployment (CPU, fio, iperf3) before it is benchmarked: about "
    "20 s each.",
)
@pictures
@names_option("--despite", "FACT,...", "With --resume: continue although these facts have changed.")
@out
@click.option("--list", "listed", is_flag=True, help="List the tunings that ship.")
@dry_run(
    "Print what would be tried (settings, what is restarted, how long it takes); start nothing."
)
@as_json
def tune_verb(
    tuning: str | None,
    again: bool,
    hardware: str | None,
    strategy: Strategy | None,
    budget: float | None,
    confirm: int | None,
    seed: int | None,
    attest: bool,
    pictures: bool,
    despite: str | None,
    out: Path,
    listed: bool,
    dry_run: bool,
    as_json: bool,
    own: Mapping[str, object],
) -> int | None:
    """Try settings of a layout, compare each with the layout as it is, and report which help, by
    how much, and how sure that is.

    TUNING is a tuning that ships (see --list), a tuning file, or with --resume the folder of its
    run.
    """
    from weighbridge.environment import place
    from weighbridge.results.show.terminal import console, print_line
    from weighbridge.run import Doing
    from weighbridge.tuning import session
    from weighbridge.tuning.preparation import Changes, prepare, read

    if as_json and (listed or dry_run):
        raise click.UsageError("--json is for the results of a tuning, not for --list or --dry-run")
    screen = console(stderr=as_json)
    if listed:
        print_tunings(screen)
        return None
    if tuning is None:
        raise click.UsageError("the name of a TUNING is missing; --list shows those that ship")
    changes = Changes(
        hardware=hardware, strategy=strategy, budget_s=budget, confirm=confirm, seed=seed
    )
    if again:
        folder = _folder(tuning, changes, out)
        doing = Doing(place(), screen, pictures=pictures, own=own)
        return resume_tuning(
            folder, doing, despite=split(despite), budget_s=budget, as_json=as_json
        )
    if is_file(Path(tuning) / "manifest.json"):
        raise UsageError(
            f"{tuning}: is a run", advice=f"To continue it: weighbridge tune {tuning} --resume"
        )
    prepared = prepare(*read(tuning, changes), say=partial(print_line, screen), ask=not dry_run)
    if dry_run:
        print_settings(prepared, screen, attest=attest)
        return None
    doing = Doing(place(), screen, pictures=pictures, own=own)
    return _finish(session.tune(prepared, doing, out=out, attest=attest), doing, as_json=as_json)


def resume_tuning(
    folder: Path,
    doing: Doing,
    *,
    despite: tuple[str, ...],
    budget_s: float | None,
    as_json: bool = False,
) -> int:
    """Continue a tuning and print its results; returns the exit code."""
    from weighbridge.tuning import session

    return _finish(
        session.resume(folder, doing, despite=despite, budget_s=budget_s), doing, as_json=as_json
    )


def print_tunings(screen: Console) -> None:
    """Print the tunings that ship: what each tries, on which layout, how."""
    from weighbridge.results.show.terminal import print_table
    from weighbridge.suites.tuning import loader

    rows = []
    for name, path in loader.shipped().items():
        _, one = loader.load(path)
        values = sum(len(parameter.levels) for parameter in one.parameters)
        numbers = (str(len(one.parameters)), str(values))
        rows.append((name, one.about, one.layout, one.strategy, *numbers))
    counts = ("parameters", "values")
    head = ("tuning", "what it tries", "layout", "strategy", *counts)
    print_table(screen, head, rows, right=counts, whole=True)


def print_settings(prepared: PreparedTuning, screen: Console, *, attest: bool) -> None:
    """What a tuning would try, and the time. Raises UsageError if its budget is too short."""
    from weighbridge.conductor.time_estimate import TimeAllowance
    from weighbridge.results.show.terminal import print_line, print_table
    from weighbridge.suites.tuning import show_setting
    from weighbridge.tuning.course import Course
    from weighbridge.tuning.session import sentences
    from weighbridge.tuning.space import scope_between

    tuning, space = prepared.tuning, prepared.space
    print_line(screen, f"{tuning.name}: {tuning.about}")
    for objective in prepared.run().objectives:
        print_line(screen, f"  objective: {objective.words}")
    rows = []
    for one in prepared.candidates or prepared.singles:
        words = ", ".join(
            f"{key} {show_setting(space.layout_settings.get(key))} → {show_setting(value)}"
            for key, value in one.variant.settings.items()
        )
        scope = scope_between(prepared.baseline.variant, one.variant, prepared.scopes)
        rows.append((words, scope, one.variant.name))
    print_table(screen, ("setting", "restarts", "layout"), rows)
    if tuning.strategy == "search":
        print_line(screen, "a search proposes combinations of these", "dim")
    allowance = None if tuning.budget is None else TimeAllowance(tuning.budget)
    for sentence in sentences(prepared, Course(prepared, attest=attest, allowance=allowance)):
        print_line(screen, sentence)


def _finish(outcome: TuningOutcome, doing: Doing, *, as_json: bool) -> int:
    from weighbridge.results_output import show_results

    compared = outcome.table is None or any(
        effect.ratio is not None for one in outcome.table.entries for effect in one.effects
    )
    code = EXIT_FINE if compared else EXIT_INVALID
    return show_results(
        outcome.derived, doing.screen, code, pictures=doing.pictures, as_json=as_json
    )


def _folder(name: str, changes: Changes, out: Path) -> Path:
    from weighbridge.tuning import session
    from weighbridge.tuning.preparation import read

    path = Path(name)
    others = sorted(set(changes.given) - {"budget"})
    if (path / "manifest.json").is_file():
        if others:
            raise UsageError(
                f"{path}: continues as it began; {', '.join(others)} can no longer be changed"
            )
        return path
    # With --resume, a budget is the time for the rest, and no part of what the tuning is.
    return session.unfinished(read(name, replace(changes, budget_s=None))[1], out)
