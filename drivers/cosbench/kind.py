"""The COSBench driver as a DriverKind."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click
from pydantic import ValidationError

from weighbridge.common.bounded_http import without_query
from weighbridge.common.credential import folder_or_ssh_place
from weighbridge.common.errors import DriverError, UsageError
from weighbridge.common.paths import IMPORTED_FROM
from weighbridge.drivers.cosbench import installation
from weighbridge.drivers.cosbench.remote_drivers import RemoteDrivers
from weighbridge.drivers.cosbench.script import unfit
from weighbridge.drivers.cosbench.site import CosbenchSetup, CosbenchSite
from weighbridge.drivers.kind import DriverKind, LoadSite, OpenedDriver
from weighbridge.results.run.step import Caveat, DriverTraits
from weighbridge.suites import Api, Workload

MODULE: Final = "weighbridge.drivers.cosbench"
WANTED: Final = (
    "Give --cosbench and --cosbench-archive, or set COSBENCH_HOME to the folder of an installation."
)

IN_ENVIRONMENT: Final = (
    "Set $COSBENCH_USER and $COSBENCH_PASSWORD to the user and password of its console."
)
BY_KEY: Final = "ssh authenticates by a key of ~/.ssh or of its agent."


def _shown(check: Callable[[str], str], head: str, advice: str) -> Callable[..., str | None]:
    """The callback of an option in reports: without credentials. `check` raises ValueError."""

    def checked(
        _context: click.Context, _parameter: click.Parameter, value: str | None
    ) -> str | None:
        try:
            return None if value is None else check(value)
        except ValueError as error:
            raise UsageError(f"{head} {error}", advice=advice) from None

    return checked


class CosbenchKind(DriverKind):
    """The real COSBench 0.4.2."""

    traits = DriverTraits(
        name="cosbench",
        label="COSBench",
        rounding_us=1000,
        # It counts requests that both start and end inside its window.
        uncounted_requests=2,
        caveats=(
            Caveat(
                text="COSBench counts whole milliseconds and rounds down: its means are low by 0.5 "
                "ms on average, and by 1 ms at most"
            ),
            Caveat(
                text="Locust counts requests that end inside its window, COSBench only those that "
                "also start there: up to one request a worker fewer"
            ),
            Caveat(
                api="swift",
                text=(
                    "COSBench’s swift storage checks its connection for 1 ms before every "
                    "request, and counts that as latency: a worker makes at most about 900 "
                    "requests a second, and much of a fast request’s time is that check"
                ),
            ),
            Caveat(
                fact="rgw_frontends",
                like=r"^(?=.*beast)(?!.*tcp_nodelay=1)",
                text="beast without tcp_nodelay delays parts of answers by up to 40 ms with "
                "COSBench’s client, and hardly with Locust’s engine",
            ),
        ),
    )
    apis = ("swift", "s3")
    mark = "c"
    first_bucket = 1
    takes_ca_file = False
    sized_at_start = True
    options = (
        click.Option(
            ["--cosbench"],
            metavar="URL",
            callback=_shown(without_query, "--cosbench: the URL", IN_ENVIRONMENT),
            help="A running COSBench controller, http://HOST:19088/controller (default: "
            "$COSBENCH_HOME).",
        ),
        click.Option(
            ["--cosbench-archive"],
            metavar="DIR",
            callback=_shown(folder_or_ssh_place, "--cosbench-archive:", BY_KEY),
            help="Where that controller's archive can be read: a folder, or ssh://USER@HOST/DIR.",
        ),
    )

    def settings(self, given: Mapping[str, object], hidden: Collection[str]) -> CosbenchSite:
        """Where COSBench is: from the options, or else the installation in $COSBENCH_HOME."""
        controller, archive = given.get("cosbench"), given.get("cosbench_archive")
        home = os.environ.get("COSBENCH_HOME") if controller is None else None
        user = {
            name: value
            for name in ("user", "password", "auth")
            if (value := os.environ.get(f"COSBENCH_{name.upper()}"))
        }
        if home is not None:
            installation.check(Path(home))
            _check_visible(Path(home), hidden)
        try:
            return CosbenchSite.model_validate(
                {"controller": controller, "archive": archive, "home": home, **user}
            )
        except ValidationError as error:
            message = error.errors(include_url=False, include_input=False)[0]["msg"]
            raise UsageError(message.removeprefix("Value error, "), advice=WANTED) from None

    def unfit(self, workload: Workload, api: Api) -> tuple[str, ...]:
        return unfit(workload, api)

    @contextmanager
    def opened(self, site: LoadSite) -> Iterator[OpenedDriver]:
        """The driver on the first client, with its controller; an installation starts on each."""
        cosbench = site.settings_as(CosbenchSite)
        if cosbench is None:
            raise DriverError("it is not known where COSBench is", advice=WANTED)
        others = site.clients[1:] if cosbench.home is not None else ()
        with RemoteDrivers(others, site.log) as remote:
            if cosbench.home is not None:
                cosbench = cosbench.model_copy(update={"drivers": remote.start(cosbench.home)})
            with site.process(MODULE, look=remote.check) as driver:
                setup = site.setup(CosbenchSetup, site=cosbench)
                yield OpenedDriver(driver, driver.setup(setup).versions)
                driver.quit()


def _check_visible(home: Path, hidden: Collection[str]) -> None:
    """Raise UsageError for a folder that client hosts do not see, by its path or by its links."""
    real = home.resolve()
    if any(real.is_relative_to(seen) for seen in (IMPORTED_FROM, Path(sys.prefix))):
        return  # clients see this project wherever it is
    for own in hidden:
        if real.is_relative_to(own) or home.absolute().is_relative_to(own):
            leads = "" if real == home.absolute() else f", which is {real},"
            raise UsageError(
                f"COSBENCH_HOME is {home}{leads} and client hosts of the lab do not see it: they "
                f"have their own {own}",
                advice="Move COSBench to a folder outside of "
                + ", ".join(hidden)
                + ", such as /opt/cosbench.",
            )


KIND: Final = CosbenchKind()
