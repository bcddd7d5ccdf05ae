"""Where COSBench is: the settings of its driver, and the Setup that has them."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import (
    AfterValidator,
    Field,
    SecretStr,
    TypeAdapter,
    field_serializer,
    model_validator,
)

from weighbridge.common.bounded_http import without_query
from weighbridge.common.credential import folder_or_ssh_place
from weighbridge.common.record import Record
from weighbridge.drivers.protocol import AgeBuckets, Cleanup, Prepare, Quit, Setup, Step

ConsoleUrl = Annotated[str, AfterValidator(without_query)]
SHIPPED_PASSWORD: Final = "cosbench"  # noqa: S105 - it is public


class CosbenchSite(Record):
    """Where COSBench is: a running controller, or an unpacked installation that the driver starts.

    Paths are those of the driver's host.
    """

    controller: ConsoleUrl | None = None
    """Such as http://host:19088/controller."""
    archive: Annotated[str, AfterValidator(folder_or_ssh_place)] | None = None
    """The readable archive of the controller: a folder, or ssh://USER@HOST/PATH; None: that of
    `home`.
    """
    home: str | None = None
    """The folder of an installation."""
    drivers: tuple[ConsoleUrl, ...] = ()
    """COSBench's drivers on other clients, for the controller that is started."""
    user: str = "anonymous"
    password: SecretStr = SecretStr(SHIPPED_PASSWORD)
    """User and password of its console: by default those it ships with."""
    auth: Literal["token", "swauth"] = "token"
    """How it authenticates at Swift: with a new token and storage URL for each workload, or by
    itself.
    """

    @model_validator(mode="after")
    def _is_consistent(self) -> CosbenchSite:
        if (self.controller is None) == (self.home is None):
            raise ValueError(
                "COSBench is either a running controller or an installation to be started"
            )
        if self.drivers and self.home is None:
            raise ValueError("a running controller already has its own drivers")
        if self.controller is not None and self.archive is None:
            raise ValueError("the archive of a controller must be given: it has the results")
        return self

    @property
    def secrets(self) -> tuple[str, ...]:
        """Its password, unless it is the one it ships with: that is public, and a common word."""
        password = self.password.get_secret_value()
        return () if password == SHIPPED_PASSWORD else (password,)

    @field_serializer("password", when_used="json")
    def _open(self, secret: SecretStr) -> str:
        return secret.get_secret_value()


class CosbenchSetup(Setup):
    """The first command to COSBench's driver; `request_timeout_s` is its storage's `timeout`."""

    site: CosbenchSite

    @property
    def secrets(self) -> tuple[str, ...]:
        return (*super().secrets, *self.site.secrets)


CosbenchCommand = Annotated[
    CosbenchSetup | Prepare | Step | Cleanup | AgeBuckets | Quit, Field(discriminator="kind")
]
COSBENCH_COMMAND: Final[TypeAdapter[CosbenchCommand]] = TypeAdapter(CosbenchCommand)
