"""A ring's object servers as a target, and which kind of account a target has."""

from __future__ import annotations

import time
from collections.abc import Iterator

from weighbridge.common.errors import DriverError
from weighbridge.drivers.locust.account import REACH_S, Account
from weighbridge.drivers.locust.account_request import reach
from weighbridge.drivers.locust.engine_places import EnginePlace
from weighbridge.drivers.locust.url_parts import UrlParts
from weighbridge.drivers.protocol import Ring, Setup


class ObjectServers(Account):
    """A ring's object servers in place of an account at a gateway: no tokens, and no listings.

    Containers are only part of an object's path: none is made or deleted.
    """

    def __init__(self, setup: Setup, ring: Ring) -> None:
        super().__init__(setup.target, setup.request_timeout_s)
        self._servers = tuple(dict.fromkeys((disk.address, disk.port) for disk in ring.disks))

    def places(self) -> tuple[EnginePlace, ...]:
        """None: the ring says which servers there are."""
        return ()

    def _reach(self) -> None:
        """Check that every server listens."""
        until_s = time.monotonic() + min(self._timeout_s, REACH_S)
        for address, port in self._servers:
            reach(UrlParts(address, port, tls=False, path=""), until_s - time.monotonic())

    def _log_in(self) -> None:
        """Do nothing."""

    def make_bucket(self, name: str) -> None:
        """Do nothing."""

    def delete_bucket(self, name: str) -> bool:
        return True

    def objects(self, bucket: str) -> Iterator[str]:
        """None: there are no listings."""
        return iter(())

    def delete_object(self, bucket: str, name: str) -> None:
        """Raise DriverError: only the engine knows where an object is."""
        raise DriverError(f"{bucket}/{name}: only the engine deletes from object servers")


def account_at(setup: Setup) -> Account:
    """The account that is loaded."""
    if setup.ring is None:
        return Account(setup.target, setup.request_timeout_s)
    return ObjectServers(setup, setup.ring)
