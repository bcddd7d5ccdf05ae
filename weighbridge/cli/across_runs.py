"""Verbs about several runs: two are compared, or many followed over time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from weighbridge.cli.options import (
    OUTPUT,
    OUTPUT_FILE,
    RUN_FOLDER,
    as_json,
    fail_on,
    names_option,
    pictures,
    shown,
    split,
)
from weighbridge.common.errors import EXIT_FINE, UsageError, need

if TYPE_CHECKING:
    from weighbridge.results.features.compare_runs import RunsSummary


WRITTEN: Final = ("effects.csv", "differences.csv", "comparison.json")


def _summary(name: str, what: str) -> Callable[[click.decorators.FC], click.decorators.FC]:
    return click.option(name, metavar="FILE", type=OUTPUT_FILE, help=f"Write {what}")


@click.command("compare-runs")
@click.argument("a", type=RUN_FOLDER)
@click.argument("b", type=RUN_FOLDER)
@names_option(
    "--layouts",
    "A=B,...",
    "Which layout of A to compare with which of B (default: those of the same name).",
)
@names_option(
    "--despite", "FACT,...", "Guard facts in which the runs may differ anyway; `all`: any of them."
)
@click.option(
    "--history",
    metavar="RUN",
    type=RUN_FOLDER,
    multiple=True,
    help="An earlier run of the same thing as A; name two or more: B must differ from A by more "
    "than such runs differ from each other.",
)
@fail_on("B is worse than A anywhere (needs two --history)")
@click.option(
    "--out",
    type=OUTPUT,
    help="Folder for effects.csv, differences.csv, comparison.json and the maps of what changed.",
)
@_summary("--html", "a page: the answer, every test, maps of what changed, what differs.")
@_summary("--markdown", "a summary for a page or a comment of CI.")
@_summary("--junit", "each comparison as a test, in JUnit's XML: worse fails, open is skipped.")
@click.option("--force", is_flag=True, help="Replace these three files if they exist.")
@as_json
def compare_runs_verb(
    a: Path,
    b: Path,
    layouts: str | None,
    despite: str | None,
    history: tuple[Path, ...],
    fail_on: str | None,
    out: Path | None,
    html: Path | None,
    markdown: Path | None,
    junit: Path | None,
    force: bool,
    as_json: bool,
) -> int:
    """Compare run B with run A: what changed, by how much, and how sure that is.

    Runs of the same thing differ from day to day by more than their repeats show: name earlier runs
    of the same thing as A by --history; without two of them every verdict is provisional. Refused
    if the runs differ in what decides their results: machine, hosts, limits, workloads, replicas,
    driver ... Exits with 0; with --fail-on regression 1 if B is worse; 4 if nothing could be
    compared, or if a throughput or a p90 of A could not be judged in B.
    """
    from weighbridge.documents import ComparedRunsDocument
    from weighbridge.results.features.compare_runs import summarize
    from weighbridge.results.features.run_guard import read_compared_run
    from weighbridge.results.outcome import print_comparison, print_verdict
    from weighbridge.results.run.reading import make_folder, refuse_existing, write_atomically
    from weighbridge.results.show.pictures import DRAWING
    from weighbridge.results.show.terminal import console, print_line
    from weighbridge.results_output import print_document

    asked = {"--html": html, "--markdown": markdown, "--junit": junit}
    _refuse_targets(asked, out, (a, b, *history))
    refuse_existing(filter(None, asked.values()), force=force)
    if html is not None:
        need(DRAWING)
    summary = summarize(
        read_compared_run(a),
        read_compared_run(b),
        [read_compared_run(folder) for folder in history],
        layouts=list(split(layouts)),
        despite=list(split(despite)),
        fail_on_regression=fail_on is not None,
    )
    screen = console(stderr=as_json)
    print_comparison(summary, screen)
    if out is not None:
        for path in _write(summary, out):
            print_line(screen, str(path))
    for text in summary.lost:
        print_line(screen, f"comparable in A and not in B: {text}", "yellow")
    print_verdict(summary.verdict, screen)
    for file, content in _summaries(summary, html, markdown, junit):
        make_folder(file.parent)
        write_atomically(file, content)
        print_line(screen, str(file))
    if as_json:
        print_document(
            ComparedRunsDocument(
                exit_code=summary.verdict.exit_code,
                a=summary.a.manifest.run_id,
                b=summary.b.manifest.run_id,
                guarded=summary.guarded,
                comparison=summary.comparison,
                lost=summary.lost,
            )
        )
    return summary.verdict.exit_code


def _refuse_targets(
    asked: Mapping[str, Path | None], out: Path | None, runs: Sequence[Path]
) -> None:
    """Raise UsageError if two summaries are one file, or one belongs to a run or to `out`."""
    folders = [run.resolve() for run in runs]
    of_out = {} if out is None else {(out / name).resolve(): f"{name} of --out" for name in WRITTEN}
    seen: dict[Path, str] = dict(of_out)
    faults = []
    for option, path in asked.items():
        if path is None:
            continue
        real = path.resolve()
        if real in seen:
            faults.append(f"{option} {path}: is also {seen[real]}")
        seen[real] = option
        faults += [
            f"{option} {path}: is in the folder of the run {folder.name}"
            for folder in dict.fromkeys(folders)
            if real.is_relative_to(folder)
        ]
    if faults:
        raise UsageError(
            "\n".join(faults), advice="Name a file of its own for each, outside the runs."
        )


def _summaries(
    summary: RunsSummary, html: Path | None, markdown: Path | None, junit: Path | None
) -> Iterator[tuple[Path, str]]:
    from weighbridge.results.features.compare_runs import junit_xml, runs_markdown, runs_page
    from weighbridge.results.show.charts.change_map import change_maps

    if html is not None:
        yield html, runs_page(summary, change_maps(summary.comparison))
    if markdown is not None:
        yield markdown, runs_markdown(summary)
    if junit is not None:
        yield junit, junit_xml(summary)


def _write(summary: RunsSummary, out: Path) -> tuple[Path, ...]:
    from weighbridge.results.features.compare_runs import runs_effects
    from weighbridge.results.features.run_guard import differences_csv
    from weighbridge.results.run.reading import make_folder, write_atomically
    from weighbridge.results.show.charts.change_map import change_maps
    from weighbridge.results_output import draw

    make_folder(out)
    comparison = summary.comparison
    contents = (
        runs_effects(comparison, summary.b.manifest.run_id).csv,
        differences_csv(summary.guarded),
        comparison.model_dump_json(indent=2) + "\n",
    )
    texts = dict(zip(WRITTEN, contents, strict=True))
    for name, text in texts.items():
        write_atomically(out / name, text)
    return (
        *(out / name for name in texts),
        *draw(change_maps(comparison), out, partial(click.echo, err=True)),
    )


RUNS = Path("runs")


@click.command("history")
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path))
@names_option(
    "--despite",
    "FACT,...",
    "Guard facts in which comparable runs may differ anyway; `all`: any of them.",
)
@shown(
    "--out",
    default="history",
    type=OUTPUT,
    help="Folder for the page, the tables, the charts, and the database that keeps the figures.",
)
@pictures
@fail_on("the latest run is worse than those before it anywhere")
@as_json
def history_verb(
    runs: tuple[Path, ...],
    despite: str | None,
    out: Path,
    fail_on: str | None,
    *,
    pictures: bool,
    as_json: bool,
) -> int:
    """Draw the figures of many runs over time, and find where they changed.

    RUNS are run folders, or folders of runs (default: runs). The judged figures of each run are
    kept in a DuckDB database, so a run is read only once, and is still known when its folder is
    deleted. Changes are found by Apache Otava in throughput and p90 of each cell, among comparable
    runs: those that `compare-runs --history` would take. Exits with 0; with --fail-on regression 1
    if the latest run is at a level that a change for the worse began, 4 if its throughput or p90
    could not be judged somewhere. Needs the extra `history`.
    """
    from weighbridge.documents import HistoryDocument, run_folders
    from weighbridge.results.features.compare_runs import RunsVerdict
    from weighbridge.results.features.history import (
        history_charts,
        history_of,
        history_page,
        history_tables,
        latest_verdict,
    )
    from weighbridge.results.features.kept_runs import (
        DATABASE,
        history_database,
        keep_runs,
        replace_table,
    )
    from weighbridge.results.features.run_guard import refuse_unknown
    from weighbridge.results.features.run_series import OTAVA
    from weighbridge.results.outcome import print_history, print_verdict
    from weighbridge.results.run.reading import make_folder, write_atomically
    from weighbridge.results.show.pictures import DRAWING
    from weighbridge.results.show.terminal import console, print_line
    from weighbridge.results_output import draw, print_document

    need(OTAVA, "duckdb", DRAWING)
    facts, program = split(despite), version("weighbridge")
    refuse_unknown(facts)
    folders = [each for path in runs or (RUNS,) for each in run_folders(path)]
    make_folder(out)
    with history_database(out / DATABASE) as database:
        kept = keep_runs(database, folders, program)
        if not kept.runs:
            raise UsageError(
                "\n".join(("there is no run that can be read", *kept.left_out)),
                advice="Name run folders, or a folder of runs.",
            )
        history = history_of(kept.runs, facts)
        tables = history_tables(history)
        for table in tables:
            replace_table(database, table)
    charts = history_charts(history)
    screen = console(stderr=as_json)
    print_history(history, screen, gone=kept.gone, left_out=kept.left_out)
    page = history_page(history, charts, version=program, gone=kept.gone, left_out=kept.left_out)
    for name, text in {"history.html": page, **{one.file: one.csv for one in tables}}.items():
        write_atomically(out / name, text)
        print_line(screen, str(out / name))
    if pictures:
        draw(charts, out / "charts", partial(print_line, screen))
    verdict = RunsVerdict(exit_code=EXIT_FINE) if fail_on is None else latest_verdict(history)
    print_verdict(verdict, screen)
    if as_json:
        print_document(
            HistoryDocument(
                exit_code=verdict.exit_code,
                answer=history.headline,
                history=history,
                gone=kept.gone,
                left_out=kept.left_out,
            )
        )
    return verdict.exit_code
