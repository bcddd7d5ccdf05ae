"""Having radosgw that stand, and the front before them, run with other settings: only what these
need is started anew.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence

from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import UsageError
from weighbridge.common.host import Host
from weighbridge.common.scope import Scope, differing
from weighbridge.gateways import daemon
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.front import Front
from weighbridge.gateways.gateway import Say
from weighbridge.gateways.ports import await_ports
from weighbridge.gateways.rgw import scopes, taking
from weighbridge.gateways.rgw.cluster import CephCluster
from weighbridge.gateways.rgw.config import CONF
from weighbridge.gateways.rgw.effective import effective, read_as
from weighbridge.gateways.rgw.files import Files
from weighbridge.gateways.rgw.monitor import Ceph
from weighbridge.gateways.rgw.running import RunningCluster, conf_of, front_files_of
from weighbridge.gateways.verify import OperationCheck, verify

_STOP_WITHIN_S = 60.0
"""A radosgw that is killed leaves its watches behind: others wait for its answer to each change of
metadata until they expire.
"""


class CephChange:
    """One change, from what runs to what is wanted.

    What was touched by one that failed is in doubt in `running`, and is started anew by the next
    change, whatever its scope.
    """

    def __init__(
        self, running: RunningCluster, cluster: CephCluster, scope: Scope, say: Say
    ) -> None:
        """Touches nothing.

        Raises UsageError when the gateway cannot become that one while it stands, or not in this
        scope.
        """
        _refuse_others(running.cluster, cluster)
        scopes.refuse(differing(running.cluster.settings, cluster.settings), scope)
        self.running = running
        self.cluster = cluster
        self.say = say
        self.hosts = running.hosts
        self.native = cluster.speaks_fastcgi(running.hosts)
        self.files = cluster.files(
            running.roster, fsid=running.fsid, native=self.native, keyrings=running.keyrings
        )
        self.conf, self.front_files = conf_of(self.files), front_files_of(self.files)
        self.front = cluster.front(native=self.native)
        self.sure = {
            ceph: conf
            for ceph, conf in running.confs.items()
            if conf is not None and _alive([running.radosgws[ceph]])
        }
        """What radosgw run with that are known to run with something."""
        self.changed = {ceph: self._changed(ceph) for ceph in running.radosgws}
        """Options by name, None for those that are to be as if nobody had said them."""
        self.stale = tuple(
            ceph for ceph, options in self.changed.items() if options or ceph not in self.sure
        )
        self.given = scope == "nothing" and all(ceph in self.sure for ceph in self.stale)
        """Whether running radosgw are given their options."""
        known = running.front_files if _alive(running.front) else None
        self.front_stale = known != self.front_files
        self.front_reloads = (
            scope == "reload"
            and self.front is not None
            and known is not None
            and self.front.reloads(known, self.front_files)
        )
        self._refuse(scope, known)
        self._touched: set[Ceph] = set()
        self._front_touched = False

    @contextlib.contextmanager
    def doubting(self) -> Iterator[None]:
        """When what is done here fails, what was touched until then is in doubt, and the gateway is
        what it was.
        """
        running = self.running
        before = running.cluster, running.files, running.native
        try:
            yield
        except BaseException:
            running.cluster, running.files, running.native = before
            running.confs |= dict.fromkeys(self._touched)
            if self._front_touched:
                running.front_files = None
            raise

    def run(
        self, endpoints: Sequence[Endpoint]
    ) -> tuple[tuple[str, ...], tuple[OperationCheck, ...]]:
        """Do it; returns in words what was done, and what was then verified.

        Raises UsageError, ServiceFailed, CommandFailed or VerificationFailed.
        """
        running = self.running
        daemon.check(running.store)
        wanted = {ceph: self._wanted(ceph) for ceph in self.stale}
        self._learn_defaults()
        done = self._give(wanted) if self.given else self._restart()
        done += self._change_front()
        if not self.given:
            for ceph in self.stale:
                self._read_back(ceph, wanted[ceph])
        with daemon.blaming(running.daemons):
            checks = verify(running.client, endpoints)
        running.confs |= dict.fromkeys(running.radosgws, self.conf)
        running.front_files = self.front_files
        running.cluster, running.files, running.native = self.cluster, self.files, self.native
        return tuple(done) or ("nothing: it runs with these settings already",), checks

    # what is to be done
    # ------------------------------------------------------------------------------------------------------

    def _changed(self, ceph: Ceph) -> dict[str, str | None]:
        """Options in which the daemon's file differs from what it runs with; where that is in
        doubt, all of radosgw's.
        """
        after = effective(self.conf, ceph.name)
        if ceph not in self.sure:
            own = self.cluster.settings.options.get("client", {})
            return {
                name: value
                for name, value in after.items()
                if name.startswith("rgw_") or name in own
            }
        before = effective(self.sure[ceph], ceph.name)
        names = dict.fromkeys((*before, *after))
        return {name: after.get(name) for name in names if before.get(name) != after.get(name)}

    def _refuse(self, scope: Scope, known: Mapping[str, str] | None) -> None:
        """By the files themselves, beside the table of settings: less than they need is not done in
        silence.
        """
        if (
            self.front_stale
            and known is not None
            and not self.front_reloads
            and scope in {"nothing", "reload"}
        ):
            raise UsageError(
                "the files of the front differ in what it takes only when it starts: `restart` "
                f"is the least, not `{scope}`"
            )
        names = dict.fromkeys(
            name for ceph in self.stale if ceph in self.sure for name in self.changed[ceph]
        )
        if names and scope == "reload":
            raise UsageError(
                f"{', '.join(names)} of radosgw differ: `restart` is the least that must be done "
                "anew, not `reload`"
            )
        if self.given and names:
            taking.refuse_fixed(self.stale[0], tuple(names))

    # radosgw
    # -----------------------------------------------------------------------------------------------------------------

    def _wanted(self, ceph: Ceph) -> dict[str, str]:
        """Options that are said, as the release's own parser writes them."""
        return read_as(
            ceph.host,
            ceph.name,
            {name: value for name, value in self.changed[ceph].items() if value is not None},
        )

    def _learn_defaults(self) -> None:
        """What each radosgw runs with where its file says nothing, of options that it will say: to
        go back to it later.
        """
        for ceph in self.stale:
            if ceph in self.sure:
                said = effective(self.sure[ceph], ceph.name)
                names = tuple(name for name in self.changed[ceph] if name not in said)
                found = taking.values(ceph, names)
                self.running.defaults |= {(ceph.name, name): value for name, value in found.items()}

    def _give(self, wanted: Mapping[Ceph, Mapping[str, str]]) -> list[str]:
        """Give the options to running daemons, and write the file that a later start reads."""
        dropped = {ceph: self._dropped(ceph) for ceph in self.stale}
        for ceph in self.stale:
            self._touched.add(ceph)
            try:
                # What is no longer said goes back to its default: merely taken back, what was in
                # its file would come to light.
                taking.give(ceph, {**wanted[ceph], **dropped[ceph]})
            except UsageError:  # it was taken back
                self._touched.discard(ceph)
                raise
            self._compare(ceph, {**wanted[ceph], **dropped[ceph]})
        if not self.stale:
            return []
        self._write(CONF)
        names = dict.fromkeys(name for ceph in self.stale for name in self.changed[ceph])
        return [f"{', '.join(names)} given to {_count(self.stale)} while it ran"]

    def _dropped(self, ceph: Ceph) -> dict[str, str]:
        """Options that are no longer said, with the defaults to go back to."""
        names = [name for name, value in self.changed[ceph].items() if value is None]
        unknown = [name for name in names if (ceph.name, name) not in self.running.defaults]
        if unknown:
            raise UsageError(
                f"{ceph.name} was started with {', '.join(unknown)}, and what it would run with "
                "otherwise is not known: "
                "`restart` is the least that must be done anew, not `nothing`"
            )
        return {name: self.running.defaults[ceph.name, name] for name in names}

    def _restart(self) -> list[str]:
        """Stop them, put their file there, and start them again; a front that starts anew too has
        nobody to ask meanwhile.
        """
        if not self.stale:
            return []
        daemons = [self.running.radosgws[ceph] for ceph in self.stale]
        self.say(f"starting {_count(self.stale)} anew")
        self._touched.update(self.stale)
        if self.front_stale and not self.front_reloads:
            self._stop_front()
        daemon.stop(daemons, timeout_s=_STOP_WITHIN_S)
        self._write(CONF)
        daemon.start(daemons)
        await_ports(self.running.client, daemons, self.say)
        return [f"{_count(self.stale)} stopped and started"]

    def _read_back(self, ceph: Ceph, wanted: Mapping[str, str]) -> None:
        """What the daemon says now of every option that changed: that is what it runs with,
        whatever its file says.
        """
        gone = [name for name, value in self.changed[ceph].items() if value is None]
        left = taking.beyond_default(ceph, gone)
        if left:
            raise ceph.failed(
                f"still has {', '.join(f'{name} ({whence})' for name, whence in left.items())}"
            )
        self._compare(ceph, wanted)

    def _compare(self, ceph: Ceph, wanted: Mapping[str, str]) -> None:
        found = taking.values(ceph, tuple(wanted))
        wrong = [
            f"{name} {found[name]!r}, not {value!r}"
            for name, value in wanted.items()
            if found[name] != value
        ]
        if wrong:
            raise ceph.failed(f"runs with {', '.join(wrong)}")

    # the front
    # ---------------------------------------------------------------------------------------------------------------

    def _change_front(self) -> list[str]:
        """Reload the front, or start it anew, or wait until it has the radosgw again that were
        away.
        """
        if self.front is None or self.cluster.place.front is None:
            return []
        host = self.hosts[self.cluster.place.front]
        done = []
        if self.front_stale:
            self._front_touched = True
            told = ""
            if self.front_reloads:
                self._write(*self.front_files)
                told = self.front.reload(host)
            done.append(told or self._start_front(self.front, host))
        if self.front_stale or (self.stale and not self.given):
            self.front.await_backends(host)
        return done

    def _start_front(self, front: Front, host: Host) -> str:
        """Stop it if it is there, and start it with its new files."""
        self._stop_front()
        self._write(*self.front_files)
        self.running.front = front.daemons(host)
        names = " and ".join(one.service.name for one in self.running.front)
        self.say(f"starting {names} anew on {host.name}")
        daemon.start(self.running.front)
        await_ports(
            self.running.client,
            [one for one in self.running.front if one.port is not None],
            self.say,
        )
        short = (
            "; it was reloaded first, and came back with less than it starts with"
            if self.front_reloads
            else ""
        )
        return f"{names} stopped and started{short}"

    def _stop_front(self) -> None:
        self._front_touched = True
        for one in reversed(self.running.front):
            one.host.stop(one.service.name, timeout_s=_STOP_WITHIN_S)

    def _write(self, *paths: str) -> None:
        Files([file for file in self.files.files if file.path in paths]).write(self.hosts)


def _refuse_others(before: CephCluster, after: CephCluster) -> None:
    if (before.release, before.place) != (after.release, after.place):
        raise UsageError(
            "a gateway that stands keeps its kind, release and placement; for others a new one is "
            "stood up"
        )


def _alive(daemons: Sequence[Daemon]) -> bool:
    return all(one.host.alive(one.service.name) for one in daemons)


def _count(cephs: Sequence[Ceph]) -> str:
    return (
        cephs[0].name.replace("client.rgw", "radosgw", 1)
        if len(cephs) == 1
        else f"{len(cephs)} radosgw"
    )
