"""Where COSBench is: the settings of its driver, and the first order that carries them."""

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

from weighbridge.common.plain_url import folder_or_ssh_place, without_query
from weighbridge.common.record import Record
from weighbridge.drivers.order import AgeBuckets, Cleanup, Prepare, Quit, Setup, Step

ConsoleUrl = Annotated[str, AfterValidator(without_query)]
SHIPPED_PASSWORD: Final = "cosbench"  # noqa: S105 - everybody knows it


class CosbenchSite(Record):
    """Where COSBench is: a controller that runs already, or an unpacked installation, which the
    driver starts and ends.

    Paths are those of the host that the driver runs on.
    """

    controller: ConsoleUrl | None = None
    """Such as http://host:19088/controller."""
    archive: Annotated[str, AfterValidator(folder_or_ssh_place)] | None = None
    """Where that controller's archive can be read: a folder, or ssh://USER@HOST/PATH; None: as
    `home` has it.
    """
    home: str | None = None
    """The folder of an installation."""
    drivers: tuple[ConsoleUrl, ...] = ()
    """Drivers of COSBench on other clients, which the controller that is started has do their share
    of the work.
    """
    user: str = "anonymous"
    password: SecretStr = SecretStr(SHIPPED_PASSWORD)
    """User and password of its console: those that it ships with."""
    auth: Literal["token", "swauth"] = "token"
    """How it gets at Swift: with a token and storage URL that the driver gets for each workload, or
    by asking auth itself.
    """

    @model_validator(mode="after")
    def _one(self) -> CosbenchSite:
        if (self.controller is None) == (self.home is None):
            raise ValueError(
                "COSBench is either a controller that runs or an installation to be started"
            )
        if self.drivers and self.home is None:
            raise ValueError("a controller that runs already has drivers of its own")
        if self.controller is not None and self.archive is None:
            raise ValueError("the archive of a controller must be told: results are read from it")
        return self

    @property
    def secrets(self) -> tuple[str, ...]:
        """What opens it; the password that it ships with opens it for everybody, and is a word of
        many texts.
        """
        password = self.password.get_secret_value()
        return () if password == SHIPPED_PASSWORD else (password,)

    @field_serializer("password", when_used="json")
    def _open(self, secret: SecretStr) -> str:
        return secret.get_secret_value()


class CosbenchSetup(Setup):
    """First order to COSBench's driver, which gives `request_timeout_s` to COSBench as `timeout` of
    its storage.
    """

    site: CosbenchSite

    @property
    def secrets(self) -> tuple[str, ...]:
        """All that opens anything, for who takes that out of texts."""
        return (*super().secrets, *self.site.secrets)


CosbenchOrder = Annotated[
    CosbenchSetup | Prepare | Step | Cleanup | AgeBuckets | Quit, Field(discriminator="kind")
]
COSBENCH_ORDER: Final[TypeAdapter[CosbenchOrder]] = TypeAdapter(CosbenchOrder)
