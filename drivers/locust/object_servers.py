"""Swift's object servers in place of an account at a gateway: no tokens, no containers, nothing
that could be listed.
"""

from __future__ import annotations

from collections.abc import Iterator

from weighbridge.common.errors import DriverError
from weighbridge.drivers.locust.account import Account, UrlParts
from weighbridge.drivers.order import Ring, Setup


class ObjectServers(Account):
    """The object servers that a ring names.

    Containers are part of an object's path and nothing else: none is made or told.
    """

    def __init__(self, setup: Setup, ring: Ring) -> None:
        super().__init__(setup.target, setup.request_timeout_s)
        self._servers = tuple(dict.fromkeys((disk.address, disk.port) for disk in ring.disks))

    def authenticate(self) -> None:
        """See that every server listens."""
        for address, port in self._servers:
            self._reach(UrlParts(address, port, tls=False, path=""))

    def make_bucket(self, name: str) -> None:
        """Nothing is to be made."""

    def delete_bucket(self, name: str) -> bool:
        """Nothing is to be deleted."""
        return True

    def objects(self, bucket: str) -> Iterator[str]:
        """None that could be listed."""
        return iter(())

    def delete_object(self, bucket: str, name: str) -> None:
        """Raise DriverError: the engine deletes, which knows where an object is."""
        raise DriverError(f"{bucket}/{name}: only the engine deletes from object servers")


def account_at(setup: Setup) -> Account:
    """The account that the load goes to."""
    return (
        Account(setup.target, setup.request_timeout_s)
        if setup.ring is None
        else ObjectServers(setup, setup.ring)
    )
