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
    """How long HAProxy waits.

    Each counts silence, not the length of a transfer (HAProxy's configuration manual, `timeout`).
    """

    connect: Wait = 5.0
    """For a connection to a backend; an attempt more is made after it."""
    client: Wait = 600.0
    """For a silent client, between requests too: workers may think, and nothing of the front's own
    is to end a connection.
    """
    server: Wait = 600.0
    """For a silent backend.

    A store at its limit may take minutes to acknowledge a large PUT, and must not be cut short
    here.
    """
    queue: Wait = 600.0
    """For a place at a backend, where `maxconn` of servers makes requests queue.

    HAProxy's default is `connect`.
    """


class HaproxySettings(FrontSettings):
    """HAProxy, where a layout places one.

    Where nothing else is said, a default is HAProxy's own, written out.
    """

    balance: Annotated[str, Field(pattern=r"^\S(.*\S)?$"), AfterValidator(config_line)] = (
        "roundrobin"
    )
    """How backends are chosen: roundrobin, leastconn, source, random, or any other algorithm
    HAProxy has.
    """
    maxconn: Count = 4096
    """Connections of clients at once; at least twice the workers.

    HAProxy's own default depends on ulimit.
    """
    threads: Count = 1
    """nbthread: as many as the host has CPUs.

    HAProxy's own default counts the CPUs of the machine, not what the host may use.
    """
    http_reuse: Literal["never", "safe", "aggressive", "always"] = "safe"
    """When a connection to a backend may serve another client.

    With `always` a request that meets a backend's closing fails.
    """
    retries: Annotated[int, Field(ge=0)] = 3
    """Attempts more to connect to a backend, the last of them to another one (`option redispatch`);
    requests are not repeated.
    """
    bufsize: Annotated[Bytes, Field(ge=1024, le=16 * 2**20)] = 16384
    """tune.bufsize, two a connection; 64 KiB spares system calls with large objects."""
    timeouts: Timeouts = Timeouts()
    health_path: Annotated[str, Field(pattern=r"^/\S*$"), AfterValidator(config_line)] | None = None
    """What backends are asked for to see whether they live; None: what the gateway behind has for
    it.
    """
    health_interval: Wait = 2.0
    """Time between two health checks of a backend.

    Three that fail take it out, two that pass put it back.
    """
    options: dict[Section, tuple[Line, ...]] = Field(default_factory=dict)
    """More lines of HAProxy's configuration by section, such as `{backend: [option
    http-no-delay]}`; checked by `haproxy -c`.
    """

    @field_validator("options", mode="before")
    @classmethod
    def _lists(cls, options: object) -> object:
        # A single line may stand by itself: a tuning sets one value at a time.
        if not isinstance(options, dict):
            return options
        return {
            section: (lines,) if isinstance(lines, str) else lines
            for section, lines in options.items()
        }
