"""What distributions of Linux call the same things: packages, users, programs, modules.

Enterprise Linux's names were read in its packages and documentation, not tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, Literal

from weighbridge.common.record import Record

Family = Literal["debian", "rpm"]
"""How packages are made, and so whose names apply: Debian's, or those of Enterprise Linux."""


class DistributionNames(Record):
    """Names of what gateways and fronts use."""

    apache: str
    """Its program."""
    apache_user: str
    """Also its group."""
    apache_modules: str
    """The folder of its modules."""
    apache_builtin: tuple[str, ...] = ()
    """Modules that are loaded, where Debian's program has them built in."""
    memcached_user: str


NAMES: Final[Mapping[Family, DistributionNames]] = MappingProxyType(
    {
        "debian": DistributionNames(
            apache="apache2",
            apache_user="www-data",
            apache_modules="/usr/lib/apache2/modules",
            memcached_user="memcache",
        ),
        "rpm": DistributionNames(
            apache="httpd",
            apache_user="apache",
            apache_modules="/usr/lib64/httpd/modules",
            apache_builtin=("unixd", "log_config", "version"),
            memcached_user="memcached",
        ),
    }
)

_RPM: Final[Mapping[str, tuple[str, ...]]] = {
    "radosgw": ("ceph-radosgw",),
    **{
        f"swift-{server}": (f"openstack-swift-{server}",)
        for server in ("proxy", "account", "container", "object")
    },
    "liberasurecode1": ("liberasurecode",),
    "iproute2": ("iproute",),
    "procps": ("procps-ng",),
    "python3-minimal": ("python3",),
    "python3-venv": ("python3",),
    "apache2-bin": ("httpd", "mod_ssl"),
    "tini": (),  # it starts lab hosts alone
    "btrfs-progs": (),  # not in Enterprise Linux
}
"""Packages of Enterprise Linux, of Ceph's repository and of RDO by Debian's, where they differ."""


def package_names(family: Family, packages: Iterable[str]) -> tuple[str, ...]:
    """The packages that have what Debian's of these names have."""
    if family == "debian":
        return tuple(packages)
    return tuple(dict.fromkeys(own for name in packages for own in _RPM.get(name, (name,))))
