"""Which options of a ceph.conf hold for a daemon, and how a release's own parser writes a value."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from weighbridge.common.errors import UsageError
from weighbridge.common.host import Host

_WRONG = "parse error setting"
_STATUS = "\x1e"
_END = "\x1f"


def effective(conf: str, name: str) -> dict[str, str]:
    """Options of a ceph.conf that hold for the daemon `name`, such as client.rgw.gateway-1: its own
    section's before its kind's, and those before [global].
    """
    sections: dict[str, dict[str, str]] = {}
    section = ""
    for line in conf.splitlines():
        if line.startswith("["):
            section = line[1:-1]
        elif line:
            option, _, value = line.partition(" = ")
            sections.setdefault(section, {})[option] = value
    found: dict[str, str] = {}
    for one in ("global", name.partition(".")[0], name):
        found |= sections.get(one, {})
    return found


def read_as(host: Host, daemon: str, options: Mapping[str, str]) -> dict[str, str]:
    """Values as the release's parser writes them for the daemon: `true` of 1, 16777216 of 16M.

    Raises UsageError with what it does not take, in its own words; CommandFailed.
    """
    if not options:
        return {}
    # An empty file: what is on the host must not stand in the answer.
    asked = [
        [
            "ceph-conf",
            "-c",
            "/dev/null",
            "-n",
            daemon,
            f"--{name}={value}",
            "--show-config-value",
            name,
        ]
        for name, value in options.items()
    ]
    script = "\n".join(f"{shlex.join(argv)} 2>&1; printf '{_STATUS}%d{_END}' $?" for argv in asked)
    answers = host.run(["sh", "-c", script]).stdout.split(_END)[:-1]
    found, faults = {}, []
    for name, answer in zip(options, answers, strict=True):
        text, _, status = answer.rpartition(_STATUS)
        # Release 14 complains, and tells its default all the same.
        wrong = [line for line in text.splitlines() if line.startswith(_WRONG)]
        if wrong or status != "0":
            faults.append(wrong[0] if wrong else f"{name}: {text.strip()}")
        found[name] = text.strip()
    if faults:
        raise UsageError("\n".join(faults))
    return found
