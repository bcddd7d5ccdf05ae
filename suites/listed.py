"""What is listed: objects of which nothing but listings is asked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final

from pydantic import BeforeValidator, Field, model_validator

from weighbridge.common.quantities import parse_share
from weighbridge.common.record import Record
from weighbridge.suites.operations import ListingOptions, Operation

LISTINGS: Final[frozenset[Operation]] = frozenset({"list", "list-all"})
"""What may be asked of such objects."""
MOST_DELETED: Final = 0.9

Share = Annotated[float, BeforeValidator(parse_share), Field(ge=0, le=MOST_DELETED)]


class Listed(Record):
    """Objects that are only listed: `{deleted: [0%, 25%]}`."""

    deleted: Share | Annotated[tuple[Share, ...], Field(min_length=1)] = 0.0
    """Share of the objects of each container, drawn by the seed, that is deleted before its steps.
    An ascending list makes a workload of each share, all on the same objects, one after the other.
    """
    of: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")] | None = None
    """The workload whose objects these are: of a list the first. None: they are its own."""

    @model_validator(mode="after")
    def _whole_percent(self) -> Listed:
        shares = self.shares
        if any(abs(100 * one - round(100 * one)) > 1e-9 for one in shares):
            raise ValueError("deleted: shares are in whole per cent, such as 25%")
        if list(shares) != sorted(set(shares)):
            raise ValueError("deleted: deleted objects do not come back: list ascending shares")
        return self

    @property
    def shares(self) -> tuple[float, ...]:
        """All shares that are deleted, ascending."""
        return self.deleted if isinstance(self.deleted, tuple) else (self.deleted,)

    def gone(self, per_container: int) -> int:
        """How many objects of each container are deleted before its steps."""
        return round(self.shares[0] * per_container)

    def check(
        self,
        operations: Iterable[Operation],
        per_container: int,
        listing: ListingOptions | None,
    ) -> None:
        """Raise ValueError if a workload cannot have it."""
        if others := sorted(set(operations) - LISTINGS):
            raise ValueError(
                f"listed: {', '.join(others)} would miss objects: only {' and '.join(LISTINGS)} "
                "can be used on objects that are only listed"
            )
        if per_container - round(self.shares[-1] * per_container) < 1:
            raise ValueError("listed: no object of a container would be left")
        counts = [round(share * per_container) for share in self.shares]
        if len(set(counts)) < len(counts) or any(
            share and not count for share, count in zip(self.shares, counts, strict=True)
        ):
            raise ValueError(
                f"listed: shares of {per_container} objects are {', '.join(map(str, counts))}: "
                "each must delete more than the previous one"
            )
        if self.shares[-1] and listing is not None and (listing.prefix or listing.delimiter):
            raise ValueError(
                "listed: which names of a prefix are left after deletes is not counted: leave "
                "`prefix` and `delimiter` out, or `deleted`"
            )
