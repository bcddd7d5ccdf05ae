"""Options that running daemons take, and what they say that they run with."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from weighbridge.common.errors import UsageError
from weighbridge.gateways.rgw.monitor import Ceph, Command, ask, option

_READ_EACH_TIME: Final = frozenset(
    {"rgw_get_obj_window_size", "rgw_get_obj_max_req_size", "rgw_put_obj_min_window_size"}
)
"""What radosgw looks up anew for each request, and so takes although nothing in it is told of a
change (rgw_rados.cc, Object::Read::iterate; rgw_sal_rados.cc, get_atomic_writer)."""

_UNSEEN = "may require restart"
"""What a daemon answers to `config set` when nothing in it is told of the change: it may never look
at the value.
"""

_ADVICE = "give the parameter the scope `restart`"


def values(daemon: Ceph, names: Sequence[str]) -> dict[str, str]:
    """Options as a daemon runs with them.

    Raises ServiceFailed for one that it does not know, CommandFailed.
    """
    found = {}
    for name, answer in _each(daemon, "config get", names).items():
        value = option(answer, name)
        if value is None:
            raise daemon.failed(f"does not know the option {name!r}")
        found[name] = value
    return found


def refuse_fixed(daemon: Ceph, names: Sequence[str]) -> None:
    """Raise UsageError when the daemon itself says that some of these cannot change while it
    runs.
    """
    fixed = [
        name
        for name, answer in _each(daemon, "config help", names).items()
        if not _help(answer).get("can_update_at_runtime")
    ]
    if fixed:
        raise UsageError(
            f"{daemon.name} says that it cannot take {', '.join(fixed)} while it runs",
            advice=_ADVICE,
        )


def give(daemon: Ceph, wanted: Mapping[str, str]) -> None:
    """Have a running daemon take options, by name as its release's parser writes them.

    Raises UsageError when it says of one that it may not count before a restart, with everything
    taken back; ServiceFailed when it refuses one.
    """
    before = values(daemon, tuple(wanted))
    answers = {name: _set(daemon, name, value) for name, value in wanted.items()}
    refused = [
        f"{name}: {answer.strip()}" for name, answer in answers.items() if "success" not in answer
    ]
    if refused:
        raise daemon.failed(f"does not take an option while it runs: {refused[0]}")
    silent = [
        name
        for name, answer in answers.items()
        if _UNSEEN in answer and name not in _READ_EACH_TIME
    ]
    flagged = {
        name
        for name, answer in _each(daemon, "config help", silent).items()
        if "runtime" in _flags(answer)
    }
    unseen = [name for name in silent if name not in flagged]
    if unseen:
        for name, value in before.items():
            _set(daemon, name, value)
        what = (
            f"{daemon.name} says that a change of {', '.join(unseen)} may require a restart, "
            "and would not say that it does"
        )
        raise UsageError(what, advice=_ADVICE)


def beyond_default(daemon: Ceph, names: Sequence[str]) -> dict[str, str]:
    """Of these options, those that the daemon has from somewhere: `file 5`, `override 7`."""
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


def _each(daemon: Ceph, prefix: str, names: Sequence[str]) -> dict[str, str]:
    """The daemon's answer about each option, asked in one go."""
    if not names:
        return {}
    commands: list[Command] = [{"prefix": prefix, "var": name} for name in names]
    return dict(zip(names, ask([daemon], *commands)[daemon], strict=True))


def _set(daemon: Ceph, name: str, value: str) -> str:
    return ask([daemon], {"prefix": "config set", "var": name, "val": [value]})[daemon][0]


def _flags(answer: str) -> Sequence[object]:
    flags = _help(answer).get("flags", ())
    return flags if isinstance(flags, list) else ()


def _help(answer: str) -> Mapping[str, object]:
    try:
        told = json.loads(answer)
    except json.JSONDecodeError:  # the words in which it says that it does not know the option
        return {}
    found: Mapping[str, object] = told.get("option", told)
    return found
