"""YAML files that ship with a package, found by name; others are found by path."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from weighbridge.common.document import did_you_mean
from weighbridge.common.errors import UsageError
from weighbridge.common.paths import is_file


@dataclass(frozen=True)
class ShippedFiles:
    """The YAML files of a package.

    `what` is the word for one of them, `advice` what to do if there is none of a name.
    """

    package: str
    what: str
    advice: str

    def by_name(self) -> dict[str, Path]:
        """All of them, by name."""
        folder = Path(str(resources.files(self.package)))
        return {path.stem: path for path in sorted(folder.glob("*.yaml"))}

    def find(self, name: str) -> Path:
        """The file of a path (`suites/quick.yaml`), or of the name of a shipped one (`quick`).

        Raises UsageError if there is none.
        """
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
