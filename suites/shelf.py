"""Files that ship with a package of this room: found by name, or by a path of one's own."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from weighbridge.common.document import did_you_mean
from weighbridge.common.errors import UsageError
from weighbridge.common.paths import is_file


@dataclass(frozen=True)
class Shelf:
    """The YAML files of a package.

    `what` is what one of them is called, `advice` what to do when there is none of a name.
    """

    package: str
    what: str
    advice: str

    def shipped(self) -> dict[str, Path]:
        """All of them, by name."""
        return {
            path.stem: path
            for path in sorted(Path(str(resources.files(self.package))).glob("*.yaml"))
        }

    def find(self, name: str) -> Path:
        """The file of a path, or of the name of one that ships.

        Raises UsageError when there is none.
        """
        path = Path(name)
        if is_file(path):
            return path
        known = self.shipped()
        if name in known:
            return known[name]
        raise UsageError(
            f"no {self.what} {name!r}{did_you_mean(name, list(known))}", advice=self.advice
        )
