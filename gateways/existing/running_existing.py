"""A gateway that already runs and has been verified, and what is known about it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from weighbridge.common.ceph_pool import CephPool
from weighbridge.common.endpoint import Endpoint, singles
from weighbridge.common.errors import BucketsLeft, TargetError, name_buckets
from weighbridge.common.host import Host
from weighbridge.gateways.below import Below
from weighbridge.gateways.endpoint_program import run_with_endpoints, without_secrets
from weighbridge.gateways.existing.credentials import source, with_new_keys
from weighbridge.gateways.existing.settings import ExistingSettings
from weighbridge.gateways.gateway import Rendered, RunningGateway

_LOOK_TIMEOUT_S = 150.0
_CLEAR_TIMEOUT_S = 24 * 3600.0
"""Deleting has no other deadline: each of its requests has one."""
_EMPTY_WITHIN_S = 20.0
_SERVER_FAILS = 500


class RunningExisting(RunningGateway):
    """A gateway that runs elsewhere and is reached from `client`; `pool` is its cluster's, for
    `rados bench`.
    """

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
        self.rendered: tuple[Rendered, ...] = ()

    def settle(self) -> tuple[str, ...]:
        """Its daemons are out of reach."""
        return ("not settled: deferred work of a gateway that this suite did not start",)

    def drop_caches(self) -> tuple[str, ...]:
        """Its hosts are out of reach."""
        return ("not dropped: caches of a gateway that this suite did not start",)

    def check(self) -> None:
        look(self._client, self.endpoints)

    def below(self) -> Below:
        return Below(pool=self._pool)

    def clear(self, buckets: Sequence[str], *, within_s: float | None = None) -> tuple[str, ...]:
        """Delete these buckets over each of its endpoints; see RunningGateway."""
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
        return f"answers with status {status}" if status >= _SERVER_FAILS else ""


def look(
    client: Host,
    endpoints: Sequence[Endpoint],
    *,
    within_s: float | None = None,
    any_will_do: bool = False,
) -> tuple[Seen, ...]:
    """What each endpoint shows to anyone, in order, several of an API one by one.

    Raises TargetError when one cannot be used; with `drop_dead` or `any_will_do`, when none of its
    API can.
    """
    alone = singles(endpoints)
    output = run_with_endpoints(
        client,
        "weighbridge.gateways.existing.look",
        alone,
        {},
        timeout_s=within_s or _LOOK_TIMEOUT_S * max(1, len(alone) // len(endpoints)),
    )
    lines = output.splitlines()
    seen = tuple(Seen(one, json.loads(line)) for one, line in zip(alone, lines, strict=True))
    for one in seen:
        api = one.endpoint.api
        spared = (any_will_do or one.endpoint.spreading.drop_dead) and any(
            other.endpoint.api == api and not other.fault for other in seen
        )
        if one.fault and not spared:
            raise TargetError(
                f"{api} at {one.endpoint.url}: {one.fault}", advice=_remedy(one.endpoint)
            )
    return seen


def _answering(
    client: Host, endpoints: Sequence[Endpoint], within_s: float | None
) -> tuple[Endpoint, ...]:
    """One endpoint of each API: of several the first that can be used. Raises TargetError."""
    if all(not endpoint.others for endpoint in endpoints):
        return tuple(endpoints)
    found: dict[str, Endpoint] = {}
    for one in look(client, endpoints, within_s=within_s, any_will_do=True):
        if not one.fault:
            found.setdefault(one.endpoint.api, one.endpoint)
    return tuple(found.values())


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
    order = {"buckets": list(buckets), "patience_s": _EMPTY_WITHIN_S}
    try:
        endpoints = tuple(with_new_keys(one) for one in endpoints)
        answer = json.loads(
            run_with_endpoints(
                client,
                "weighbridge.gateways.existing.clear",
                _answering(client, endpoints, within_s),
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
            reasons.setdefault(without_secrets(why, endpoints), []).append(bucket)
        lines = [f"{', '.join(names)}: {why}" for why, names in reasons.items()]
        raise BucketsLeft(tuple(answer["left"]), lines)
    return tuple(
        f"deleted the bucket {name} and the {count} objects left in it"
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
            found["s3: addressing"] = (
                "virtual hosts (bucket.host)"
                if endpoint.addressing == "virtual"
                else "path style (host/bucket)"
            )
    return found


def _each(texts: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(texts))


def _address_words(endpoint: Endpoint, shown: Mapping[str, Any]) -> str:
    """The addresses of a name, and which of them get requests; empty for an address."""
    addresses = [str(one) for one in shown.get("addresses", ())]
    if not addresses:
        return ""
    which = "each gets requests" if endpoint.addresses == "all" else "one gets all requests"
    return ", ".join(addresses) + (f" ({which})" if len(addresses) > 1 else "")


def _remedy(endpoint: Endpoint) -> str:
    lines = ["It runs outside this suite: check it there."]
    if endpoint.addressing == "virtual":
        lines.append(
            "With `addressing: virtual` every name below the endpoint's host name must resolve "
            "(wildcard DNS)."
        )
    if endpoint.url.startswith("https:"):
        authorities = endpoint.ca_file or "those that this machine trusts (`ca_file` names others)"
        lines.append(f"CA certificates: {authorities}.")
    return "\n".join(lines)
