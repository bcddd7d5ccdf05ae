from __future__ import annotations

from pathlib import Path

from weighbridge.common.document import Document, DocumentError, did_you_mean
from weighbridge.common.errors import UsageError
from weighbridge.suites import loader as suite_files
from weighbridge.suites.loader import ShippedFiles
from weighbridge.suites.studies import ScaleName, Study
from weighbridge.suites.suite import Suite

_STUDIES = ShippedFiles(
    "weighbridge.suites.studies",
    "study",
    "Give the path of a YAML file, or the name of a study that ships: weighbridge study --list.",
)
shipped = _STUDIES.by_name
find = _STUDIES.find


def load(path: Path) -> tuple[Document, Study]:
    """A study, and its document. Raises DocumentError with all faults, or UsageError."""
    document = Document.read(path)
    study = document.into(Study)
    known = list(suite_files.shipped())
    faults = []
    for name, scale in study.scales.items():
        for number, suite in enumerate(scale.suites):
            if suite not in known:
                message = f"no suite {suite!r}{did_you_mean(suite, known)}"
                faults.append(document.fault_at(("scales", name, "suites", number), message))
    if faults:
        raise DocumentError(faults)
    return document, study


def suite_of(study: Study, scale: ScaleName) -> Suite:
    """What a scale replays, from its suites, which differ in name, text and workloads only. Raises
    UsageError.
    """
    wanted = study.scales[scale]
    if wanted.suite is not None:
        return wanted.suite
    first, *others = [suite_files.load(suite_files.shipped()[name]) for name in wanted.suites]
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
