"""The Locust driver as a DriverKind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Final

from weighbridge.common.host import Host
from weighbridge.common.record import Record
from weighbridge.drivers.kind import DriverKind, LoadSite, OpenedDriver
from weighbridge.drivers.process import ClientPrograms
from weighbridge.drivers.protocol import Joining, Listening, Setup
from weighbridge.results.run.step import DriverTraits
from weighbridge.suites import TRAITS, VERSIONS, Api, Workload

WORKER: Final = "worker"
"""The argument that makes the driver's module a worker process."""
END_S: Final = 3.0


class RemoteWorkers(ClientPrograms):
    """The worker processes of a driver on all clients but its own, started when its master listens.

    `hosts` are all clients in the order of `setup.clients`, the driver's own first; `module` is
    Locust's driver with its arguments. Logs of worker processes are beside the driver's `log`.
    """

    def __init__(
        self, hosts: Sequence[Host], module: Sequence[str], setup: Setup, log: Path
    ) -> None:
        super().__init__(END_S)
        self._hosts = tuple(hosts)
        self._module = tuple(module)
        self._setup = setup
        self._log = log

    def start(self, listening: Listening) -> None:
        """Start all of them; the driver reports those that do not connect. Raises DriverError."""
        # By their stdin, never over the network or on a command line: it contains keys.
        line = Joining(setup=self._setup, key=listening.key).model_dump_json().encode() + b"\n"
        each, total = self._setup.processes, self._setup.worker_processes
        for number in range(each, total):
            host = self._hosts[number // each]
            command = host.module(
                *self._module, WORKER, str(self._setup.listen), str(listening.port), str(number)
            )
            log = self._log.with_name(
                f"{self._log.stem}-{host.name}-{number % each + 1}{self._log.suffix}"
            )
            self.add(host, f"worker process {number + 1} of {total}", command, log, line)


class LocustModule(Record):
    """The driver's module with its arguments, as hosts run it; another one in tests."""

    module: tuple[str, ...] = ("weighbridge.drivers.locust",)


class LocustKind(DriverKind):
    """Locust runs the users; the native engine or the SDKs make the requests."""

    traits = DriverTraits(
        name="locust",
        label="Locust",
        tools={"locust-engine": "the engine", "locust-sdk": "the SDK driver"},
    )
    apis = ("swift", "s3")
    layers = ("gateway", "object-server")
    mark = ""
    spreads = True
    signs = True
    keeps_versions = True
    counts_stalls = True
    settles = True
    packages: ClassVar = ("locust", "boto3", "python-swiftclient", "gevent", "hdrhistogram")

    def unfit(self, workload: Workload, api: Api) -> tuple[str, ...]:
        """Object servers have no listings, and Swift no tags."""
        name = "object servers have" if api == "object-server" else f"the {api} API has"
        known: list[str] = [one for one in TRAITS if api in TRAITS[one].sent]
        if api == "object-server":
            known = ["read", "write", "delete", "head"]
        asked = {*workload.operations, *((VERSIONS,) if workload.versions else ())}
        unsupported = sorted(asked - {*known, *((VERSIONS,) if api != "object-server" else ())})
        faults = [f"{name} no {', '.join(unsupported)}"] if unsupported else []
        return tuple(faults)

    @contextmanager
    def opened(self, site: LoadSite) -> Iterator[OpenedDriver]:
        """The driver on the first client, and its worker processes on the others."""
        settings = site.settings_as(LocustModule) or LocustModule()
        hosts = site.clients
        names = tuple(client.name for client in hosts) if len(hosts) > 1 else ()
        setup = site.setup(
            Setup,
            # Only the engine can find objects on object servers.
            users="engine" if site.load_pass.api == "object-server" else site.suite.users,
            processes=site.suite.processes,
            clients=names,
            listen=hosts[0].address if names else None,
        )
        # The driver is ended first, so that it does not miss its worker processes.
        with (
            RemoteWorkers(hosts, settings.module, setup, site.log) as remote,
            site.process(*settings.module, look=remote.check) as driver,
        ):
            versions = dict(driver.setup(setup, remote.start).versions)
            if names:
                versions |= _spread(setup)
            yield OpenedDriver(driver, versions)
            driver.quit()


def _spread(setup: Setup) -> dict[str, str]:
    each = "a worker process" if setup.processes == 1 else f"{setup.processes} worker processes"
    return {
        "load made by": f"{len(setup.clients)} clients, {each} on each: {', '.join(setup.clients)}"
    }


KIND: Final = LocustKind()
