"""`weighbridge tune`: find the settings that help, and prove that they do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import click

from weighbridge.cli.options import drivers_own, pictures, seconds, shown
from weighbridge.common.errors import EXIT_FINE, EXIT_INVALID, UsageError
from weighbridge.common.paths import is_file

if TYPE_CHECKING:
    from rich.console import Console

    from weighbridge.suites.tuning import Strategy
    from weighbridge.tuning.preparation import Changes, PreparedTuning
    from weighbridge.tuning.session import TuningOutcome


@drivers_own
@click.command("tune")
@click.argument("tuning", required=False)
@click.option(
    "--resume",
    "again",
    is_flag=True,
    help="Go on with the newest unfinished run of TUNING, or with the run of a folder.",
)
@click.option(
    "--hardware",
    metavar="FILE",
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
    help="What all of it may take, such as 2h (default: the tuning's).",
)
@click.option(
    "--confirm",
    type=click.IntRange(0, 100),
    help="Visits of the winner on fresh deployments (default: the tuning's).",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    help="Of the order of trials, and of a search (default: the tuning's).",
)
@shown(
    "--attest/--no-attest",
    default=True,
    help="Measure what the hosts of each deployment can do (CPU, fio, iperf3) before it is "
    "weighed: some 20 s each.",
)
@pictures
@click.option(
    "--despite",
    metavar="FACT,...",
    default="",
    help="With --resume: go on although these facts are not what they were.",
)
@shown(
    "--out",
    default="runs",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the run's folder is made.",
)
@click.option("--list", "listed", is_flag=True, help="List the tunings that ship.")
@click.option(
    "--dry-run",
    is_flag=True,
    help="Print what would be tried (settings, what is restarted, how long it takes); start "
    "nothing.",
)
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
    despite: str,
    out: Path,
    listed: bool,
    dry_run: bool,
    own: Mapping[str, object],
) -> int | None:
    """Try settings of a layout against the layout as it is, and say which help, by how much, and
    how sure that is.

    TUNING is a tuning that ships (see --list), a tuning file, or with --resume the folder of its
    run.
    """
    from weighbridge.screen.terminal import console  # noqa: PLC0415 - heavy rooms are imported by what needs them
    from weighbridge.tuning.preparation import Changes, read, ready  # noqa: PLC0415

    screen = console()
    if listed:
        print_tunings(screen)
        return None
    if tuning is None:
        raise click.UsageError("the name of a TUNING is wanted; --list shows those that ship")
    changes = Changes(
        hardware=hardware, strategy=strategy, budget_s=budget, confirm=confirm, seed=seed
    )
    if again:
        facts = tuple(word.strip() for word in despite.split(",") if word.strip())
        return resume(
            _folder(tuning, changes, out),
            screen,
            despite=facts,
            budget_s=budget,
            pictures=pictures,
            own=own,
        )
    if is_file(Path(tuning) / "manifest.json"):
        raise UsageError(
            f"{tuning}: is a run", advice=f"To go on with it: weighbridge tune {tuning} --resume"
        )
    chosen = ready(
        *read(tuning, changes),
        say=lambda words: screen.print(words, markup=False, highlight=False, soft_wrap=True),
    )
    if dry_run:
        print_arms(chosen, screen, attest=attest)
        return None
    return tune(chosen, screen, attest=attest, pictures=pictures, out=out, own=own)


def tune(
    chosen: PreparedTuning,
    screen: Console,
    *,
    attest: bool,
    pictures: bool = True,
    out: Path,
    own: Mapping[str, object] = MappingProxyType({}),
) -> int:
    """Do a tuning and print what it came to; returns the exit code.

    Raises as `weighbridge.tuning.session.tune` does.
    """
    from weighbridge.run import Doing  # noqa: PLC0415 - as above
    from weighbridge.surroundings import place  # noqa: PLC0415
    from weighbridge.tuning import session  # noqa: PLC0415

    done = session.tune(
        chosen, Doing(place(), screen, pictures=pictures, own=own), out=out, attest=attest
    )
    return _told(done, screen, pictures=pictures)


def resume(
    folder: Path,
    screen: Console,
    *,
    despite: tuple[str, ...] = (),
    budget_s: float | None = None,
    pictures: bool = True,
    own: Mapping[str, object] = MappingProxyType({}),
) -> int:
    """Go on with the run of a tuning and print what it came to; returns the exit code.

    Raises as `session.resume` does.
    """
    from weighbridge.run import Doing  # noqa: PLC0415 - as above
    from weighbridge.surroundings import place  # noqa: PLC0415
    from weighbridge.tuning import session  # noqa: PLC0415

    doing = Doing(place(), screen, pictures=pictures, own=own)
    return _told(
        session.resume(folder, doing, despite=despite, budget_s=budget_s), screen, pictures=pictures
    )


def print_tunings(screen: Console) -> None:
    """Print the tunings that ship: what each tries, on which layout, how."""
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415 - as above
    from rich.markup import escape  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    from weighbridge.suites.tuning import loader  # noqa: PLC0415

    drawn = Table(box=SIMPLE_HEAD, header_style="bold", padding=(0, 1, 0, 0))
    for title in ("tuning", "what it tries", "layout", "strategy", "parameters", "values"):
        drawn.add_column(
            title,
            justify="right" if title in ("parameters", "values") else "left",
            no_wrap=title == "tuning",
        )
    for name, path in loader.shipped().items():
        _, one = loader.load(path)
        values = sum(len(parameter.levels) for parameter in one.parameters)
        drawn.add_row(
            *map(
                escape,
                (name, one.about, one.layout, one.strategy, str(len(one.parameters)), str(values)),
            )
        )
    screen.print(drawn)


def print_arms(chosen: PreparedTuning, screen: Console, *, attest: bool) -> None:
    """Print what a tuning would try, and what it takes at a guess.

    Raises UsageError when its budget holds nothing of it.
    """
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415 - as above
    from rich.markup import escape  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    from weighbridge.conductor.pace import TimeAllowance  # noqa: PLC0415
    from weighbridge.suites.tuning import show_setting  # noqa: PLC0415
    from weighbridge.tuning.course import Course  # noqa: PLC0415
    from weighbridge.tuning.session import sentences  # noqa: PLC0415
    from weighbridge.tuning.space import scope_between  # noqa: PLC0415

    tuning, space = chosen.tuning, chosen.space
    screen.print(f"{tuning.name}: {tuning.about}", markup=False, highlight=False)
    for objective in chosen.run().objectives:
        screen.print(f"  objective: {objective.words}", markup=False, highlight=False)
    drawn = Table(box=SIMPLE_HEAD, header_style="bold", padding=(0, 1, 0, 0))
    for title in ("setting", "anew", "layout"):
        drawn.add_column(title, overflow="fold")
    for one in chosen.arms or chosen.singles:
        words = ", ".join(
            f"{key} {show_setting(space.layout_settings.get(key))} → {show_setting(value)}"
            for key, value in one.arm.settings.items()
        )
        scope = scope_between(chosen.baseline.arm, one.arm, chosen.scopes)
        drawn.add_row(*map(escape, (words, scope, one.arm.name)))
    screen.print(drawn)
    if tuning.strategy == "search":
        screen.print("a search proposes combinations of these", style="dim", highlight=False)
    allowance = None if tuning.budget is None else TimeAllowance(tuning.budget)
    for sentence in sentences(chosen, Course(chosen, attest=attest, allowance=allowance)):
        screen.print(sentence, markup=False, highlight=False, soft_wrap=True)


def _told(outcome: TuningOutcome, screen: Console, *, pictures: bool) -> int:
    """Print an outcome; 4 when nothing of it may be ranked, else 0."""
    from weighbridge.conclusion import conclude  # noqa: PLC0415 - as above

    conclude(outcome.derived, screen, pictures=pictures)
    compared = outcome.ledger is None or any(
        effect.ratio is not None for one in outcome.ledger.entries for effect in one.effects
    )
    return EXIT_FINE if compared else EXIT_INVALID


def _folder(name: str, changes: Changes, out: Path) -> Path:
    """The run that --resume is about."""
    from dataclasses import replace  # noqa: PLC0415 - as above

    from weighbridge.tuning import session  # noqa: PLC0415
    from weighbridge.tuning.preparation import read  # noqa: PLC0415

    path = Path(name)
    others = sorted(set(changes.given) - {"budget"})
    if (path / "manifest.json").is_file():
        if others:
            raise UsageError(
                f"{path}: goes on as it was begun; {', '.join(others)} cannot be changed any more"
            )
        return path
    # A budget with --resume is what the rest may take, and no part of what the tuning is.
    return session.unfinished(read(name, replace(changes, budget_s=None))[1], out)
