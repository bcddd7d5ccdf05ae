"""Factors of a workload's requests that may be lists: each way stands for a workload."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from weighbridge.suites.encryption import PLAIN, encryption_label
from weighbridge.suites.signing import UNSIGNED, signing_label

LONGEST_NAME: Final = 40


@dataclass(frozen=True)
class Factor:
    """One of them."""

    key: str
    """The key of a workload."""
    usual: object
    """What it is where a suite says nothing."""
    label: Callable[[Any], str]
    """The short name of a way, which is also part of a workload's."""


SIGNING: Final = Factor("signing", UNSIGNED, signing_label)
ENCRYPTION: Final = Factor("encryption", PLAIN, encryption_label)
FACTORS: Final = (SIGNING, ENCRYPTION)


def each_way(workload: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A workload, by its keys, for each combination of the ways that it lists.

    Raises ValueError if a name gets too long.
    """
    made = [{**workload}]
    for factor in FACTORS:
        if isinstance(workload[factor.key], tuple):
            made = [
                {**one, "name": f"{one['name']}-{factor.label(way)}", factor.key: way}
                for one in made
                for way in workload[factor.key]
            ]
    too_long = [one["name"] for one in made if len(one["name"]) > LONGEST_NAME]
    if too_long:
        raise ValueError(
            f"{', '.join(too_long)}: longer than {LONGEST_NAME} characters; choose a shorter name "
            "for the workload"
        )
    return made
