"""Versions of packages on a host, for the facts of a gateway."""

from __future__ import annotations

from collections.abc import Iterable

from weighbridge.common.host import Host


def package_versions(host: Host, packages: Iterable[str]) -> str:
    """The versions of packages, as `radosgw 16.2.15, ceph-osd 16.2.15`.

    Raises CommandFailed.
    """
    query = ["dpkg-query", "-W", "-f", "${Package} ${Version}\\n", *packages]
    return ", ".join(host.run(query).stdout.split("\n")).strip(", ")
