"""Versions of packages on a host, for the facts of a gateway."""

from __future__ import annotations

from collections.abc import Iterable

from weighbridge.common.distribution import package_names
from weighbridge.common.host import Host


def package_versions(host: Host, packages: Iterable[str]) -> str:
    """The versions of packages, by Debian's names, as `radosgw 16.2.15, ceph-osd 16.2.15`.

    Raises CommandFailed.
    """
    names = package_names(host.family, packages)
    if host.family == "debian":
        query = ["dpkg-query", "-W", "-f", "${Package} ${Version}\\n", *names]
    else:
        query = ["rpm", "-q", "--queryformat", "%{NAME} %{VERSION}-%{RELEASE}\\n", *names]
    return ", ".join(host.run(query).stdout.split("\n")).strip(", ")
