"""The `null` gateway: the engine's null target on one host, in place of a store."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, ClassVar

from pydantic import Field, SecretStr

from weighbridge.common.endpoint import Endpoint, ObjectApi, host_port
from weighbridge.common.host import Host, Service
from weighbridge.common.record import Record
from weighbridge.common.structure import Scope
from weighbridge.gateways import daemon
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.gateway import Gateway, HostNeed, RootImage, RunningGateway, Say
from weighbridge.gateways.running import RunningStore, StorePlan
from weighbridge.gateways.verify import OperationCheck, verify

_USER = "null:user"
_SERVICE = "null-target"
_REFUSED = "the null target refuses what is more than a complete object or a list (501)"
_IGNORED = "the null target ignores ranges and conditions"
_LACKS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("copy", "delete-many", "write-multipart", "read-part"), _REFUSED),
        **dict.fromkeys(("update-metadata", "tag", "versions"), _REFUSED),
        **dict.fromkeys(("read-range", "read-if-match", "read-if-none-match"), _IGNORED),
        **dict.fromkeys(("write-if-none-match", "rewrite-if-none-match"), _IGNORED),
    }
)


class NullPlacement(Record):
    """The host of the null target."""

    target: str
    """The host of the null target."""


class NullSettings(Record):
    """How the null target behaves."""

    port: Annotated[int, Field(ge=1, le=65535)] = 8080
    """Where it listens."""
    threads: Annotated[int, Field(ge=1, le=64)] = 1
    """Server threads."""
    delay_ms: Annotated[float, Field(ge=0, le=600_000)] = 0.0
    """Delay before each answer."""
    delay_spread: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Draw each delay evenly from `delay_ms` plus or minus this share: workers desynchronise."""
    fail_share: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share of requests answered with `fail_status`."""
    fail_status: Annotated[int, Field(ge=400, le=599)] = 503
    """Status of answers that fail on purpose."""
    stall_after_s: Annotated[float, Field(ge=0)] | None = None
    """Stall once, so many seconds after the first request; None: never."""
    stall_s: Annotated[float, Field(ge=0)] = 1.0
    """Length of the stall."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 2014
    """For delays and failures."""


def _delay(settings: NullSettings) -> str:
    if not settings.delay_spread:
        return f"{settings.delay_ms:g} ms"
    least_ms, most_ms = (settings.delay_ms * (1 + side * settings.delay_spread) for side in (-1, 1))
    return f"{least_ms:g} to {most_ms:g} ms, drawn by the seed,"


class RunningNull(RunningStore["Null"]):
    """The running null target."""

    def __init__(self, gateway: Null, host: Host, client: Host, say: Say) -> None:
        self._key = secrets.token_hex(16)
        super().__init__(gateway, {host.name: host}, client)
        base = f"http://{host_port(host.address, gateway.settings.port)}"
        self.endpoints = (
            Endpoint(api="swift", url=f"{base}/auth/v1.0", user=_USER, key=SecretStr(self._key)),
            Endpoint(api="s3", url=base, user=_USER, key=SecretStr(self._key)),
        )
        say(f"starting the null target on {host.name}")
        self.start(self.plan.daemons, say)
        self.describe(self.verify())

    def planned(self, gateway: Null) -> StorePlan[Null]:
        (host,) = self.hosts.values()
        command = host.module("weighbridge", *gateway.arguments(host.address))
        env = {**command.env, "WEIGHBRIDGE_NULL_KEY": self._key}
        service = Service(_SERVICE, command.argv, env)
        return StorePlan(gateway, [[Daemon(host, service, gateway.settings.port, reads=())]])

    def verify(self) -> tuple[OperationCheck, ...]:
        if self.plan.gateway.meant_to_fail:
            return ()
        with daemon.blaming(self.plan.daemons):
            return verify(self.client, self.endpoints, stores_bodies=False)

    def describe(self, checks: Sequence[OperationCheck]) -> None:
        verified = f"{len(checks)} operations over S3 and Swift, reads by length"
        if not checks:
            verified = "no: it is meant to fail or to stall"
        self.facts = MappingProxyType({**self.plan.gateway.facts(), "verified": verified})

    def settle(self) -> tuple[str, ...]:
        return ("null target: nothing is deferred",)

    def drop_caches(self) -> tuple[str, ...]:
        return ("null target: nothing is cached",)

    def daemons(self) -> tuple[Daemon, ...]:
        return ()


class Null(Gateway):
    """The engine's null target: stores no bodies, answers both APIs."""

    kind: ClassVar[str] = "null"
    releases: ClassVar[Mapping[str, RootImage]] = {
        "engine": RootImage(name="none", suite="none", packages=())
    }
    Placement: ClassVar[type[Record]] = NullPlacement
    Settings: ClassVar[type[Record]] = NullSettings

    def __init__(self, release: str, place: NullPlacement, settings: NullSettings) -> None:
        self.release = release
        self.place = place
        self.settings = settings

    def apis(self) -> tuple[ObjectApi, ...]:
        return ("swift", "s3")

    def operations_lacked(self, api: ObjectApi) -> Mapping[str, str]:
        return _LACKS

    def needs(self) -> Mapping[str, HostNeed]:
        return {self.place.target: HostNeed(roles=("null target",))}

    def preflight(self, hosts: Mapping[str, Host], say: Say) -> None:
        """The options were validated when the layout was read."""

    def bring_up(self, hosts: Mapping[str, Host], client: Host, say: Say) -> RunningGateway:
        return RunningNull(self, hosts[self.place.target], client, say)

    @classmethod
    def scope(cls, key: str) -> Scope:
        return "buckets" if key in NullSettings.model_fields and key != "port" else "cluster"

    @property
    def meant_to_fail(self) -> bool:
        return bool(self.settings.fail_share) or self.settings.stall_after_s is not None

    def facts(self) -> dict[str, str]:
        settings = self.settings
        return {
            "gateway": "null target: bodies are not stored, answers come from memory",
            "delay": f"{_delay(settings)} before each answer",
            "failures": f"{settings.fail_share:g} of the requests are answered with "
            f"{settings.fail_status}",
            "stall": "never"
            if settings.stall_after_s is None
            else f"{settings.stall_s:g} s, once, after {settings.stall_after_s:g} s",
            "threads": str(settings.threads),
        }

    def arguments(self, address: str) -> tuple[str, ...]:
        words = ["null-target", "--host", address, "--user", _USER]
        for name, value in self.settings:
            if value is not None:
                # The verb's options have the names of the settings, without the unit of seconds.
                words += [f"--{name.removesuffix('_s').replace('_', '-')}", str(value)]
        return tuple(words)
