"""Finding and reading tunings: by path, or by the name of one that ships."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from ground.document import Document, DocumentError, did_you_mean
from ground.errors import UsageError
from suites import loader as suite_files
from suites.suite import Suite
from suites.tuning.tuning import Tuning


def shipped() -> dict[str, Path]:
    """The tunings that ship, by name."""
    return {path.stem: path for path in sorted(Path(str(resources.files("suites.tuning"))).glob("*.yaml"))}


def find(name: str) -> Path:
    """The file of a tuning given as a path or as the name of a shipped one. Raises UsageError when there is none."""
    path = Path(name)
    if path.is_file():
        return path
    known = shipped()
    if name in known:
        return known[name]
    raise UsageError(
        f"no tuning {name!r}{did_you_mean(name, list(known))}",
        advice="Give the path of a YAML file, or the name of a tuning that ships: weighbridge tune --list.",
    )


def load(path: Path) -> tuple[Document, Tuning]:
    """Read a tuning; the document tells where things stand. Raises DocumentError with all faults at once, or UsageError."""
    document = Document.read(path)
    return document, document.into(Tuning)


def suite_of(document: Document, tuning: Tuning) -> Suite:
    """What a tuning replays: the steps that its objectives are about. Raises DocumentError that points into the tuning's file."""
    base = None
    if tuning.suite is not None:
        try:
            base = suite_files.load(suite_files.find(tuning.suite))
        except DocumentError:
            raise
        except UsageError as error:
            raise DocumentError([document.fault_at(("suite",), error.message)]) from error
        if tuning.api is not None and tuning.api not in base.api:
            raise DocumentError([document.fault_at(("api",), f"suite {base.name} has no {tuning.api}")])
    known = base.workloads if base is not None else tuning.workloads
    whole = Suite(name=tuning.name, about=tuning.about, workloads=known)
    faults = []
    for number, one in enumerate(tuning.objectives):
        try:
            one.resolved(whole)
        except ValueError as error:
            faults.append(document.fault_at(("objectives", number), str(error)))
    if faults:
        raise DocumentError(faults)
    return tuning.suite_of(base)
