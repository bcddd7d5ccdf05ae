"""Finding and reading studies: by path, or by the name of one that ships."""

from __future__ import annotations

from pathlib import Path

from weighbridge.common.document import Document, DocumentError, did_you_mean
from weighbridge.common.errors import UsageError
from weighbridge.suites import loader as suite_files
from weighbridge.suites.shelf import Shelf
from weighbridge.suites.studies.study import ScaleName, Study
from weighbridge.suites.suite import Suite

_SHELF = Shelf(
    "weighbridge.suites.studies",
    "study",
    "Give the path of a YAML file, or the name of a study that ships: weighbridge study --list.",
)


def shipped() -> dict[str, Path]:
    """The studies that ship, by name."""
    return _SHELF.shipped()


def find(name: str) -> Path:
    """The file of a study given as a path or as the name of a shipped one.

    Raises UsageError when there is none.
    """
    return _SHELF.find(name)


def load(path: Path) -> tuple[Document, Study]:
    """Read a study; the document tells where things stand.

    Raises DocumentError with all faults at once, or UsageError.
    """
    document = Document.read(path)
    study = document.into(Study)
    faults = []
    for name, scale in study.scales.items():
        known = list(suite_files.shipped())
        faults += [
            document.fault_at(
                ("scales", name, "suites", number), f"no suite {one!r}{did_you_mean(one, known)}"
            )
            for number, one in enumerate(scale.suites)
            if one not in known
        ]
    if faults:
        raise DocumentError(faults)
    return document, study


def suite_of(study: Study, scale: ScaleName) -> Suite:
    """The suite that a scale replays, with the workloads of all the suites that it names.

    Raises UsageError when suites that are to be joined differ in more than name, text and
    workloads.
    """
    said = study.scales[scale]
    if said.suite is not None:
        return said.suite
    first, *others = [suite_files.load(suite_files.shipped()[name]) for name in said.suites]
    joined = {"name": study.name, "about": study.about}
    for other in others:
        same = first.model_copy(
            update={"name": other.name, "about": other.about, "workloads": other.workloads}
        )
        if same != other:
            raise UsageError(
                f"study {study.name}: suites {first.name} and {other.name} differ in more than "
                "their workloads"
            )
    workloads = [workload for one in (first, *others) for workload in one.workloads]
    return Suite.model_validate({**first.model_dump(), **joined, "workloads": workloads})
