"""`weighbridge compare`: the main job.

Raises UsageError before anything is started if a request cannot be met; any other WeighbridgeError
if a gateway could not be started, after all of it is torn down.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weighbridge.cli import complete
from weighbridge.cli.line_options import endpoints, overrides
from weighbridge.cli.options import (
    as_json,
    bound,
    drivers_own,
    hardware,
    influx,
    introduce,
    listed,
    named,
    out,
    pictures,
    seconds,
    shown,
    ui,
)
from weighbridge.common.errors import EXIT_FINE, EXIT_INVALID, EXIT_TARGET, UsageError
from weighbridge.common.structure import LAYERS
from weighbridge.drivers.kind import KINDS

if TYPE_CHECKING:
    from weighbridge.results.influx.server import InfluxServer
    from weighbridge.results.record.resolved import LatencyBound
    from weighbridge.run import Ran
    from weighbridge.selection import EndpointLine
    from weighbridge.suites.overrides import Overrides


@drivers_own
@endpoints
@overrides
@click.command("compare")
@click.option(
    "--suite",
    metavar="FILE",
    shell_complete=complete.suites,
    callback=named,
    help="Suite file, or the name of one that ships (default: quick; of endpoints: endpoints).",
)
@click.option(
    "--layouts",
    metavar="A,B",
    shell_complete=complete.layouts,
    callback=named,
    help="Layouts to compare, separated by commas (default: the suite's): "
    "NAME[@RELEASE][:KEY=VALUE]..., or files.",
)
@hardware
@click.option(
    "--driver",
    metavar="A[,B]",
    shell_complete=complete.words(*(name for name, kind in KINDS.items() if kind.apis)),
    callback=named,
    help="Load generator, or two that alternate (default: the suite's): "
    + ", ".join(name for name, kind in KINDS.items() if kind.apis)
    + ".",
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
@click.option(
    "--budget",
    metavar="TIME",
    callback=seconds,
    help="Time for the complete run, such as 2h: as many repeats as fit.",
)
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
@click.option(
    "--perf",
    metavar="WORKLOAD:WORKERS",
    callback=named,
    help="Profile this step once on every layout: stacks of its daemons by perf, and the block "
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
@click.option(
    "--dry-run",
    is_flag=True,
    help="Print the plan, how long it takes and what it can claim; start nothing.",
)
@as_json
def command(
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
    from weighbridge.results.record.profile import choose
    from weighbridge.results_output import print_document, show_results
    from weighbridge.run import Doing, run
    from weighbridge.screen.terminal import console, print_line
    from weighbridge.topologies.loader import split

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
        plan = make_plan(
            changed,
            hosts,
            planned,
            controls=controls,
            order_seed=drawn,
            find=find,
        )
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
