"""Finding and reading suites: by path, or by the name of one that ships."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from weighbridge.common.document import Document, DocumentError, Fault, did_you_mean
from weighbridge.common.errors import UsageError
from weighbridge.common.paths import is_file
from weighbridge.suites.suite import Suite


def shipped() -> dict[str, Path]:
    """The suites that ship, by name."""
    return {path.stem: path for path in sorted(_folder().glob("*.yaml"))}


def find(name: str) -> Path:
    """The file of a suite given as a path (`suites/quick.yaml`) or as the name of a shipped one
    (`quick`).

    Raises UsageError when there is none.
    """
    path = Path(name)
    if is_file(path):
        return path
    stem = path.stem if path.suffix in {".yaml", ".yml"} else name
    known = shipped()
    if stem in known and (path.parent == Path() or path.parent.name == "suites"):
        return known[stem]
    raise UsageError(
        f"no suite {name!r}{did_you_mean(stem, list(known))}",
        advice="Give the path of a YAML file, or the name of a shipped suite.",
    )


def load(path: Path) -> Suite:
    """Read a suite. Raises DocumentError with all faults at once, or UsageError when it cannot be
    read.
    """
    return _checked(Document.read(path))


def parse(file: str, text: str) -> Suite:
    """A suite from its text; `file` is only its name in messages.

    Raises DocumentError with all faults at once.
    """
    return _checked(Document(file, text))


def _checked(document: Document) -> Suite:
    suite = document.into(Suite)
    found = faults(document, suite)
    if found:
        raise DocumentError(found)
    return suite


def faults(document: Document, suite: Suite) -> list[Fault]:
    """What only the whole workload can tell, of the workloads at the top of a document."""
    found = []
    for number, workload in enumerate(suite.workloads):
        place = ("workloads", number)
        longest = len(f"wb-00000000cg-{workload.name}-{workload.objects.containers}")
        if longest > 63:
            found.append(
                document.fault_at(
                    (*place, "name"),
                    f"{workload.name!r} makes bucket names longer than S3's 63 characters",
                )
            )
        if (
            workload.objects.largest_bytes > 5 * 10**9
            and "s3" in suite.api
            and "write" in workload.operations
        ):
            found.append(
                document.fault_at((*place, "objects", "size"), "S3 takes at most 5 GB in one PUT")
            )
    return found


def _folder() -> Path:
    return Path(str(resources.files("weighbridge.suites")))
