"""Checking options of ceph.conf by the release's own programs, before any daemon runs:

Ceph takes unknown ones in silence.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from weighbridge.common.document import did_you_mean
from weighbridge.common.host import Host
from weighbridge.gateways import ini

_WRONG = "parse error setting"


def known(host: Host) -> frozenset[str]:
    """Every option of the release on this host. Raises CommandFailed."""
    # An empty file: what is on the host must not stand in the answer, whatever else it says.
    shown = host.run(["ceph-conf", "-c", "/dev/null", "--show-config"]).stdout
    return frozenset(line.partition(" = ")[0] for line in shown.splitlines() if " = " in line)


def faults(
    host: Host, release: str, conf: str, said: Sequence[Mapping[str, ini.Value]]
) -> list[str]:
    """What is wrong with a ceph.conf: names that the release does not know, and values of the
    layout's options it cannot take.

    `said` are the layout's own options, section by section. Raises CommandFailed.
    """
    names = known(host)
    found = []
    for section, name in _written(conf):
        if name not in names:
            hint = did_you_mean(name, sorted(names), known=False)
            found.append(f"{release} has no option {name!r} in [{section}]{hint}")
    return found + _refused(
        host, release, {name: value for of in said for name, value in of.items() if name in names}
    )


def _written(conf: str) -> list[tuple[str, str]]:
    """Section and name of each option of a ceph.conf; each name once a kind of section."""
    found: dict[tuple[str, str], None] = {}
    section = ""
    for line in conf.splitlines():
        if line.startswith("["):
            section = line[1:-1]
        elif line:
            found[section.partition(".")[0], line.partition(" = ")[0]] = None
    return list(found)


def _refused(host: Host, release: str, values: Mapping[str, ini.Value]) -> list[str]:
    """Values that the release cannot take, in its own words: as arguments they are parsed as in the
    file, but with a complaint.
    """
    if not values:
        return []
    script = [
        shlex.join(
            [
                "ceph-conf",
                "-c",
                "/dev/null",
                f"--{name}={ini.word(value)}",
                "--show-config-value",
                name,
            ]
        )
        + " 2>&1 || true"
        for name, value in values.items()
    ]
    said = host.run(["sh", "-c", "\n".join(script)]).stdout
    return [f"{release}: {line}" for line in said.splitlines() if line.startswith(_WRONG)]
