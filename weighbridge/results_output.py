from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click
from rich.console import Console

from weighbridge.common.errors import WeighbridgeError
from weighbridge.common.record import JsonDocument
from weighbridge.documents import run_document
from weighbridge.gateways.gateway import Say
from weighbridge.results.derivation import Derived
from weighbridge.results.outcome import print_outcome
from weighbridge.results.show.chart import Chart
from weighbridge.results.show.pictures import write_charts
from weighbridge.results.show.terminal import print_line


def show_results(
    derived: Derived, screen: Console, exit_code: int, *, pictures: bool, as_json: bool = False
) -> int:
    """Print a run's results, as a document or text, then write charts; returns the exit code."""
    if as_json:
        print_document(run_document(derived, exit_code))
    else:
        print_outcome(derived, screen)
    if pictures and derived.report is not None:
        say = partial(print_line, screen)
        for reason in derived.gallery.left_out:
            say(reason)
        draw_run(derived, say)
    return exit_code


def print_document(document: JsonDocument) -> None:
    """Print a document to stdout."""
    click.echo(document.model_dump_json(indent=1))


def draw_run(derived: Derived, say: Say) -> None:
    """Write the charts of a run."""
    again = f"weighbridge charts {derived.folder.parent}"
    draw(derived.gallery.charts, derived.charts_folder, say, again=again)


def draw(charts: Sequence[Chart], folder: Path, say: Say, *, again: str = "") -> tuple[Path, ...]:
    """Write charts; returns their files. A failure is reported with `again`, the command."""
    try:
        return write_charts(charts, folder)
    except (WeighbridgeError, OSError, MemoryError) as error:
        retry = f"; to try again: {again}" if again else ""
        why = " ".join(str(error).split()) or "out of memory"
        say(f"the charts could not be drawn ({why}); nothing else is lost{retry}")
        return ()
