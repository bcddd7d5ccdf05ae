"""`weighbridge compare`: the main job."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import click

from weighbridge.cli.options import drivers_own, hardware, influx, named, pictures, seconds, shown
from weighbridge.common.errors import EXIT_FINE, EXIT_INVALID, EXIT_TARGET, UsageError
from weighbridge.common.layers import LAYERS
from weighbridge.drivers.kind import KINDS

if TYPE_CHECKING:
    from weighbridge.results.influx.server import InfluxServer
    from weighbridge.results.record.step import StepResult


@drivers_own
@click.command("compare")
@shown(
    "--suite",
    default="quick",
    metavar="FILE",
    callback=named,
    help="Suite file, or the name of one that ships.",
)
@click.option(
    "--layouts",
    metavar="A,B",
    callback=named,
    help="Layouts to compare, with commas between (default: the suite's): "
    "NAME[@RELEASE][:KEY=VALUE]..., or files.",
)
@hardware
@click.option(
    "--driver",
    metavar="A[,B]",
    callback=named,
    help="What makes the load, or two in turn (default: the suite's): "
    + ", ".join(name for name, kind in KINDS.items() if kind.apis)
    + "; both is locust,cosbench.",
)
@click.option(
    "--layers",
    metavar="A,B",
    help="Layers to measure besides (default: the suite's): " + ", ".join(LAYERS) + ".",
)
@click.option(
    "--repeats",
    type=click.IntRange(1, 1000),
    help="Visits of every step (default: the suite's); a claim needs 5.",
)
@click.option(
    "--budget",
    metavar="TIME",
    callback=seconds,
    help="What the whole run may take, such as 2h: as many repeats as fit.",
)
@click.option(
    "--aa/--no-aa",
    default=None,
    help="Measure the first layout twice a block, as two layouts: what differs is noise (default: "
    "the suite's `control`).",
)
@click.option(
    "--order-seed",
    metavar="N",
    type=click.IntRange(0, 2**63 - 1),
    help="What the order of layouts and worker counts is drawn from (default: the suite's, else "
    "drawn for each run).",
)
@shown(
    "--attest/--no-attest",
    default=True,
    help="Measure what the hosts can do (CPU, fio, iperf3) before each layout is measured for the "
    "first time.",
)
@click.option(
    "--profile",
    metavar="WORKLOAD:WORKERS",
    help="Profile this step once on every layout: perf of its daemons (flame graph) and the block "
    "events of one storage disk.",
)
@influx
@pictures
@shown(
    "--out",
    default="runs",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the run's folder is made.",
)
def command(
    suite: str,
    layouts: str | None,
    hardware: str | None,
    driver: str | None,
    layers: str | None,
    repeats: int | None,
    budget: float | None,
    aa: bool | None,
    order_seed: int | None,
    attest: bool,
    profile: str | None,
    influx: InfluxServer | None,
    pictures: bool,
    out: Path,
    own: Mapping[str, object],
) -> int:
    """Stand layouts up one after the other on identical hosts, replay a suite on each, and say
    which was faster, by how much.
    """
    from weighbridge.topologies.reference import split  # noqa: PLC0415 - heavy rooms are imported by what needs them

    names = split(layouts or "")
    below = None if layers is None else [name.strip() for name in layers.split(",") if name.strip()]
    return compare(
        suite,
        names,
        hardware,
        driver=driver,
        layers=below,
        repeats=repeats,
        budget_s=budget,
        aa=aa,
        order_seed=order_seed,
        attest=attest,
        profile=profile,
        influx=influx,
        pictures=pictures,
        out=out,
        own=own,
    )


def compare(
    suite: str,
    layouts: list[str],
    hardware: str | None,
    *,
    driver: str | None = None,
    layers: list[str] | None = None,
    repeats: int | None = None,
    budget_s: float | None = None,
    aa: bool | None = None,
    order_seed: int | None = None,
    attest: bool = True,
    profile: str | None = None,
    influx: InfluxServer | None = None,
    pictures: bool = True,
    out: Path,
    own: Mapping[str, object] = MappingProxyType({}),
) -> int:
    """Run a comparison and print its table; returns the exit code. `own` are options that drivers
    have declared.

    Raises UsageError before anything is started when something asked for cannot be done; any other
    WeighbridgeError when a gateway could not be stood up, all of it then being taken away again.
    """
    # The heavy rooms are imported here, so that `weighbridge --help` need not wait for them.
    from weighbridge import selection  # noqa: PLC0415
    from weighbridge.budget import fit, sentences  # noqa: PLC0415
    from weighbridge.conclusion import conclude  # noqa: PLC0415
    from weighbridge.conductor.opening import settings_of  # noqa: PLC0415
    from weighbridge.conductor.plan import make_plan, twin_of  # noqa: PLC0415
    from weighbridge.results.record.profile import choose  # noqa: PLC0415
    from weighbridge.run import Doing, run  # noqa: PLC0415
    from weighbridge.screen.terminal import console  # noqa: PLC0415
    from weighbridge.spread import spread_here  # noqa: PLC0415
    from weighbridge.surroundings import place  # noqa: PLC0415

    if budget_s is not None and repeats is not None:
        advice = (
            "Give one of them: --budget finds out how many repeats fit, and --repeats takes "
            "as long as it takes."
        )
        raise UsageError(
            "--budget and --repeats both say how often everything is measured", advice=advice
        )
    chosen = selection.select(suite, layouts, hardware)
    asked = chosen.suite.changed(repeats=repeats, driver=driver, layers=layers)
    # What a driver lacks is told before what it cannot do; `run` makes its settings of the drivers
    # of the whole plan.
    settings_of(asked.drivers, own, lab=chosen.hardware.of.contained)
    if profile is not None and chosen.hardware.of.by_ssh:
        raise UsageError(
            "--profile sees the processes of containers that this machine raised; the hosts of "
            f"{chosen.hardware.name!r} are real",
            advice="Run perf there yourself, or profile the layout on hardware of kind lab.",
        )
    step = None if profile is None else choose(profile, asked)
    control = bool(asked.control) if aa is None else aa
    arms = (*chosen.layouts, twin_of(chosen.layouts[0])) if control else chosen.layouts
    twins = {arms[-1].layout.name: arms[0].layout.name} if control else {}
    if repeats is not None or budget_s is not None:
        asked = asked.model_copy(
            update={"further": None}
        )  # how often everything is measured has been said
    if order_seed is not None:
        asked = asked.model_copy(update={"order_seed": order_seed})
    drawn = secrets.randbelow(2**32)
    screen, text = console(), chosen.suite_text
    if budget_s is None:
        plan = make_plan(asked, chosen.hardware, arms, twins=twins, order_seed=drawn)
    else:
        budgeted = fit(
            asked, chosen.hardware, arms, budget_s, twins=twins, attest=attest, order_seed=drawn
        )
        plan = budgeted.plan
        for sentence in sentences(budgeted, budget_s, spread_here(out, chosen.hardware)):
            screen.print(sentence, markup=False, highlight=False, soft_wrap=True)
    doing = Doing(place(), screen, influx, pictures=pictures, own=own)
    derived, steps = run(plan, arms, doing, out=out, text=text, attest=attest, profile=step)
    conclude(derived, screen, pictures=pictures)
    return exit_code(steps, comparable=derived.comparable)


def exit_code(steps: Iterable[StepResult], *, comparable: bool) -> int:
    """3 when a gateway or its driver failed, so that a step is not measured or spoilt, 4 when
    nothing may be ranked, else 0.
    """
    if any(not step.whole for step in steps):
        return EXIT_TARGET
    return EXIT_FINE if comparable else EXIT_INVALID
