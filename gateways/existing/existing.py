"""The `existing` gateway: endpoints of an RGW, Swift or any other store that already runs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime
from typing import ClassVar, Final

from weighbridge.common.endpoint import Endpoint, ObjectApi, singles
from weighbridge.common.errors import BucketsLeft, VerificationFailed
from weighbridge.common.host import Host
from weighbridge.common.layers import StoreLayer
from weighbridge.common.record import Record
from weighbridge.gateways.existing import credentials, running_existing
from weighbridge.gateways.existing.running_existing import RunningExisting
from weighbridge.gateways.existing.settings import ExistingPlacement, ExistingSettings
from weighbridge.gateways.gateway import (
    Gateway,
    HostNeed,
    Rendered,
    RootImage,
    RunningGateway,
    Say,
    Site,
)
from weighbridge.gateways.verify import OperationFailed, verify

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

    def __init__(self, release: str, place: Record, settings: Record) -> None:
        assert isinstance(settings, ExistingSettings)  # noqa: S101 - the interface's contract
        self.release = release
        self.settings = settings
        self.pool = settings.ceph

    def apis(self) -> tuple[ObjectApi, ...]:
        both: tuple[tuple[ObjectApi, object], ...] = (
            ("swift", self.settings.swift),
            ("s3", self.settings.s3),
        )
        return tuple(api for api, part in both if part is not None)

    @property
    def own_ca(self) -> bool:
        parts = (self.settings.swift, self.settings.s3)
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

    def render(self, sites: Mapping[str, Site]) -> tuple[Rendered, ...]:
        return ()

    def preflight(self, hosts: Mapping[str, Host], say: Say) -> None:
        """Do everything that `bring_up` does, from the client host: there is no other host."""
        for client in hosts.values():
            self.bring_up(hosts, client, say)

    def bring_up(self, hosts: Mapping[str, Host], client: Host, say: Say) -> RunningGateway:
        """Find the credentials, look at the endpoints, and verify each in a bucket with a random
        name.

        Raises UsageError with the credentials that are missing, TargetError without an answer,
        VerificationFailed. The bucket is always deleted; where that fails, the error names it.
        """
        endpoints = credentials.endpoints(self.settings, os.environ)
        say(f"looking at {', '.join(one.url for one in singles(endpoints))}")
        seen = running_existing.look(client, endpoints)
        found = running_existing.facts(self.settings, endpoints, seen)
        answering = tuple(one.endpoint for one in seen if not one.fault)
        checks = self._verified(client, answering, say)
        found["verified"] = (
            f"{checks} operations over {' and '.join(one.api for one in endpoints)}, reads byte "
            "for byte"
        )
        return RunningExisting(client, endpoints, found, self.pool)

    def _verified(self, client: Host, endpoints: tuple[Endpoint, ...], say: Say) -> int:
        bucket = f"wb-check-{os.urandom(8).hex()}"
        try:
            return len(verify(client, endpoints, bucket=bucket))
        except OperationFailed as error:
            if not error.nothing_created:
                self._clear(client, endpoints, bucket, say)
            raise VerificationFailed(error.message, advice=self._advice(error.api)) from error
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
        """Delete the bucket of a failed verification; the verification stays the error.

        What `ended` it, such as a signal, gets a note if the bucket may be left.
        """
        try:
            for text in running_existing.clear(client, endpoints, [bucket], within_s=_CLEARED_S):
                say(text)
        except BucketsLeft as left:
            say(str(left))
            if ended is not None:
                ended.add_note(left.words)
        except BaseException as interrupted:
            interrupted.add_note(BucketsLeft([bucket], ()).words)
            raise

    def _advice(self, api: str) -> str:
        part = self.settings.s3 if api == "s3" else self.settings.swift
        assert part is not None  # noqa: S101 - the endpoint was made from it
        return f"The request used the credentials of {credentials.source(part)}."
