"""A bucket full of empty objects, for listings of both APIs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from weighbridge.common.exchange import WrongAnswer, ask, exchanging
from weighbridge.gateways.capabilities.capability import Unknown

FOLDERS: Final = tuple("abcdefghijklm")
EACH: Final = 100
"""1,300 objects: RGW ends pages short of 1,000 with some 830 to 920 names."""
NAMES: Final = tuple(
    sorted(f"written-{folder}-{number}" for folder in FOLDERS for number in range(EACH))
)
"""With `-` as the delimiter, thirteen folders below `written-`."""
_PARALLEL: Final = 8


def fill(endpoint: Mapping[str, Any], bucket: str) -> None:
    """Write an empty object of each name. Raises Unknown if one was not taken."""
    shares = [NAMES[number::_PARALLEL] for number in range(_PARALLEL)]
    with ThreadPoolExecutor(_PARALLEL) as pool:
        list(pool.map(lambda share: _fill_share(endpoint, bucket, share), shares))


def _fill_share(endpoint: Mapping[str, Any], bucket: str, names: Sequence[str]) -> None:
    try:
        with exchanging(endpoint, bucket) as exchange:
            for name in names:
                ask(exchange, "PUT", "PUT", f"/{bucket}/{name}", (200, 201))
    except WrongAnswer as wrong:
        status = wrong.answer.status if wrong.answer else None
        raise Unknown("not asked: the objects to list were not accepted", status=status) from None
