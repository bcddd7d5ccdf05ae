"""Registries: things of which there are several (metrics, exports, drivers, ...), found by name.

Another package adds its own by an entry point in its `pyproject.toml`:

    [project.entry-points."weighbridge.metrics"]
    p95 = "my_package.my_module:P95"
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Final, TypeVar, cast

from weighbridge.common.document import did_you_mean
from weighbridge.common.errors import UsageError

OWN_PACKAGE: Final = "weighbridge"

T = TypeVar("T")


class Registry(Mapping[str, T]):
    """Read-only mapping of names to objects of this package and others.

    `group` is the entry point group, `what` the singular for error messages ("metric"). `own`
    declares this package's objects in order, as themselves or as "module:attribute", imported on
    first use; names are known without importing. This package's entry points of the same group come
    next, then those of other packages by name. (Installers sort entry points by name, so an order
    that matters belongs in `own`.) With `kind`, anything that is not an instance of it is refused.

    UsageError, with the packages' names, is raised for a name that two packages have, on the first
    use of the registry, and for an object that cannot be imported or is of another kind, when it is
    requested.
    """

    def __init__(
        self,
        group: str,
        what: str,
        *,
        own: Mapping[str, T | str] | None = None,
        kind: type[T] | None = None,
    ) -> None:
        self.group: Final = group
        self.what: Final = what
        self._own = dict(own or {})
        self._kind = kind
        self._found: dict[str, EntryPoint] | None = None
        self._loaded: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        yield from self._own
        yield from self._others()

    def __len__(self) -> int:
        return len(self._own) + len(self._others())

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self._others()

    def __repr__(self) -> str:
        return f"Registry({self.group!r}: {', '.join(self)})"

    def known(self, name: str) -> str:
        """The name of an object, not imported, for validators. Raises ValueError with a hint."""
        if name not in self:
            raise ValueError(f"no {self.what} {name!r}{did_you_mean(name, tuple(self))}")
        return name

    def get_or_refuse(self, name: str) -> T:
        """The object of that name. Raises UsageError with the closest one and all names."""
        try:
            self.known(name)
        except ValueError as error:
            raise UsageError(str(error), advice=f"Choose one of {', '.join(self)}.") from None
        return self[name]

    def _others(self) -> Mapping[str, EntryPoint]:
        if self._found is None:
            points = entry_points(group=self.group)
            ours = [one for one in points if _package(one) == OWN_PACKAGE]
            foreign = [one for one in points if _package(one) != OWN_PACKAGE]
            foreign.sort(key=lambda one: (one.name, _package(one)))
            packages = dict.fromkeys(self._own, OWN_PACKAGE)
            for one in (*ours, *foreign):
                if one.name in packages:
                    raise UsageError(
                        f"two packages have a {self.what} {one.name!r}: {packages[one.name]} and "
                        f"{_package(one)}",
                        advice=f"Rename one of them (entry point group {self.group}), or "
                        "uninstall its package.",
                    )
                packages[one.name] = _package(one)
            self._found = {one.name: one for one in (*ours, *foreign)}
        return self._found

    def _load(self, name: str) -> T:
        others = self._others()  # also for an own object, so that duplicates are always refused
        declared = self._own.get(name)
        if declared is not None and not isinstance(declared, str):
            return declared
        entry = others[name] if declared is None else EntryPoint(name, declared, self.group)
        try:
            found = entry.load()
        except Exception as error:  # importing another package's module may raise anything
            raise self._broken(entry, f"{type(error).__name__}: {error}") from error
        if self._kind is not None and not isinstance(found, self._kind):
            raise self._broken(
                entry, f"it is a {type(found).__name__}, not a {self._kind.__name__}"
            )
        return cast("T", found)

    def _broken(self, entry: EntryPoint, why: str) -> UsageError:
        package = _package(entry)
        return UsageError(
            f"{self.what} {entry.name!r} of the package {package} cannot be used: {entry.value}: "
            f"{why}",
            advice=f"Repair, upgrade or uninstall {package}: its entry point group is "
            f"{self.group}.",
        )


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else OWN_PACKAGE
