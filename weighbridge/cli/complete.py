"""What a shell completes: names of files that ship, and of runs that are there.

A name may also be a path, which the shell completes itself.
"""

from __future__ import annotations

import importlib
import shlex
from collections.abc import Callable, Iterable
from pathlib import Path

import click
from click.shell_completion import CompletionItem

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _shipped(
    module: str, function: str = "shipped", *, before: tuple[str, ...] = (), listed: bool = False
) -> Completer:
    """Names of files that ship, which a function of a module gives: it is imported when a shell
    asks. `before` are other names; `listed`: also at the end of a comma-separated list.
    """

    def complete(
        _context: click.Context, _parameter: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        names = getattr(importlib.import_module(module), function)()
        return _names((*before, *names), incomplete, listed=listed, files=True)

    return complete


layouts = _shipped("weighbridge.topologies.loader", "shipped_layouts", listed=True)
hardware = _shipped("weighbridge.topologies.loader", "shipped_hardware", before=("auto",))
suites = _shipped("weighbridge.suites.loader")
studies = _shipped("weighbridge.suites.studies.loader")
tunings = _shipped("weighbridge.suites.tuning.loader")


def bases(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Files of any kind: of what comes before, an option without its value hides the rest."""
    found = [
        one for kind in (suites, layouts, hardware) for one in kind(context, parameter, incomplete)
    ]
    return [one for one in found if one.type == "plain"] or found[:1]


def operations(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Operations of workloads."""
    from weighbridge.suites import OPERATIONS

    return _names(OPERATIONS, incomplete, listed=True)


def words(*known: str) -> Completer:
    """Items of a comma-separated list."""
    return lambda _context, _parameter, incomplete: _names(known, incomplete, listed=True)


class RunFolder(click.Path):
    """The folder of a run; those in `runs` are completed."""

    def __init__(self) -> None:
        super().__init__(exists=True, file_okay=False, path_type=Path)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        try:
            inside = [str(one.parent) for one in Path("runs").glob("*/manifest.json")]
        except OSError:
            inside = []
        runs = [one for one in sorted(inside, reverse=True) if one.startswith(incomplete)]
        # bash puts a plain item into the line as it is, where `$(...)` would be run. Folders with
        # such names are left to the shell's own completion, which quotes them.
        safe = [CompletionItem(one) for one in runs if shlex.quote(one) == one]
        return safe or super().shell_complete(ctx, param, incomplete)


def _names(
    known: Iterable[str], incomplete: str, *, listed: bool = False, files: bool = False
) -> list[CompletionItem]:
    """The names that begin so; with `files`, paths if there is none."""
    before, comma, last = incomplete.rpartition(",") if listed else ("", "", incomplete)
    given = set(before.split(","))
    found = [
        CompletionItem(f"{before}{comma}{name}")
        for name in known
        if name.startswith(last) and name not in given
    ]
    return found or ([CompletionItem(incomplete, type="file")] if files and not comma else [])
