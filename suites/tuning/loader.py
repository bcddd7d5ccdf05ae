from __future__ import annotations

from pathlib import Path

from weighbridge.common.document import Document, DocumentError
from weighbridge.common.errors import UsageError
from weighbridge.suites import loader as suite_files
from weighbridge.suites.loader import ShippedFiles
from weighbridge.suites.suite import Suite
from weighbridge.suites.tuning import Tuning

_TUNINGS = ShippedFiles(
    "weighbridge.suites.tuning",
    "tuning",
    "Give the path of a YAML file, or the name of a tuning that ships: weighbridge tune --list.",
)
shipped = _TUNINGS.by_name
find = _TUNINGS.find


def load(path: Path) -> tuple[Document, Tuning]:
    """A tuning, and its document. Raises DocumentError with all faults, or UsageError."""
    document = Document.read(path)
    return document, document.into(Tuning)


def suite_of(document: Document, tuning: Tuning) -> Suite:
    """What a tuning replays for its objectives. Raises DocumentError with all faults."""
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
        raise  # it points into the suite's file
    except UsageError as error:
        raise DocumentError([document.fault_at(("suite",), error.message)]) from error
