from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from math import prod
from pathlib import Path

import yaml

from weighbridge.common.document import Document, DocumentError, Fault, did_you_mean
from weighbridge.common.errors import UsageError
from weighbridge.common.paths import is_file
from weighbridge.suites.factors import FACTORS
from weighbridge.suites.operations import LARGEST_PUT_BYTES
from weighbridge.suites.overrides import Overrides, as_options, override
from weighbridge.suites.suite import Suite


@dataclass(frozen=True)
class ShippedFiles:
    """A package's YAML files; `what` is the word for one, `advice` what to do without."""

    package: str
    what: str
    advice: str

    def by_name(self) -> dict[str, Path]:
        folder = Path(str(resources.files(self.package)))
        return {path.stem: path for path in sorted(folder.glob("*.yaml"))}

    def find(self, name: str) -> Path:
        """The file of a path, or of a shipped name. Raises UsageError if there is none."""
        path = Path(name)
        if is_file(path):
            return path
        stem = path.stem if path.suffix in {".yaml", ".yml"} else name
        known = self.by_name()
        folder = self.package.rpartition(".")[2]
        if stem in known and (path.parent == Path() or path.parent.name == folder):
            return known[stem]
        raise UsageError(
            f"no {self.what} {name!r}{did_you_mean(stem, list(known))}", advice=self.advice
        )


_SUITES = ShippedFiles(
    "weighbridge.suites", "suite", "Give the path of a YAML file, or the name of a shipped suite."
)
shipped = _SUITES.by_name
find = _SUITES.find


def load(path: Path) -> Suite:
    """Read a suite. Raises DocumentError with all faults, or UsageError."""
    return _checked(Document.read(path))


def load_changed(path: Path, overrides: Overrides) -> tuple[Suite, str]:
    """A suite changed by a command line, with its text. Raises as `load`."""
    document = Document.read(path)
    suite = _checked(document)
    if not overrides.given:
        return suite, "\n".join(document.lines) + "\n"
    document.was_valid = True
    override(document, suite, overrides, _positions(document))
    try:
        changed = _checked(document)
    except DocumentError as error:
        raise DocumentError(as_options(error.faults)) from None
    return changed, yaml.safe_dump(document.data, sort_keys=False, allow_unicode=True)


def parse(file: str, text: str) -> Suite:
    """A suite from its text, `file` in messages. Raises DocumentError with all faults."""
    return _checked(Document(file, text))


def _checked(document: Document) -> Suite:
    suite = document.into(Suite)
    found = faults(document, suite)
    if found:
        raise DocumentError(found)
    return suite


def faults(document: Document, suite: Suite) -> list[Fault]:
    """Faults that only a complete workload shows, of the workloads at the top of a document."""
    found = []
    for number, workload in zip(_positions(document), suite.workloads, strict=True):
        place = ("workloads", number)
        if len(f"wb-00000000cg-{workload.name}-{workload.objects.containers}") > 63:
            message = f"{workload.name!r} makes bucket names longer than S3's 63 characters"
            found.append(document.fault_at((*place, "name"), message))
        too_large = workload.objects.largest_bytes > LARGEST_PUT_BYTES
        if too_large and "s3" in suite.api and {"write", "copy"} & set(workload.operations):
            message = "S3 takes at most 5 GB in one PUT or copy"
            found.append(document.fault_at((*place, "objects", "size"), message))
    return found


def _positions(document: Document) -> list[int]:
    """Where each workload is in the document; lists of factors make several of one."""
    keys = [factor.key for factor in FACTORS]
    return [
        number
        for number, one in enumerate(document.data["workloads"])
        for _ in range(
            prod(_length(one.get(key)) for key in keys)
            * _length((one.get("listed") or {}).get("deleted"))
        )
    ]


def _length(value: object) -> int:
    return len(value) if isinstance(value, list) else 1
