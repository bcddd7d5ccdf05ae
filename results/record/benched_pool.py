"""A pool that existed before a run, in which `rados bench` measured layer `rados`."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import ConfigDict, NonNegativeInt, PositiveInt

from weighbridge.common.record import Record
from weighbridge.common.structure import Redundancy


class BenchedPool(Record):
    """What was known of it when the run began; None: its user may not know.

    It is kept in a run's plan: fields that another version of the suite wrote there are ignored.
    """

    model_config = ConfigDict(extra="ignore")

    host: str
    """Where `rados bench` runs."""
    pool: str
    user: str
    """Ceph's user."""
    kept: Redundancy | None = None
    """Its replicas or fragments."""
    pg_num: PositiveInt | None = None
    rule: NonNegativeInt | None = None
    """The number of its CRUSH rule, which says on which devices it is."""
    stores: tuple[str, ...] = ()
    """Pools in which gateways of this cluster keep objects, or may."""
    apart: str = ""
    """Why what gateways reach is no share of what it reaches; empty: they keep objects in the same
    way on the same devices.
    """
    remark: str = ""
    """What else to know of it, such as who uses it."""

    @property
    def words(self) -> str:
        """Such as `pool bench: 3 replicas, 32 placement groups, CRUSH rule 0`."""
        return f"pool {self.pool}: {', '.join(self._known) or 'its replicas are not known'}"

    @property
    def _known(self) -> tuple[str, ...]:
        kept = () if self.kept is None else (kept_words(self.kept),)
        groups = () if self.pg_num is None else (f"{self.pg_num} placement groups",)
        rule = () if self.rule is None else (f"CRUSH rule {self.rule}",)
        return (*kept, *groups, *rule)

    @property
    def facts(self) -> Mapping[str, str]:
        """The same for a table of a layout's facts."""
        unknown = "not known"
        return {
            "pool": f"{self.pool}, by {self.user} on {self.host}; it existed before",
            "pool: replicas": unknown if self.kept is None else kept_words(self.kept),
            "pool: placement groups": unknown if self.pg_num is None else str(self.pg_num),
            "pool: CRUSH rule": unknown if self.rule is None else str(self.rule),
            "pool: pools of gateways": ", ".join(self.stores) or unknown,
            "pool: shares of it": f"none: {self.apart}" if self.apart else "as of a layer below",
            **({"pool: remark": self.remark} if self.remark else {}),
        }


def kept_words(kept: Redundancy) -> str:
    """`3 replicas`, `1 replica` or `erasure coding 2+1`."""
    if kept.fragments is not None:
        return f"erasure coding {kept.fragments}"
    return f"{kept.replicas} replica{'s' * (kept.replicas != 1)}"
