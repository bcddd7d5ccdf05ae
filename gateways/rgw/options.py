"""Options of ceph.conf, parsed and checked by the release's own `ceph-conf`, without a daemon."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from weighbridge.common.document import did_you_mean
from weighbridge.common.errors import UsageError
from weighbridge.common.host import Host
from weighbridge.gateways import ini

_WRONG = "parse error setting"
_STATUS = "\x1e"
_END = "\x1f"
# An empty file: the one on the host must not influence the answer.
_CEPH_CONF = ("ceph-conf", "-c", "/dev/null")


def known(host: Host) -> frozenset[str]:
    """Every option of the release on this host. Raises CommandFailed."""
    shown = host.run([*_CEPH_CONF, "--show-config"]).stdout
    return frozenset(line.partition(" = ")[0] for line in shown.splitlines() if " = " in line)


def unknown(host: Host, release: str, conf: str) -> dict[str, str]:
    """Options of a ceph.conf that the release does not know, each with a sentence: Ceph ignores
    them silently. Raises CommandFailed.
    """
    return _unknown(known(host), release, conf)


def _unknown(names: frozenset[str], release: str, conf: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for section, name, _ in _parsed(conf):
        if name not in names:
            hint = did_you_mean(name, sorted(names), known=False)
            kind = section.partition(".")[0]
            found.setdefault(name, f"{release} has no option {name!r} in [{kind}]{hint}")
    return found


def faults(
    host: Host,
    release: str,
    conf: str,
    given: Sequence[Mapping[str, ini.Value]],
    *,
    of_another: bool = False,
) -> list[str]:
    """Options of a ceph.conf that the release does not know, and values it does not accept.

    `given` are the layout's own options by section: only their values are checked, and only their
    names if the settings are `of_another` release. Raises CommandFailed.
    """
    mine = {name: value for of in given for name, value in of.items()}
    names = known(host)
    missing = _unknown(names, release, conf)
    found = [said for name, said in missing.items() if name in mine or not of_another]
    values = {name: value for name, value in mine.items() if name in names}
    return found + _refused(host, release, values)


def _refused(host: Host, release: str, values: Mapping[str, ini.Value]) -> list[str]:
    """Values that the release does not accept, in its words: as arguments they are parsed as in a
    file, but errors are printed.
    """
    if not values:
        return []
    script = [
        shlex.join([*_CEPH_CONF, f"--{name}={ini.word(value)}", "--show-config-value", name])
        + " 2>&1 || true"
        for name, value in values.items()
    ]
    output = host.run(["sh", "-c", "\n".join(script)]).stdout
    return [f"{release}: {line}" for line in output.splitlines() if line.startswith(_WRONG)]


def effective(conf: str, name: str) -> dict[str, str]:
    """The options of a ceph.conf for the daemon `name`, such as client.rgw.gateway-1.

    Its own section overrides that of its kind, which overrides [global].
    """
    sections: dict[str, dict[str, str]] = {}
    for section, option, value in _parsed(conf):
        sections.setdefault(section, {})[option] = value
    found: dict[str, str] = {}
    for one in ("global", name.partition(".")[0], name):
        found |= sections.get(one, {})
    return found


def read_as(host: Host, daemon: str, options: Mapping[str, str]) -> dict[str, str]:
    """Values as the release's parser writes them for the daemon: `true` for 1, 16777216 for 16M.

    Raises UsageError with the values that it does not accept, in its own words; CommandFailed.
    """
    if not options:
        return {}
    commands = [
        shlex.join([*_CEPH_CONF, "-n", daemon, f"--{name}={value}", "--show-config-value", name])
        for name, value in options.items()
    ]
    script = "\n".join(f"{command} 2>&1; printf '{_STATUS}%d{_END}' $?" for command in commands)
    answers = host.run(["sh", "-c", script]).stdout.split(_END)[:-1]
    found, wrong = {}, []
    for name, answer in zip(options, answers, strict=True):
        text, _, status = answer.rpartition(_STATUS)
        # Release 14 prints an error, and its default as well.
        errors = [line for line in text.splitlines() if line.startswith(_WRONG)]
        if errors or status != "0":
            wrong.append(errors[0] if errors else f"{name}: {text.strip()}")
        found[name] = text.strip()
    if wrong:
        raise UsageError("\n".join(wrong))
    return found


def _parsed(conf: str) -> Iterator[tuple[str, str, str]]:
    """Section, option and value of each line of a ceph.conf."""
    section = ""
    for line in conf.splitlines():
        if line.startswith("["):
            section = line[1:-1]
        elif line:
            option, _, value = line.partition(" = ")
            yield section, option, value
