"""Leftover buckets of one account, over whichever of its endpoints answers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import TargetError
from weighbridge.gateways.existing import leftover_buckets
from weighbridge.gateways.existing.leftover_buckets import EndpointSilent, LeftoverBucket

Found = TypeVar("Found")


class Sweep:
    """Several endpoints are of one service: what one does not answer the next one is asked.

    `say` is told each that is given up while there are others. Methods raise TargetError, and
    EndpointSilent when the last endpoint does not answer.
    """

    def __init__(self, endpoint: Endpoint, say: Callable[[str], None]) -> None:
        self._endpoints = list(endpoint.each())
        self._say = say

    @property
    def there(self) -> str:
        """The endpoint that is asked now."""
        here = self._endpoints[0]
        return f"{here.api} {here.storage_url or here.url}"

    def named(self) -> tuple[tuple[str, datetime], ...]:
        """See leftover_buckets.named. An endpoint that lists no buckets is of no use at all."""
        return self._asked(leftover_buckets.named, TargetError)

    def content(self, bucket: str, made: datetime) -> LeftoverBucket | None:
        """See leftover_buckets.content."""
        return self._asked(
            lambda here: leftover_buckets.content(here, bucket, made), EndpointSilent
        )

    def delete(self, bucket: str) -> int:
        """See leftover_buckets.delete."""
        return self._asked(lambda here: leftover_buckets.delete(here, bucket), EndpointSilent)

    def _asked(self, act: Callable[[Endpoint], Found], useless: type[TargetError]) -> Found:
        while True:
            try:
                return act(self._endpoints[0])
            except useless as error:
                if len(self._endpoints) == 1:
                    raise
                self._endpoints.pop(0)
                self._say(f"{error.message}; going on with {self.there}")
