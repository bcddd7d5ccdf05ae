"""Finding and reading tunings: by path, or by the name of one that ships."""

from __future__ import annotations

from pathlib import Path

from weighbridge.common.document import Document, DocumentError
from weighbridge.common.errors import UsageError
from weighbridge.suites import loader as suite_files
from weighbridge.suites.shelf import Shelf
from weighbridge.suites.suite import Suite
from weighbridge.suites.tuning.tuning import Tuning

_SHELF = Shelf(
    "weighbridge.suites.tuning",
    "tuning",
    "Give the path of a YAML file, or the name of a tuning that ships: weighbridge tune --list.",
)


def shipped() -> dict[str, Path]:
    """The tunings that ship, by name."""
    return _SHELF.shipped()


def find(name: str) -> Path:
    """The file of a tuning given as a path or as the name of a shipped one.

    Raises UsageError when there is none.
    """
    return _SHELF.find(name)


def load(path: Path) -> tuple[Document, Tuning]:
    """Read a tuning; the document tells where things stand.

    Raises DocumentError with all faults at once, or UsageError.
    """
    document = Document.read(path)
    return document, document.into(Tuning)


def suite_of(document: Document, tuning: Tuning) -> Suite:
    """What a tuning replays: the steps that its objectives are about. Raises DocumentError that
    points into the tuning's file, with all faults at once.
    """
    base = tuning.own if tuning.suite is None else _named(document, tuning.suite)
    faults = suite_files.faults(document, base) if tuning.suite is None else []
    try:
        tuning.api_of(base)
    except ValueError as error:
        faults.append(document.fault_at(("suite",) if tuning.api is None else ("api",), str(error)))
    for number, one in enumerate(tuning.objectives):
        try:
            one.resolved(base)
        except ValueError as error:
            faults.append(document.fault_at(("objectives", number), str(error)))
    if faults:
        raise DocumentError(sorted(faults, key=lambda fault: (fault.line, fault.column)))
    return tuning.suite_of(base)


def _named(document: Document, name: str) -> Suite:
    try:
        return suite_files.load(suite_files.find(name))
    except DocumentError:
        raise  # it points into the suite's own file
    except UsageError as error:
        raise DocumentError([document.fault_at(("suite",), error.message)]) from error
