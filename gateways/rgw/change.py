"""Changing the settings of running radosgw and their front: only what needs it is restarted."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import UsageError
from weighbridge.common.host import Host
from weighbridge.common.structure import SCOPES, Scope, differing, widest
from weighbridge.gateways import daemon
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.front import FRONTS, Front
from weighbridge.gateways.gateway import Say
from weighbridge.gateways.ports import await_ports
from weighbridge.gateways.rgw.ceph_state import CephState, conf_of, front_files_of
from weighbridge.gateways.rgw.cluster import CephCluster
from weighbridge.gateways.rgw.config import CONF, Files, effective, read_as
from weighbridge.gateways.rgw.monitor import CephDaemon, ask, ask_options, running_values
from weighbridge.gateways.verify import OperationCheck, verify

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


def refuse_fixed(daemon: CephDaemon, names: Sequence[str]) -> None:
    """Raise UsageError when the daemon reports that some of these cannot change at runtime."""
    fixed = [
        name
        for name, answer in ask_options(daemon, "config help", names).items()
        if not _help(answer).get("can_update_at_runtime")
    ]
    if fixed:
        raise UsageError(
            f"{daemon.name} cannot change {', '.join(fixed)} while it is running",
            advice=_ADVICE,
        )


def apply_options(daemon: CephDaemon, wanted: Mapping[str, str]) -> None:
    """Set options of a running daemon; values are as its release's parser writes them.

    Raises UsageError when one may need a restart, after restoring all; ServiceFailed when the
    daemon refuses one.
    """
    before = running_values(daemon, tuple(wanted))
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
    uncertain = []
    for name, answer in ask_options(daemon, "config help", not_observed).items():
        flags = _help(answer).get("flags")
        if not isinstance(flags, list) or "runtime" not in flags:
            uncertain.append(name)
    if uncertain:
        for name, value in before.items():
            _set(daemon, name, value)
        what = (
            f"{daemon.name} reports that a change of {', '.join(uncertain)} may require a restart, "
            "but not whether it does"
        )
        raise UsageError(what, advice=_ADVICE)


def beyond_default(daemon: CephDaemon, names: Sequence[str]) -> dict[str, str]:
    """Options that are not at their defaults, with sources and values: `file 5, override 7`."""
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


def _set(daemon: CephDaemon, name: str, value: str) -> str:
    return ask([daemon], {"prefix": "config set", "var": name, "val": [value]})[daemon][0]


def _help(answer: str) -> Mapping[str, object]:
    try:
        found = json.loads(answer)
    except json.JSONDecodeError:  # a message that it does not know the option
        return {}
    option: Mapping[str, object] = found.get("option", found)
    return option


_RADOSGW: Final[Mapping[str, Scope]] = {
    "daemons": "cluster",
    "port": "cluster",
    "tls": "cluster",
    # The zone's, which radosgw reads when it starts.
    "compression": "cluster",
    # They apply only to buckets created later, and objects keep the layout that they were written
    # with.
    "index_shards": "buckets",
    "max_chunk_size": "buckets",
    "stripe_size": "buckets",
}
"""Settings of `radosgw` that need more than a restart of radosgw."""

_OPTIONS: Final[Mapping[str, Scope]] = {
    **dict.fromkeys(
        ("rgw_override_bucket_index_max_shards", "rgw_max_chunk_size", "rgw_obj_stripe_size"),
        "buckets",
    ),
    **dict.fromkeys(
        ("rgw_zone", "rgw_zonegroup", "rgw_realm", "rgw_default_realm_root_pool"), "cluster"
    ),
    **dict.fromkeys(
        ("fsid", "mon_host", "keyring", "key", "keyfile", "admin_socket", "run_dir", "public_addr"),
        "cluster",
    ),
}
"""Options of `options: {client: ...}` that need more; those that define a radosgw's cluster and
identity cannot change.
"""


def scope_of(key: str) -> Scope:
    """The least restart for a setting, by its dotted key below `settings`; `cluster` if unknown."""
    first, _, rest = key.partition(".")
    if first in FRONTS:
        return FRONTS[first].scope(rest)
    if first == "radosgw":
        return _RADOSGW.get(rest, "restart")
    if first == "options" and rest.startswith("client."):
        return _OPTIONS.get(rest.removeprefix("client."), "restart")
    return "cluster"


def refuse_fixed_settings(keys: Sequence[str], asked: Scope) -> None:
    """Raise UsageError when settings that differ need more than the scope `asked`, or a new
    cluster.

    With `nothing`, running radosgw are asked about options of theirs, which this table does not
    know.
    """
    fixed = [key for key in keys if scope_of(key) == "cluster"]
    if fixed:
        raise UsageError(
            f"{', '.join(fixed)} cannot change while the cluster is running: the scope is `cluster`"
        )
    if asked == "cluster":
        raise UsageError(
            "the scope `cluster` means a new deployment: the running one does not change"
        )
    short = []
    for key in keys:
        least = scope_of(key)
        of_radosgw = key.startswith(("radosgw.", "options.client.")) and least != "buckets"
        if SCOPES.index(asked) < SCOPES.index(least) and not (asked == "nothing" and of_radosgw):
            short.append(key)
    if short:
        least = widest(scope_of(key) for key in short)
        raise UsageError(f"{', '.join(short)}: this needs at least `{least}`, not `{asked}`")


_STOP_WITHIN_S = 60.0
"""A killed radosgw leaves its watches behind: others then wait for its answer to each change of
metadata until the watches expire.
"""


class CephChange:
    """One change of a running cluster's settings.

    After a failure, `state` marks what was touched as unknown; the next change restarts it,
    whatever its scope.
    """

    def __init__(self, state: CephState, cluster: CephCluster, scope: Scope, say: Say) -> None:
        """Plan the change; changes nothing.

        Raises UsageError when the running gateway cannot become `cluster`, or not in this scope.
        """
        if (state.cluster.release, state.cluster.place) != (cluster.release, cluster.place):
            raise UsageError(
                "a running gateway keeps its kind, release and placement; others need a new "
                "deployment"
            )
        refuse_fixed_settings(differing(state.cluster.settings, cluster.settings), scope)
        self.state = state
        self.cluster = cluster
        self.say = say
        self.hosts = state.hosts
        self.native = cluster.speaks_fastcgi(state.hosts)
        self.files = cluster.files(
            state.roster,
            fsid=state.fsid,
            native=self.native,
            certificates=state.certificates,
            keyrings=state.keyrings,
        )
        self.conf, self.front_files = conf_of(self.files), front_files_of(self.files)
        self.front = cluster.front(native=self.native)
        self.known = {
            ceph: conf
            for ceph, conf in state.confs.items()
            if conf is not None and _alive([state.radosgws[ceph]])
        }
        """The ceph.conf of each radosgw for which it is known."""
        self.changed = {ceph: self._changed(ceph) for ceph in state.radosgws}
        """New values of options by name; None: back to the default."""
        self.stale = tuple(
            ceph for ceph, options in self.changed.items() if options or ceph not in self.known
        )
        self.live = scope == "nothing" and all(ceph in self.known for ceph in self.stale)
        """Whether running radosgw get their options without a restart."""
        known = state.front_files if _alive(state.front) else None
        self.front_stale = known != self.front_files
        self.front_reloads = (
            scope == "reload"
            and self.front is not None
            and known is not None
            and self.front.reloads(known, self.front_files)
        )
        self._refuse(scope, known)
        self._touched: set[CephDaemon] = set()
        self._front_touched = False

    @contextlib.contextmanager
    def restoring_on_failure(self) -> Iterator[None]:
        """On failure, restore the recorded state and mark what was touched as unknown."""
        state = self.state
        before = state.cluster, state.files, state.native
        try:
            yield
        except BaseException:
            state.cluster, state.files, state.native = before
            state.confs |= dict.fromkeys(self._touched)
            if self._front_touched:
                state.front_files = None
            raise

    def run(
        self, endpoints: Sequence[Endpoint]
    ) -> tuple[tuple[str, ...], tuple[OperationCheck, ...]]:
        """Apply it; what was done and verified. Raises as `RunningGateway.change`."""
        state = self.state
        daemon.check(state.store)
        wanted = {ceph: self._wanted(ceph) for ceph in self.stale}
        self._record_defaults()
        done = self._apply_live(wanted) if self.live else self._restart()
        done += self._change_front()
        if not self.live:
            for ceph in self.stale:
                self._read_back(ceph, wanted[ceph])
        with daemon.blaming(state.daemons):
            checks = verify(state.client, endpoints)
        state.confs |= dict.fromkeys(state.radosgws, self.conf)
        state.front_files = self.front_files
        state.cluster, state.files, state.native = self.cluster, self.files, self.native
        return tuple(done) or ("nothing: it already runs with these settings",), checks

    # what to change

    def _changed(self, ceph: CephDaemon) -> dict[str, str | None]:
        after = effective(self.conf, ceph.name)
        if ceph not in self.known:
            own = self.cluster.settings.options.get("client", {})
            return {
                name: value
                for name, value in after.items()
                if name.startswith("rgw_") or name in own
            }
        before = effective(self.known[ceph], ceph.name)
        names = dict.fromkeys((*before, *after))
        return {name: after.get(name) for name in names if before.get(name) != after.get(name)}

    def _refuse(self, scope: Scope, known: Mapping[str, str] | None) -> None:
        """Check the scope against the files too: if it is too small, that must not go unnoticed."""
        if (
            self.front_stale
            and known is not None
            and not self.front_reloads
            and scope in {"nothing", "reload"}
        ):
            raise UsageError(
                "the front's files differ in what it reads only when it starts: "
                f"this needs at least `restart`, not `{scope}`"
            )
        names = dict.fromkeys(
            name for ceph in self.stale if ceph in self.known for name in self.changed[ceph]
        )
        if names and scope == "reload":
            raise UsageError(
                f"{', '.join(names)} of radosgw differ: this needs at least `restart`, not `reload`"
            )
        if self.live and names:
            refuse_fixed(self.stale[0], tuple(names))

    # radosgw

    def _wanted(self, ceph: CephDaemon) -> dict[str, str]:
        return read_as(
            ceph.host,
            ceph.name,
            {name: value for name, value in self.changed[ceph].items() if value is not None},
        )

    def _record_defaults(self) -> None:
        for ceph in self.stale:
            if ceph in self.known:
                known = effective(self.known[ceph], ceph.name)
                names = tuple(name for name in self.changed[ceph] if name not in known)
                found = running_values(ceph, names)
                self.state.defaults |= {(ceph.name, name): value for name, value in found.items()}

    def _apply_live(self, wanted: Mapping[CephDaemon, Mapping[str, str]]) -> list[str]:
        dropped = {ceph: self._dropped(ceph) for ceph in self.stale}
        for ceph in self.stale:
            self._touched.add(ceph)
            try:
                # Removed options are set to their defaults: if merely unset, the value in the old
                # file would apply again.
                apply_options(ceph, {**wanted[ceph], **dropped[ceph]})
            except UsageError:  # the options were restored
                self._touched.discard(ceph)
                raise
            self._compare(ceph, {**wanted[ceph], **dropped[ceph]})
        if not self.stale:
            return []
        self._write(CONF)
        names = dict.fromkeys(name for ceph in self.stale for name in self.changed[ceph])
        return [f"{', '.join(names)} applied to {_count(self.stale)} while running"]

    def _dropped(self, ceph: CephDaemon) -> dict[str, str]:
        names = [name for name, value in self.changed[ceph].items() if value is None]
        unknown = [name for name in names if (ceph.name, name) not in self.state.defaults]
        if unknown:
            raise UsageError(
                f"{ceph.name} was started with {', '.join(unknown)}, and their defaults are not "
                "known: this needs at least `restart`, not `nothing`"
            )
        return {name: self.state.defaults[ceph.name, name] for name in names}

    def _restart(self) -> list[str]:
        """Restart radosgw with their new file; a front that is restarted too is stopped first."""
        if not self.stale:
            return []
        daemons = [self.state.radosgws[ceph] for ceph in self.stale]
        self.say(f"restarting {_count(self.stale)}")
        self._touched.update(self.stale)
        if self.front_stale and not self.front_reloads:
            self._stop_front()
        daemon.stop(daemons, timeout_s=_STOP_WITHIN_S)
        self._write(CONF)
        daemon.start(daemons)
        await_ports(self.state.client, daemons, self.say)
        return [f"{_count(self.stale)} stopped and started"]

    def _read_back(self, ceph: CephDaemon, wanted: Mapping[str, str]) -> None:
        unset = [name for name, value in self.changed[ceph].items() if value is None]
        left = beyond_default(ceph, unset)
        if left:
            raise ceph.failed(
                f"still has {', '.join(f'{name} ({source})' for name, source in left.items())}"
            )
        self._compare(ceph, wanted)

    def _compare(self, ceph: CephDaemon, wanted: Mapping[str, str]) -> None:
        found = running_values(ceph, tuple(wanted))
        wrong = [
            f"{name} {found[name]!r}, not {value!r}"
            for name, value in wanted.items()
            if found[name] != value
        ]
        if wrong:
            raise ceph.failed(f"runs with {', '.join(wrong)}")

    # the front

    def _change_front(self) -> list[str]:
        if self.front is None or self.cluster.place.front is None:
            return []
        host = self.hosts[self.cluster.place.front]
        done = []
        if self.front_stale:
            self._front_touched = True
            report = ""
            if self.front_reloads:
                self._write(*self.front_files)
                report = self.front.reload(host)
            done.append(report or self._start_front(self.front, host))
        if self.front_stale or (self.stale and not self.live):
            self.front.await_backends(host)
        return done

    def _start_front(self, front: Front, host: Host) -> str:
        """Restart it with its new files; it need not be running."""
        self._stop_front()
        self._write(*self.front_files)
        self.state.front = front.daemons(host)
        names = " and ".join(one.service.name for one in self.state.front)
        self.say(f"restarting {names} on {host.name}")
        daemon.start(self.state.front)
        await_ports(self.state.client, self.state.front, self.say)
        short = "; a reload left it with less than it starts with" if self.front_reloads else ""
        return f"{names} stopped and started{short}"

    def _stop_front(self) -> None:
        self._front_touched = True
        for one in reversed(self.state.front):
            one.host.stop(one.service.name, timeout_s=_STOP_WITHIN_S)

    def _write(self, *paths: str) -> None:
        Files([file for file in self.files.files if file.path in paths]).write(self.hosts)


def _alive(daemons: Sequence[Daemon]) -> bool:
    return all(one.host.alive(one.service.name) for one in daemons)


def _count(cephs: Sequence[CephDaemon]) -> str:
    return (
        cephs[0].name.replace("client.rgw", "radosgw", 1)
        if len(cephs) == 1
        else f"{len(cephs)} radosgw"
    )
