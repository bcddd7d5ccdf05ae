"""`weighbridge compare-runs`: two runs of the same suite, of other releases, tunings or days."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weighbridge.cli.options import named
from weighbridge.common.errors import EXIT_DIFFERENCE, EXIT_FINE, EXIT_INVALID

if TYPE_CHECKING:
    from rich.console import Console

    from weighbridge.results.analysis.across_runs.guard import ComparedRun, Guarded
    from weighbridge.results.analysis.comparison import Comparison

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command("compare-runs")
@click.argument("a", type=_FOLDER)
@click.argument("b", type=_FOLDER)
@click.option(
    "--layouts",
    metavar="A=B,...",
    callback=named,
    help="Which layout of A with which of B (default: those of the same name, each with its own).",
)
@click.option(
    "--despite",
    metavar="FACT,...",
    help="Guard facts in which the runs may differ all the same; `all`: any of them.",
)
@click.option(
    "--history",
    metavar="RUN",
    type=_FOLDER,
    multiple=True,
    help="An earlier run of the same thing as A; name two or more: how far such runs differ is "
    "what B must be beyond.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["regression"]),
    help="End with 1 when B is worse than A anywhere, for use in CI; takes two --history.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for effects.csv, differences.csv, comparison.json and the maps of what changed.",
)
def command(
    a: Path,
    b: Path,
    layouts: str | None,
    despite: str | None,
    history: tuple[Path, ...],
    fail_on: str | None,
    out: Path | None,
) -> int:
    """Compare run B with run A: what changed, by how much, and how sure that is.

    Runs of the same thing differ from day to day by more than their repeats tell: name earlier runs
    of the same thing as A by --history; without two of them every verdict is provisional. Refused
    where the runs differ in what decides their figures: machine, hosts, limits, workloads,
    replicas, driver ... Ends with 0; with --fail-on regression 1 where B is worse; 4 where nothing
    could be compared, or where A has a throughput or a p90 of which nothing could be said of B.
    """
    from weighbridge.results.analysis.across_runs.guard import guard, weighed  # noqa: PLC0415 - as above
    from weighbridge.results.analysis.across_runs.runs_comparison import (  # noqa: PLC0415
        compare_runs,
        hold_history,
        lost,
        match,
    )
    from weighbridge.screen.comparison_outcome import print_comparison  # noqa: PLC0415
    from weighbridge.screen.terminal import console  # noqa: PLC0415

    before, after = weighed(a), weighed(b)
    pairs = match(before, after, _listed(layouts))
    guarded = guard(before, after, pairs, _listed(despite))
    earlier = [weighed(folder) for folder in history]
    hold_history(before, after, earlier, pairs, _listed(despite))
    comparison = compare_runs(before, after, pairs, guarded, earlier)
    screen = console()
    print_comparison(before, after, guarded, comparison, screen, earlier=len(earlier))
    if out is not None:
        for path in _write(comparison, guarded, out):
            screen.print(str(path), markup=False, highlight=False, soft_wrap=True)
    for text in lost(before, after, pairs):
        screen.print(
            f"comparable in A and not in B: {text}",
            style="yellow",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
    return _exit_code(comparison, before, len(earlier), fail_on=fail_on is not None, screen=screen)


def _exit_code(
    comparison: Comparison, a: ComparedRun, earlier: int, *, fail_on: bool, screen: Console
) -> int:
    """0, 1 of a regression that was asked about, 4 where there is nothing to go by: what could not
    fail has not passed.
    """
    from weighbridge.results.analysis.across_runs.runs_comparison import (  # noqa: PLC0415
        RUNS,
        claims,
        regressions,
        unjudged,
    )
    from weighbridge.results.statistics import REPEATS_FOR_A_CLAIM  # noqa: PLC0415

    def say(text: str) -> None:
        screen.print(text, style="bold", markup=False, highlight=False, soft_wrap=True)

    if all(effect.ratio is None for effect in comparison.effects):
        say("Nothing could be compared.")
        return EXIT_INVALID
    if not fail_on:
        return EXIT_FINE
    if earlier + 1 < RUNS:
        say(
            f"Whether B is worse cannot be judged: how far runs of the same thing differ, {RUNS} "
            "of them tell, A among them."
        )
        times = "once" if earlier + 2 == RUNS else "twice"
        again = f": {shlex.join(a.manifest.command)}" if a.manifest.command else "."
        for line in (
            f"Measure what A is {times} more{again}",
            "Then name these runs: --history RUN --history RUN",
        ):
            screen.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)
        return EXIT_INVALID
    worse = regressions(comparison)
    if worse:
        say(f"B is worse than A: {len(worse)} of {len(comparison.effects)} comparisons.")
        for effect in worse:
            screen.print(f"  {effect.text}", markup=False, highlight=False, soft_wrap=True)
        return EXIT_DIFFERENCE
    if not claims(comparison):
        say(
            f"No comparison has {REPEATS_FOR_A_CLAIM} repeats a side and no doubt: a regression "
            "could not have been shown."
        )
        return EXIT_INVALID
    left = unjudged(a, comparison)
    if left:
        many = (
            "1 comparison that A has figures for is"
            if len(left) == 1
            else f"{len(left)} comparisons that A has figures for are"
        )
        say(f"{many} provisional or not comparable: that B is not worse cannot be said.")
        for effect in left:
            screen.print(f"  {effect.text}", markup=False, highlight=False, soft_wrap=True)
        return EXIT_INVALID
    return EXIT_FINE


def _write(comparison: Comparison, guarded: Guarded, out: Path) -> tuple[Path, ...]:
    from weighbridge.conclusion import draw  # noqa: PLC0415
    from weighbridge.results.analysis.across_runs.guard import differences_csv  # noqa: PLC0415
    from weighbridge.results.charts.change_map import change_maps  # noqa: PLC0415
    from weighbridge.results.export.effects import effects_csv  # noqa: PLC0415 - as above
    from weighbridge.results.record.store import make_folder, write_whole  # noqa: PLC0415

    make_folder(out)
    texts = {
        "effects.csv": effects_csv(comparison),
        "differences.csv": differences_csv(guarded),
        "comparison.json": comparison.model_dump_json(indent=2) + "\n",
    }
    for name, text in texts.items():
        write_whole(out / name, text)
    return (
        *(out / name for name in texts),
        *draw(change_maps(comparison), out, partial(click.echo, err=True)),
    )


def _listed(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]
