"""Buckets that keep versions: made and proven, listed, and brought back to what was prepared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Final
from urllib.parse import quote

from gevent.pool import Pool

from weighbridge.common import plain_xml
from weighbridge.common.errors import DriverError
from weighbridge.common.object_versions import ObjectVersion, versions_of
from weighbridge.drivers.engine._native import object_name
from weighbridge.drivers.locust.account import Account
from weighbridge.drivers.locust.retrying import retried
from weighbridge.drivers.protocol import Setup
from weighbridge.suites import Workload

PARALLEL: Final = 16
"""Objects whose versions are deleted at the same time."""
_ON: Final = (
    b'<VersioningConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
    b"<Status>Enabled</Status></VersioningConfiguration>"
)


class VersionedBuckets:
    """The buckets of a workload whose objects have versions.

    Every method raises DriverError when the target cannot be reached or refuses.
    """

    def __init__(self, setup: Setup, account: Account, workload: Workload) -> None:
        self._api = setup.api
        self._account = account
        self._each = workload.versions or 0
        self._names = [object_name(index) for index in range(workload.objects.per_container)]
        stem = f"{setup.bucket_prefix}-{workload.name}"
        self._buckets = [f"{stem}-{index}" for index in range(workload.objects.containers)]

    def keep(self, bucket: str) -> None:
        """Have a bucket keep versions, and prove that it does."""
        if self._api == "s3":
            asked = self._account.ask("PUT", f"/{bucket}", query="versioning=", body=_ON)
            proof = self._account.ask("GET", f"/{bucket}", query="versioning=")
            keeps = proof.status == 200 and _is_enabled(proof.body)
        else:
            on = {"X-Versions-Enabled": "true"}
            asked = self._account.ask("POST", f"/{bucket}", fields=on)
            proof = self._account.ask("HEAD", f"/{bucket}")
            keeps = (proof.headers.get("X-Versions-Enabled") or "").lower() == "true"
        if asked.status not in (200, 202, 204) or not keeps:
            raise DriverError(
                f"{self._account.url}: bucket {bucket} keeps no versions: asked to, it "
                f"answered {asked}; asked whether it does, {proof}",
                advice="Leave `versions` out, or choose a store or release that has them.",
            )

    def listed(self, bucket: str) -> Iterator[ObjectVersion]:
        """All versions of a bucket, of each name the newest first; none when it does not exist."""

        def get(query: str) -> bytes:
            answer = self._account.ask("GET", f"/{bucket}", query=query)
            if answer.status in (204, 404):
                return b""
            if answer.status != 200:
                raise DriverError(
                    f"{self._account.url}: versions of bucket {bucket} cannot be listed: {answer}"
                )
            return answer.body

        try:
            yield from versions_of(self._api, get)
        except ValueError as error:
            raise DriverError(
                f"{self._account.url}: the versions of bucket {bucket} cannot be read: {error}"
            ) from error

    def ids(self, *, alone: bool = False) -> list[str]:
        """IDs of the prepared versions: of object 0 from the oldest on, of object 1, ...

        Raises DriverError when one is missing; `alone`: also when there is anything else, as when
        a write was repeated.
        """
        ids: list[str] = []
        found = [self._ids_by_name(bucket) for bucket in self._buckets]
        for name in self._names:
            for bucket, by_name in zip(self._buckets, found, strict=True):
                oldest = by_name.get(name, [])[-self._each :][::-1]
                if len(oldest) < self._each:
                    raise DriverError(
                        f"{self._account.url}: {bucket}/{name} has {len(oldest)} of its "
                        f"{self._each} versions"
                    )
                ids += oldest
        there = sum(len(versions) for by_name in found for versions in by_name.values())
        if alone and there > len(ids):
            raise DriverError(
                f"{self._account.url}: {there} versions in {self._buckets[0]} and the buckets "
                f"after it instead of {len(ids)}: a write was repeated",
                advice="Try again.",
            )
        return ids

    def prove(self) -> None:
        """Raise DriverError unless what was prepared is there, and nothing else."""
        # Swift updates container listings a little later.
        retried(lambda: self.ids(alone=True), (0.5, 1.0, 2.0))

    def delete_others(
        self, bucket: str, keep: Collection[str], report: Callable[[int, int], None]
    ) -> tuple[int, int]:
        """Delete the versions and markers of a bucket, but of the names to keep those that were
        prepared: the oldest.

        `report` gets how many were deleted and how many could not be. Returns both.
        """
        of_name: dict[str, list[ObjectVersion]] = defaultdict(list)
        for one in self.listed(bucket):
            of_name[one.name].append(one)
        others = [
            (versions[: -self._each] if name in keep else versions)[::-1]
            for name, versions in of_name.items()
        ]
        deleted = failed = 0
        for gone, left in Pool(PARALLEL).imap_unordered(partial(self._delete, bucket), others):
            deleted, failed = deleted + gone, failed + left
            report(deleted, failed)
        if not of_name and not keep:
            # s3api may have left the name of an object whose versions are gone.
            for name in self._account.objects(bucket):
                self._account.delete_object(bucket, name)
        return deleted, failed

    def _delete(self, bucket: str, versions: Sequence[ObjectVersion]) -> tuple[int, int]:
        """Delete versions of one object, one after the other, the oldest first: as long as a newer
        one is left, none becomes the latest. Returns how many are gone and how many are not.
        """
        gone = 0
        for one in versions:
            path = f"/{bucket}/{quote(one.name)}"
            try:
                answer = self._account.ask("DELETE", path, query=one.query(self._api))
            except DriverError:
                continue
            gone += answer.status in (200, 202, 204, 404)
        return gone, len(versions) - gone

    def _ids_by_name(self, bucket: str) -> dict[str, list[str]]:
        """IDs of the versions of a bucket's objects, newest first."""
        found: dict[str, list[str]] = defaultdict(list)
        for one in self.listed(bucket):
            found[one.name].append(one.id)
        return found


def _is_enabled(body: bytes) -> bool:
    try:
        return (plain_xml.parse(body).findtext("{*}Status") or "").strip() == "Enabled"
    except ValueError:
        return False
