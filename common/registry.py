"""Registries: what there are several of (metrics, exports, drivers, ...), found by name.

Another package adds its own by an entry point, in its `pyproject.toml`:

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
    """Objects by name, of this package and of others. It is read-only; names are known without
    importing what they name.

    `group` is the entry point group, `what` the singular that errors use ("metric"). `own` declares
    this package's objects in their order, each as itself or as "module:attribute", imported when it
    is first asked for; entry points of this package in the same group come next, then other
    packages' by name. (An installer sorts entry points by name, so an order that matters is
    declared in `own`.) With `kind`, whatever is not an instance of it is refused.

    Names that two packages give, and objects that cannot be imported or are of another kind, raise
    UsageError with the packages' names: the former at the first use of the registry, the latter
    when the object is asked for.
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
        """The name, where there is such an object; it is not imported. Raises ValueError with the
        closest name where not: a validator of a record's field.
        """
        if name not in self:
            raise ValueError(f"no {self.what} {name!r}{did_you_mean(name, tuple(self))}")
        return name

    def get_or_refuse(self, name: str) -> T:
        """The object of that name.

        Raises UsageError with the closest name and the list of all where there is none.
        """
        try:
            self.known(name)
        except ValueError as error:
            raise UsageError(str(error), advice=f"There are {', '.join(self)}.") from None
        return self[name]

    def _others(self) -> Mapping[str, EntryPoint]:
        """Entry points by name, in order: those of this package, then others'."""
        if self._found is None:
            self._found = self._entry_points()
        return self._found

    def _entry_points(self) -> dict[str, EntryPoint]:
        every = list(entry_points(group=self.group))
        ours = [one for one in every if _package(one) == OWN_PACKAGE]
        foreign = sorted(
            (one for one in every if _package(one) != OWN_PACKAGE),
            key=lambda one: (one.name, _package(one)),
        )
        found: dict[str, EntryPoint] = {}
        for one in (*ours, *foreign):
            first = (
                OWN_PACKAGE
                if one.name in self._own
                else _package(found[one.name])
                if one.name in found
                else None
            )
            if first is not None:
                raise UsageError(
                    f"two packages have a {self.what} {one.name!r}: {first} and {_package(one)}",
                    advice=f"Rename one of them (entry point group {self.group}), or uninstall "
                    "its package.",
                )
            found[one.name] = one
        return found

    def _load(self, name: str) -> T:
        others = (
            self._others()
        )  # also for an own one: two of one name are refused whichever is asked for
        declared = self._own.get(name)
        if declared is not None and not isinstance(declared, str):
            return declared
        entry = others[name] if declared is None else EntryPoint(name, declared, self.group)
        try:
            found = entry.load()
        except (
            Exception
        ) as error:  # another package's module may fail by anything when it is imported
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
            advice=f"Repair, upgrade or uninstall {package}: its entry point group is {self.group}.",
        )


def _package(entry: EntryPoint) -> str:
    """The name of the package that an entry point is of; one that is of none was made here."""
    return entry.dist.name if entry.dist is not None else OWN_PACKAGE
