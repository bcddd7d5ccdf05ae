"""Whether a release has the libraries that compress objects and make fragments of them."""

from __future__ import annotations

import re
from typing import Final

from weighbridge.common.document import did_you_mean
from weighbridge.common.host import Host
from weighbridge.gateways.rgw.settings import RgwSettings

_LIST: Final = (
    "ls /usr/lib/*/ceph/compressor /usr/lib*/ceph/compressor "
    "/usr/lib/*/ceph/erasure-code /usr/lib*/ceph/erasure-code 2>/dev/null || true"
)
_LIBRARY: Final = re.compile(r"^lib(ceph|ec)_([a-z0-9]+)\.so$", re.MULTILINE)


def faults(host: Host, release: str, settings: RgwSettings) -> list[str]:
    """What of the settings the release on this host cannot do, a line each. Raises CommandFailed.

    The packages of all Ceph daemons of a release have the same plug-ins.
    """
    wanted: list[tuple[str, str, str]] = []
    if settings.radosgw.compression != "none":
        wanted.append(("radosgw.compression", "ceph", settings.radosgw.compression))
    if settings.pools.ec is not None:
        wanted.append(("pools.ec.plugin", "ec", settings.pools.ec.plugin))
    if not wanted:
        return []
    found = set(_LIBRARY.findall(host.run(["sh", "-c", _LIST]).stdout))
    lines = []
    for key, kind, name in wanted:
        if (kind, name) not in found:
            known = sorted(other for one, other in found if one == kind)
            hint = did_you_mean(name, known) if known else ", nor any other"
            lines.append(f"settings.{key}: {release} has no {name}{hint}")
    return lines
