"""The `existing` gateway: endpoints of an RGW, Swift or any other store that already runs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, ClassVar, Final

from weighbridge.common import plain_xml
from weighbridge.common.endpoint import Endpoint, ObjectApi, singles
from weighbridge.common.errors import BucketsLeft, TargetError, VerificationFailed, name_buckets
from weighbridge.common.host import Host
from weighbridge.common.record import Record
from weighbridge.common.structure import CephPool, StoreLayer
from weighbridge.gateways.existing import credentials
from weighbridge.gateways.existing.clear import PATIENCE_S
from weighbridge.gateways.existing.credentials import source, with_new_keys
from weighbridge.gateways.existing.settings import ExistingPlacement, ExistingSettings
from weighbridge.gateways.gateway import Below, Gateway, HostNeed, RootImage, RunningGateway, Say
from weighbridge.gateways.program import run_with_endpoints
from weighbridge.gateways.verify import OperationFailed, verify

_LOOK_TIMEOUT_S = 150.0
_CLEAR_TIMEOUT_S = 24 * 3600.0
"""Deleting has no other deadline: each of its requests has one."""
_SERVER_FAILS = 500
_REFUSALS = (400, 401, 403)
"""Statuses that may be for the keys, or for the region that they are signed for."""


class RunningExisting(RunningGateway):
    """A gateway that runs elsewhere, reached from `client`; `pool` is for `rados bench`."""

    def __init__(
        self,
        client: Host,
        endpoints: Sequence[Endpoint],
        facts: Mapping[str, str],
        pool: CephPool | None = None,
    ) -> None:
        self._client = client
        self._pool = pool
        self.endpoints = tuple(endpoints)
        self.facts = MappingProxyType(dict(facts))

    def settle(self) -> tuple[str, ...]:
        return ("not settled: deferred work of a gateway that this suite did not start",)

    def drop_caches(self) -> tuple[str, ...]:
        return ("not dropped: caches of a gateway that this suite did not start",)

    def check(self) -> None:
        look(self._client, self.endpoints)

    def below(self) -> Below:
        return Below(pool=self._pool)

    def clear(self, buckets: Sequence[str], *, within_s: float | None = None) -> tuple[str, ...]:
        return clear(self._client, self.endpoints, buckets, within_s=within_s)


@dataclass(frozen=True)
class Seen:
    """What a single endpoint shows to anyone (see gateways.existing.look)."""

    endpoint: Endpoint
    shown: Mapping[str, Any]

    @property
    def fault(self) -> str:
        """Why it cannot be used: it does not answer, or answers with 5xx; empty if it can."""
        if "silent" in self.shown:
            return str(self.shown["silent"])
        status = self.shown["status"]
        if status < _SERVER_FAILS:
            return ""
        login = status == HTTPStatus.NETWORK_AUTHENTICATION_REQUIRED
        fails = "a network in between wants a login" if login else "it fails by itself; see its log"
        why = self.shown["limits"] or fails
        return f"answers with status {status}: {why}"


def look(client: Host, endpoints: Sequence[Endpoint]) -> tuple[Seen, ...]:
    """What each endpoint shows to anyone, in order, several of an API one by one.

    Raises TargetError when one cannot be used; with `drop_dead`, when none of its API can.
    """
    alone = singles(endpoints)
    output = run_with_endpoints(
        client,
        "weighbridge.gateways.existing.look",
        alone,
        {},
        timeout_s=_LOOK_TIMEOUT_S * max(1, len(alone) // len(endpoints)),
    )
    lines = output.splitlines()
    seen = tuple(Seen(one, json.loads(line)) for one, line in zip(alone, lines, strict=True))
    for one in seen:
        api = one.endpoint.api
        spared = one.endpoint.spreading.drop_dead and any(
            other.endpoint.api == api and not other.fault for other in seen
        )
        if one.fault and not spared:
            raise TargetError(f"{api} at {one.endpoint.url}: {one.fault}", advice=_remedy(one))
    return seen


def clear(
    client: Host,
    endpoints: Sequence[Endpoint],
    buckets: Sequence[str],
    *,
    within_s: float | None = None,
) -> tuple[str, ...]:
    """Delete buckets and their objects; returns in words what was deleted.

    Raises BucketsLeft that names each bucket that is left, or may be.
    """
    if not buckets:
        return ()
    order = {"buckets": list(buckets), "patience_s": PATIENCE_S}
    try:
        endpoints = tuple(with_new_keys(one) for one in endpoints)
        answer = json.loads(
            run_with_endpoints(
                client,
                "weighbridge.gateways.existing.clear",
                singles(endpoints),
                order,
                timeout_s=within_s or _CLEAR_TIMEOUT_S,
            )
        )
    except TargetError as error:
        # It ended without saying which buckets it had deleted.
        raise BucketsLeft(buckets, [f"{name_buckets(buckets)}: {error.message}"]) from error
    if answer["left"]:
        reasons: dict[str, list[str]] = {}
        for bucket, why in answer["left"].items():
            reasons.setdefault(why, []).append(bucket)
        lines = [f"{', '.join(names)}: {why}" for why, names in reasons.items()]
        raise BucketsLeft(tuple(answer["left"]), lines)
    return tuple(
        f"deleted the bucket {name}; objects left in it: {count}"
        for name, count in answer["deleted"].items()
    )


def facts(
    settings: ExistingSettings, endpoints: Sequence[Endpoint], seen: Sequence[Seen]
) -> dict[str, str]:
    """What is known, in words; most of what decides results is not."""
    found = {
        "gateway": f"{settings.about} (already running; not started by this suite)",
        "caches": "not dropped, even if the suite says so: they are out of reach",
        "deferred work": "not settled between steps: it is out of reach",
        "hosts": "unknown: their limits, and what else runs on them",
    }
    for endpoint in endpoints:
        part = settings.s3 if endpoint.api == "s3" else settings.swift
        mine = [one for one in seen if one.endpoint.api == endpoint.api]
        shown = [one.shown for one in mine if not one.fault]
        found[f"{endpoint.api}: endpoint"] = ", ".join(one.endpoint.url for one in mine)
        found[f"{endpoint.api}: server"] = _each(one["server"] or "does not say" for one in shown)
        found[f"{endpoint.api}: tls"] = _each(one["tls"] or "none: plain HTTP" for one in shown)
        if named := [text for one in shown if (text := _address_words(endpoint, one))]:
            found[f"{endpoint.api}: addresses"] = _each(named)
        if dead := [f"{one.endpoint.url}: {one.fault}" for one in mine if one.fault]:
            found[f"{endpoint.api}: dead"] = "; ".join(dead)
        if part is not None:
            found[f"{endpoint.api}: credentials"] = f"from {source(part)}"
        if endpoint.api == "s3":
            virtual = endpoint.addressing == "virtual"
            words = "virtual hosts (bucket.host)" if virtual else "path style (host/bucket)"
            found["s3: addressing"] = words
    return found


def _each(texts: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(texts))


def _address_words(endpoint: Endpoint, shown: Mapping[str, Any]) -> str:
    addresses = [str(one) for one in shown.get("addresses", ())]
    if not addresses:
        return ""
    which = "each gets requests" if endpoint.addresses == "all" else "one gets all requests"
    return ", ".join(addresses) + (f" ({which})" if len(addresses) > 1 else "")


def _remedy(seen: Seen) -> str:
    endpoint, lines = seen.endpoint, []
    if endpoint.addressing == "virtual":
        lines.append("With `addressing: virtual` all names below it must resolve (wildcard DNS).")
    if "its certificate" in seen.fault:
        authorities = endpoint.ca_file or "those that this machine trusts (`ca_file` names others)"
        lines.append(f"CA certificates: {authorities}.")
    return "\n".join(lines)


_CLEARED_S = 10.0
"""Time to delete the two objects of a verification and their bucket."""
_MAKES_NONE: Final = "no pools, images or file systems are made in a cluster that already runs"
_NO_LAYER: Final[Mapping[str, str]] = {
    "osd": "the OSDs' own benchmark is not run on a cluster that already runs",
    "rados": "the layout names no pool for it (settings: ceph)",
    "object-server": "the rings of a cluster that already runs are not known",
    "gateway": "an endpoint is measured as it is: give one behind its front its own layout",
    "rbd": _MAKES_NONE,
    "cephfs": _MAKES_NONE,
}
"""Why layers are not measured."""


class Existing(Gateway):
    """A gateway that this suite neither starts nor stops.

    A run creates buckets with unique names in it, which are deleted at the end.
    """

    kind: ClassVar[str] = "existing"
    already_runs: ClassVar[bool] = True
    releases: ClassVar[Mapping[str, RootImage]] = {
        "any": RootImage(name="none", suite="none", packages=())
    }
    Placement: ClassVar[type[Record]] = ExistingPlacement
    Settings: ClassVar[type[Record]] = ExistingSettings
    settings: ExistingSettings

    def __init__(self, release: str, place: Record, settings: Record) -> None:
        assert isinstance(settings, ExistingSettings)  # noqa: S101 - the interface's contract
        self.release = release
        self.settings = settings
        self.pool = settings.ceph

    def apis(self) -> tuple[ObjectApi, ...]:
        given: Mapping[ObjectApi, object] = {"swift": self.settings.swift, "s3": self.settings.s3}
        return tuple(api for api, part in given.items() if part is not None)

    @property
    def own_ca(self) -> bool:
        s3 = self.settings.s3 and credentials.with_profile(self.settings.s3, os.environ)
        parts = (self.settings.swift, s3)
        return any(part is not None and part.ca_file is not None for part in parts)

    def spreads(self) -> bool:
        return self.settings.spreads

    def keys_end_at(self) -> datetime | None:
        found = credentials.endpoints(self.settings, os.environ)
        ends = [one.keys_end_at for one in found if one.keys_end_at and one.key_source is None]
        return min(ends, default=None)

    def layers(self) -> tuple[StoreLayer, ...]:
        return () if self.pool is None else ("rados",)

    def no_layer(self, layer: str) -> str:
        return _NO_LAYER.get(layer, super().no_layer(layer))

    def needs(self) -> Mapping[str, HostNeed]:
        return {}

    def preflight(self, hosts: Mapping[str, Host], say: Say) -> None:
        for client in hosts.values():
            self.bring_up(hosts, client, say)

    def bring_up(self, hosts: Mapping[str, Host], client: Host, say: Say) -> RunningGateway:
        endpoints = credentials.endpoints(self.settings, os.environ)
        say(f"looking at {', '.join(one.url for one in singles(endpoints))}")
        seen = look(client, endpoints)
        found = facts(self.settings, endpoints, seen)
        answering = tuple(one.endpoint for one in seen if not one.fault)
        checks = self._verified(client, answering, say)
        apis = " and ".join(one.api for one in endpoints)
        found["verified"] = f"{checks} operations over {apis}, reads byte for byte"
        return RunningExisting(client, endpoints, found, self.pool)

    def _verified(self, client: Host, endpoints: tuple[Endpoint, ...], say: Say) -> int:
        bucket = f"wb-check-{os.urandom(8).hex()}"
        try:
            return len(verify(client, endpoints, bucket=bucket))
        except OperationFailed as error:
            if not error.nothing_created:
                self._clear(client, endpoints, bucket, say)
            advice = self._advice(error, endpoints)
            raise VerificationFailed(error.message, advice=advice) from error
        except BaseException as error:
            self._clear(client, endpoints, bucket, say, ended=error)
            raise

    @staticmethod
    def _clear(
        client: Host,
        endpoints: tuple[Endpoint, ...],
        bucket: str,
        say: Say,
        ended: BaseException | None = None,
    ) -> None:
        try:
            for text in clear(client, endpoints, [bucket], within_s=_CLEARED_S):
                say(text)
        except BucketsLeft as left:
            say(str(left))
            if ended is not None:
                ended.add_note(left.words)
        except BaseException as interrupted:
            interrupted.add_note(BucketsLeft([bucket], ()).words)
            raise

    def _advice(self, failed: OperationFailed, endpoints: tuple[Endpoint, ...]) -> str:
        remedied = any(f"\n{code}" in failed.message for code in plain_xml.REMEDIES)
        if failed.skewed or remedied or failed.status not in _REFUSALS:
            return ""
        swift = self.settings.swift
        logged_in = swift is not None and swift.token_env is None and failed.operation != "auth"
        if logged_in and (failed.api, failed.status) == ("swift", HTTPStatus.UNAUTHORIZED):
            return "The login is right: that store asks another service, or none, about its tokens."
        part = self.settings.s3 if failed.api == "s3" else swift
        assert part is not None  # noqa: S101 - the endpoint was made from it
        used = f"The request used the credentials of {credentials.source(part)}"
        if failed.api == "s3":
            region = next(endpoint.region for endpoint in endpoints if endpoint.api == "s3")
            used += f", signed for the region {region}"
        return f"{used}: check them."
