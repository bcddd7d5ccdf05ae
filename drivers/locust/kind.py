"""What the suite knows of Locust's driver."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar, Final

from weighbridge.common.record import Record
from weighbridge.drivers.kind import DriverKind, LoadSite, Opened
from weighbridge.drivers.locust.far_stations import FarStations
from weighbridge.drivers.order import Setup
from weighbridge.results.record.driver_traits import DriverTraits
from weighbridge.suites import Api, Workload


class LocustModule(Record):
    """The module that the driver is, with its arguments, as hosts run it: another one in tests."""

    module: tuple[str, ...] = ("weighbridge.drivers.locust",)


class LocustKind(DriverKind):
    """Locust conducts the users; native workers or the SDKs make the requests."""

    traits = DriverTraits(
        name="locust",
        label="Locust",
        tools={"locust-engine": "the engine", "locust-sdk": "the SDK driver"},
    )
    apis = ("swift", "s3")
    layers = ("gateway", "object-server")
    mark = ""
    packages: ClassVar = ("locust", "boto3", "python-swiftclient", "gevent", "hdrhistogram")

    def unfit(self, workload: Workload, api: Api) -> tuple[str, ...]:
        """Object servers have no listings."""
        strange = set(workload.operations) - {"read", "write", "delete", "head"}
        if api == "object-server" and strange:
            return (f"object servers know no {', '.join(sorted(strange))}",)
        return ()

    @contextmanager
    def opened(self, site: LoadSite) -> Iterator[Opened]:
        """The driver on the first of the clients, and its stations on the others."""
        module = (site.settings_as(LocustModule) or LocustModule()).module
        names = tuple(client.name for client in site.clients) if len(site.clients) > 1 else ()
        setup = site.setup(
            Setup,
            # Nobody but the engine knows the way to object servers.
            users="engine" if site.way.api == "object-server" else site.suite.users,
            processes=site.suite.processes,
            clients=names,
            listen=site.clients[0].address if names else None,
        )
        # The driver is ended first: it misses none of its stations then.
        with (
            FarStations(site.clients, module, setup, site.log) as far,
            site.process(*module, look=far.check) as driver,
        ):
            versions = driver.setup(setup, far.start).versions
            yield Opened(driver, {**versions, **(_spread(setup) if names else {})})
            driver.quit()


def _spread(setup: Setup) -> dict[str, str]:
    """That several clients made the load, as a fact of the driver."""
    each = "a station" if setup.processes == 1 else f"{setup.processes} stations"
    return {
        "load made by": f"{len(setup.clients)} clients, {each} on each: {', '.join(setup.clients)}"
    }


KIND: Final = LocustKind()
