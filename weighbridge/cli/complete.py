"""What a shell completes: names of files that ship, and of runs that are there.

A name may also be a path, which the shell completes itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import click
from click.shell_completion import CompletionItem

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def layouts(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Layouts, also at the end of a comma-separated list."""
    from weighbridge.topologies.loader import shipped_layouts

    return _names(shipped_layouts(), incomplete, listed=True, files=True)


def hardware(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Hardware files."""
    from weighbridge.topologies.loader import shipped_hardware

    return _names(("auto", *shipped_hardware()), incomplete, files=True)


def suites(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Suites."""
    from weighbridge.suites.loader import shipped

    return _names(shipped(), incomplete, files=True)


def studies(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Studies."""
    from weighbridge.suites.studies.loader import shipped

    return _names(shipped(), incomplete, files=True)


def tunings(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Tunings."""
    from weighbridge.suites.tuning.loader import shipped

    return _names(shipped(), incomplete, files=True)


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
        found = [one for one in sorted(inside, reverse=True) if one.startswith(incomplete)]
        return [CompletionItem(one) for one in found] or super().shell_complete(
            ctx, param, incomplete
        )


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
