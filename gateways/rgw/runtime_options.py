"""Reading and changing options of running daemons."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from weighbridge.common.errors import UsageError
from weighbridge.gateways.rgw.monitor import CephDaemon, Command, ask, option

_READ_EACH_TIME: Final = frozenset(
    {"rgw_get_obj_window_size", "rgw_get_obj_max_req_size", "rgw_put_obj_min_window_size"}
)
"""Options that radosgw reads for each request, so that they take effect although it does not
observe them (rgw_rados.cc, Object::Read::iterate; rgw_sal_rados.cc, get_atomic_writer).
"""

_NOT_OBSERVED = "may require restart"
"""A daemon's answer to `config set` when nothing observes the option: it may never read the new
value.
"""

_ADVICE = "give the parameter the scope `restart`"


def values(daemon: CephDaemon, names: Sequence[str]) -> dict[str, str]:
    """The values that a daemon runs with.

    Raises ServiceFailed for an unknown option, CommandFailed.
    """
    found = {}
    for name, answer in _each(daemon, "config get", names).items():
        value = option(answer, name)
        if value is None:
            raise daemon.failed(f"does not know the option {name!r}")
        found[name] = value
    return found


def refuse_fixed(daemon: CephDaemon, names: Sequence[str]) -> None:
    """Raise UsageError when the daemon reports that some of these cannot change at runtime."""
    fixed = [
        name
        for name, answer in _each(daemon, "config help", names).items()
        if not _help(answer).get("can_update_at_runtime")
    ]
    if fixed:
        raise UsageError(
            f"{daemon.name} cannot change {', '.join(fixed)} while it is running",
            advice=_ADVICE,
        )


def apply(daemon: CephDaemon, wanted: Mapping[str, str]) -> None:
    """Set options of a running daemon; values are as its release's parser writes them.

    Raises UsageError when one may need a restart, after restoring all; ServiceFailed when the
    daemon refuses one.
    """
    before = values(daemon, tuple(wanted))
    answers = {name: _set(daemon, name, value) for name, value in wanted.items()}
    refused = [
        f"{name}: {answer.strip()}" for name, answer in answers.items() if "success" not in answer
    ]
    if refused:
        raise daemon.failed(f"refuses an option at runtime: {refused[0]}")
    not_observed = [
        name
        for name, answer in answers.items()
        if _NOT_OBSERVED in answer and name not in _READ_EACH_TIME
    ]
    flagged = {
        name
        for name, answer in _each(daemon, "config help", not_observed).items()
        if "runtime" in _flags(answer)
    }
    uncertain = [name for name in not_observed if name not in flagged]
    if uncertain:
        for name, value in before.items():
            _set(daemon, name, value)
        what = (
            f"{daemon.name} reports that a change of {', '.join(uncertain)} may require a restart, "
            "but not whether it does"
        )
        raise UsageError(what, advice=_ADVICE)


def beyond_default(daemon: CephDaemon, names: Sequence[str]) -> dict[str, str]:
    """Those of these options that are not at their defaults, with each source and its value, such
    as `file 5, override 7`.
    """
    if not names:
        return {}
    (answer,) = ask([daemon], {"prefix": "config diff"})[daemon]
    diff = json.loads(answer)["diff"]
    found = {}
    for name in names:
        levels = {
            level: value
            for level, value in diff.get(name, {}).items()
            if level not in {"default", "final"}
        }
        if levels:
            found[name] = ", ".join(f"{level} {value}" for level, value in levels.items())
    return found


def _each(daemon: CephDaemon, prefix: str, names: Sequence[str]) -> dict[str, str]:
    """The daemon's answer about each option, in one request."""
    if not names:
        return {}
    commands: list[Command] = [{"prefix": prefix, "var": name} for name in names]
    return dict(zip(names, ask([daemon], *commands)[daemon], strict=True))


def _set(daemon: CephDaemon, name: str, value: str) -> str:
    return ask([daemon], {"prefix": "config set", "var": name, "val": [value]})[daemon][0]


def _flags(answer: str) -> Sequence[object]:
    flags = _help(answer).get("flags", ())
    return flags if isinstance(flags, list) else ()


def _help(answer: str) -> Mapping[str, object]:
    try:
        found = json.loads(answer)
    except json.JSONDecodeError:  # a message that it does not know the option
        return {}
    option: Mapping[str, object] = found.get("option", found)
    return option
