"""Settings of HAProxy."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator

from weighbridge.common.quantities import Bytes, Seconds
from weighbridge.common.record import Record
from weighbridge.gateways.config_text import Line, config_line
from weighbridge.gateways.front import FrontSettings

Count = Annotated[int, Field(ge=1)]
Wait = Annotated[Seconds, Field(ge=0.001)]
Section = Literal["global", "defaults", "frontend", "backend"]


class Timeouts(Record):
    """HAProxy's timeouts: of silence, not of a transfer (HAProxy's configuration manual)."""

    connect: Wait = 5.0
    """For a connection to a backend; one more attempt is made after it."""
    client: Wait = 600.0
    """For a silent client, also between requests: workers may pause, and the front must not close
    their connections.
    """
    server: Wait = 600.0
    """For a silent backend: a store at its limit may take minutes to acknowledge a large PUT."""
    queue: Wait = 600.0
    """For a request queued at a backend whose servers have `maxconn`. HAProxy's default: `connect`.
    """


class HaproxySettings(FrontSettings):
    """HAProxy's settings. Unless documented otherwise, defaults are HAProxy's own, written out."""

    balance: Annotated[str, Field(pattern=r"^\S(.*\S)?$"), AfterValidator(config_line)] = (
        "roundrobin"
    )
    """Load balancing: roundrobin, leastconn, source, random or any other algorithm of HAProxy."""
    maxconn: Count = 4096
    """Client connections, at least twice the workers; unless given, 1024 per CPU of its host, and
    this at least. HAProxy's own default depends on ulimit.
    """
    threads: Count = 1
    """nbthread; unless given, the CPUs of its host. HAProxy would count the machine's, whatever the
    host's limit.
    """
    http_reuse: Literal["never", "safe", "aggressive", "always"] = "safe"
    """When a backend connection may serve another client.

    With `always` a request fails if the backend closes the connection at that moment.
    """
    retries: Annotated[int, Field(ge=0)] = 3
    """Retries to connect, the last to another backend (`option redispatch`), never of a request."""
    bufsize: Annotated[Bytes, Field(ge=1024, le=16 * 2**20)] = 16384
    """tune.bufsize, two a connection; 64 KiB spares system calls with large objects."""
    timeouts: Timeouts = Timeouts()
    health_path: Annotated[str, Field(pattern=r"^/\S*$"), AfterValidator(config_line)] | None = None
    """Path for health checks of backends; None: the one of the gateway behind."""
    health_interval: Wait = 2.0
    """Interval of health checks; three failed ones take a backend out, two passed put it back."""
    options: dict[Section, tuple[Line, ...]] = Field(default_factory=dict)
    """More lines of HAProxy's configuration by section, such as `{backend: [option
    http-no-delay]}`; `haproxy -c` checks them.
    """

    @field_validator("options", mode="before")
    @classmethod
    def _lists(cls, options: object) -> object:
        # A single line needs no list: a tuning sets one value at a time.
        if not isinstance(options, dict):
            return options
        return {
            section: (lines,) if isinstance(lines, str) else lines
            for section, lines in options.items()
        }
