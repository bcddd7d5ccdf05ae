"""The `null` gateway: the engine's null target on one host, instead of a store."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal

from pydantic import Field, SecretStr

from gateways import daemon, program
from gateways.daemon import Daemon
from gateways.gateway import Endpoint, Gateway, HostNeed, Image, Rendered, Say, Site, Standing
from gateways.host import Host, Service
from gateways.ports import await_ports
from gateways.verify import verify
from ground.record import Record

_USER = "null:user"


class Place(Record):
    """Where the null target sits."""

    target: str


class Settings(Record):
    """How the null target behaves."""

    port: Annotated[int, Field(ge=1, le=65535)] = 8080
    threads: Annotated[int, Field(ge=1, le=64)] = 1
    delay_ms: Annotated[float, Field(ge=0, le=600_000)] = 0.0
    """Wait before each answer."""
    fail_share: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share of requests answered with `fail_status`."""
    fail_status: Annotated[int, Field(ge=400, le=599)] = 503
    stall_after_s: Annotated[float, Field(ge=0)] | None = None
    """Stall once, so many seconds after the first request; None: never."""
    stall_s: Annotated[float, Field(ge=0)] = 1.0
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 2014


class NullStanding(Standing):
    """The null target, listening."""

    def __init__(self, target: Daemon, endpoints: Sequence[Endpoint], facts: Mapping[str, str]) -> None:
        self._target = target
        self.endpoints = tuple(endpoints)
        self.facts = MappingProxyType(dict(facts))
        self.rendered: tuple[Rendered, ...] = ()

    def settle(self) -> tuple[str, ...]:
        """Nothing is deferred."""
        return ("null target: nothing is deferred",)

    def drop_caches(self) -> tuple[str, ...]:
        """Nothing is cached."""
        return ("null target: nothing is cached",)

    def check(self) -> None:
        """Raise ServiceFailed when the null target has died."""
        self._target.check()


class Null(Gateway):
    """The engine's null target: stores no bodies, answers both APIs."""

    kind: ClassVar[str] = "null"
    releases: ClassVar[Mapping[str, Image]] = {"engine": Image(name="none", suite="none", packages=())}
    Placement: ClassVar[type[Record]] = Place
    Settings: ClassVar[type[Record]] = Settings

    def __init__(self, release: str, place: Record, settings: Record) -> None:
        assert isinstance(place, Place)  # noqa: S101 - the seam's contract
        assert isinstance(settings, Settings)  # noqa: S101
        self.release = release
        self.place = place
        self.settings = settings

    def apis(self) -> tuple[Literal["swift", "s3"], ...]:
        """Both."""
        return ("swift", "s3")

    def needs(self) -> Mapping[str, HostNeed]:
        """One host, no disk."""
        return {self.place.target: HostNeed(roles=("null target",))}

    def render(self, sites: Mapping[str, Site]) -> tuple[Rendered, ...]:
        """It has no configuration files."""
        return ()

    def preflight(self, hosts: Mapping[str, Host], say: Say) -> None:
        """Its options are the suite's own, checked when the layout was read."""

    def bring_up(self, hosts: Mapping[str, Host], client: Host, say: Say) -> Standing:
        """Start the null target and, unless it is to fail or stall on purpose, verify it."""
        host, settings = hosts[self.place.target], self.settings
        key = secrets.token_hex(16)
        service = Service("null-target", self._argv(host.address), {**program.environment(), "WEIGHBRIDGE_NULL_KEY": key})
        target = Daemon(host, service, settings.port)
        say(f"starting the null target on {host.name}")
        daemon.start([target])
        await_ports(client, [target], say)
        base = f"http://{host.address}:{settings.port}"
        endpoints = (
            Endpoint(api="swift", url=f"{base}/auth/v1.0", user=_USER, key=SecretStr(key)),
            Endpoint(api="s3", url=base, user=_USER, key=SecretStr(key)),
        )
        facts = {
            "gateway": "null target: bodies are not stored, answers come from memory",
            "delay": f"{settings.delay_ms:g} ms before each answer",
            "failures": f"{settings.fail_share:g} of the requests are answered with {settings.fail_status}",
            "stall": "never"
            if settings.stall_after_s is None
            else f"{settings.stall_s:g} s, once, after {settings.stall_after_s:g} s",
            "threads": str(settings.threads),
        }
        if settings.fail_share or settings.stall_after_s is not None:
            facts["verified"] = "no: it is to fail or to stall"
        else:
            with daemon.blaming([target]):
                checks = verify(client, endpoints, stores_bodies=False)
            facts["verified"] = f"{len(checks)} operations over S3 and Swift, reads by length"
        return NullStanding(target, endpoints, facts)

    def _argv(self, address: str) -> tuple[str, ...]:
        settings = self.settings
        options: dict[str, object] = {
            "--host": address,
            "--port": settings.port,
            "--threads": settings.threads,
            "--delay-ms": settings.delay_ms,
            "--fail-share": settings.fail_share,
            "--fail-status": settings.fail_status,
            "--stall": settings.stall_s,
            "--seed": settings.seed,
            "--user": _USER,
        }
        if settings.stall_after_s is not None:
            options["--stall-after"] = settings.stall_after_s
        return program.argv("weighbridge", "null-target", *(str(word) for option in options.items() for word in option))
