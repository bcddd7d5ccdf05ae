from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weighbridge.cli import complete
from weighbridge.cli.options import (
    as_json,
    drivers_own,
    named,
    out,
    pictures,
    seconds,
    shown,
    split,
)
from weighbridge.common.errors import EXIT_FINE, EXIT_INVALID, UsageError
from weighbridge.common.paths import is_file

if TYPE_CHECKING:
    from rich.console import Console

    from weighbridge.run import Doing
    from weighbridge.suites.tuning import Strategy
    from weighbridge.tuning.preparation import Changes, PreparedTuning
    from weighbridge.tuning.session import TuningOutcome


@drivers_own
@click.command("tune")
@click.argument("tuning", required=False, shell_complete=complete.tunings)
@click.option(
    "--resume",
    "again",
    is_flag=True,
    help="Continue the newest unfinished run of TUNING, or the run of a folder.",
)
@click.option(
    "--hardware",
    metavar="FILE",
    shell_complete=complete.hardware,
    help="Hardware file, or the name of one that ships (default: the tuning's).",
)
@click.option(
    "--strategy",
    type=click.Choice(["screen", "grid", "search"]),
    help="How settings are tried (default: the tuning's).",
)
@click.option(
    "--budget",
    metavar="TIME",
    callback=seconds,
    help="Time for all of it, such as 2h (default: the tuning's).",
)
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
@click.option(
    "--despite",
    metavar="FACT,...",
    callback=named,
    help="With --resume: continue although these facts have changed.",
)
@out
@click.option("--list", "listed", is_flag=True, help="List the tunings that ship.")
@click.option(
    "--dry-run",
    is_flag=True,
    help="Print what would be tried (settings, what is restarted, how long it takes); start "
    "nothing.",
)
@as_json
def command(
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
    from weighbridge.run import Doing
    from weighbridge.screen.terminal import console, print_line
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
        return resume(folder, doing, despite=split(despite), budget_s=budget, as_json=as_json)
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


def resume(
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
    from rich.markup import escape

    from weighbridge.screen.terminal import new_table
    from weighbridge.suites.tuning import loader

    counts = ("parameters", "values")
    table = new_table("tuning", "what it tries", "layout", "strategy", *counts, right=counts)
    table.columns[0].no_wrap = True
    for name, path in loader.shipped().items():
        _, one = loader.load(path)
        values = sum(len(parameter.levels) for parameter in one.parameters)
        numbers = (str(len(one.parameters)), str(values))
        table.add_row(*map(escape, (name, one.about, one.layout, one.strategy, *numbers)))
    screen.print(table)


def print_settings(prepared: PreparedTuning, screen: Console, *, attest: bool) -> None:
    """What a tuning would try, and the time. Raises UsageError if its budget is too short."""
    from rich.markup import escape

    from weighbridge.conductor.time_estimate import TimeAllowance
    from weighbridge.screen.terminal import new_table, print_line
    from weighbridge.suites.tuning import show_setting
    from weighbridge.tuning.course import Course
    from weighbridge.tuning.session import sentences
    from weighbridge.tuning.space import scope_between

    tuning, space = prepared.tuning, prepared.space
    print_line(screen, f"{tuning.name}: {tuning.about}")
    for objective in prepared.run().objectives:
        print_line(screen, f"  objective: {objective.words}")
    table = new_table("setting", "restarts", "layout")
    for one in prepared.candidates or prepared.singles:
        words = ", ".join(
            f"{key} {show_setting(space.layout_settings.get(key))} → {show_setting(value)}"
            for key, value in one.variant.settings.items()
        )
        scope = scope_between(prepared.baseline.variant, one.variant, prepared.scopes)
        table.add_row(*map(escape, (words, scope, one.variant.name)))
    screen.print(table)
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
    from dataclasses import replace

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
