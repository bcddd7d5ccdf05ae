"""A gateway that already runs and has been verified, and what is known about it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import TargetError
from weighbridge.common.host import Host
from weighbridge.gateways.endpoint_program import run_with_endpoints, without_secrets
from weighbridge.gateways.existing.credentials import source
from weighbridge.gateways.existing.settings import ExistingSettings
from weighbridge.gateways.gateway import Rendered, RunningGateway

_LOOK_TIMEOUT_S = 150.0
_CLEAR_TIMEOUT_S = 24 * 3600.0
"""Deleting has no other deadline: each of its requests has one."""
_EMPTY_WITHIN_S = 20.0
_SERVER_FAILS = 500


class RunningExisting(RunningGateway):
    """A gateway that runs elsewhere and is reached from `client`."""

    def __init__(
        self, client: Host, endpoints: Sequence[Endpoint], facts: Mapping[str, str]
    ) -> None:
        self._client = client
        self.endpoints = tuple(endpoints)
        self.facts = MappingProxyType(dict(facts))
        self.rendered: tuple[Rendered, ...] = ()

    def settle(self) -> tuple[str, ...]:
        """Its daemons are out of reach."""
        return ("not settled: deferred work of a gateway that is not this suite's",)

    def drop_caches(self) -> tuple[str, ...]:
        """Its hosts are out of reach."""
        return ("not dropped: caches of a gateway that is not this suite's",)

    def check(self) -> None:
        """Raise TargetError when one of its endpoints does not answer."""
        look(self._client, self.endpoints)

    def clear(self, buckets: Sequence[str]) -> tuple[str, ...]:
        """Delete these buckets over each of its endpoints; see RunningGateway."""
        return clear(self._client, self.endpoints, buckets)


def look(client: Host, endpoints: Sequence[Endpoint]) -> list[dict[str, Any]]:
    """What each endpoint shows to anyone (see gateways.existing.look).

    Raises TargetError when one does not answer, or answers with 5xx.
    """
    output = run_with_endpoints(
        client, "weighbridge.gateways.existing.look", endpoints, {}, timeout_s=_LOOK_TIMEOUT_S
    )
    seen: list[dict[str, Any]] = [json.loads(line) for line in output.splitlines()]
    for endpoint, one in zip(endpoints, seen, strict=True):
        fault = one.get("silent") or (
            f"answers with status {one['status']}" if one["status"] >= _SERVER_FAILS else ""
        )
        if fault:
            raise TargetError(
                f"{endpoint.api} at {endpoint.url}: {fault}", advice=_remedy(endpoint)
            )
    return seen


def clear(client: Host, endpoints: Sequence[Endpoint], buckets: Sequence[str]) -> tuple[str, ...]:
    """Delete buckets and their objects; returns in words what was deleted.

    Raises TargetError that names each bucket that is left, or may be; CommandFailed.
    """
    order = {"buckets": list(buckets), "patience_s": _EMPTY_WITHIN_S}
    answer = json.loads(
        run_with_endpoints(
            client,
            "weighbridge.gateways.existing.clear",
            endpoints,
            order,
            timeout_s=_CLEAR_TIMEOUT_S,
        )
    )
    if answer["left"]:
        reasons: dict[str, list[str]] = {}
        for bucket, why in answer["left"].items():
            reasons.setdefault(without_secrets(why, endpoints), []).append(bucket)
        lines = [f"  {', '.join(names)}: {why}" for why, names in reasons.items()]
        raise TargetError(
            "buckets that this run made may be left:\n" + "\n".join(lines),
            advice="Delete them when the gateway answers again; no other bucket was touched.",
        )
    return tuple(
        f"deleted the bucket {name} and the {count} objects left in it"
        for name, count in answer["deleted"].items()
    )


def facts(
    settings: ExistingSettings, endpoints: Sequence[Endpoint], seen: Sequence[Mapping[str, Any]]
) -> dict[str, str]:
    """What is known, in words; most of what decides results is not."""
    found = {
        "gateway": f"{settings.about} (already running; not started by this suite)",
        "caches": "not dropped, whatever the suite says: they are out of reach",
        "deferred work": "not settled between steps: it is out of reach",
        "hosts": "not known: neither their limits nor what else they do",
    }
    for endpoint, one in zip(endpoints, seen, strict=True):
        part = settings.s3 if endpoint.api == "s3" else settings.swift
        found[f"{endpoint.api}: endpoint"] = endpoint.url
        found[f"{endpoint.api}: server"] = one["server"] or "does not say"
        found[f"{endpoint.api}: tls"] = one["tls"] or "none: plain HTTP"
        if part is not None:
            found[f"{endpoint.api}: credentials"] = f"from {source(part)}"
        if endpoint.api == "s3":
            found["s3: addressing"] = (
                "virtual hosts (bucket.host)"
                if endpoint.addressing == "virtual"
                else "path style (host/bucket)"
            )
    return found


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
