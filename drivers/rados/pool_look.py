"""Looking at a pool before anything is measured: whether it can be benched, and what is known of
it.
"""

from __future__ import annotations

import contextlib
import os
import shlex
from pathlib import Path
from typing import Final

from weighbridge.common.ceph_pool import CephPool
from weighbridge.common.document import did_you_mean
from weighbridge.common.errors import DriverError, TargetError, UsageError
from weighbridge.common.host import ProgramHost
from weighbridge.common.tool_output import printable
from weighbridge.drivers.rados.given_pool import ANSWER_S, PROBE, GivenPool
from weighbridge.drivers.rados.host_commands import CommandOutput
from weighbridge.drivers.rados.pool_state import (
    apart,
    details,
    fewer,
    kept_by,
    said,
    unclean,
)
from weighbridge.results.record.benched_pool import BenchedPool

CHECK: Final = "wb-check-"
"""Begins the namespace of the object that is written to see whether that is allowed."""
_HAS: Final = 'for one; do command -v "$one" || true; done'


def look(host: ProgramHost, pool: CephPool, *, log: Path) -> BenchedPool:
    """What is known of a pool that can be benched. One object is written to it, and deleted.

    Raises UsageError with all that is wrong with it, DriverError or TargetError where the host does
    not answer, ObjectsLeft if that object is left.
    """
    return _Look(host, pool, log).found()


class _Look:
    def __init__(self, host: ProgramHost, pool: CephPool, log: Path) -> None:
        self.pool = pool
        self.where = f"{host.name}: pool {pool.pool}"
        # What is probed has a namespace of its own: another run may be using the pool.
        self.given = GivenPool(host, pool, namespace=f"{CHECK}{os.urandom(8).hex()}", log=log)
        self.faults: list[str] = []
        self.advice: list[str] = []

    def found(self) -> BenchedPool:
        """See `look`."""
        here = BenchedPool(host=self.given.machine.name, pool=self.pool.pool, user=self.pool.user)
        programs = self.given.ask("sh", "-c", _HAS, "sh", "rados", "ceph").text.split()
        names = {Path(one).name for one in programs}
        if "rados" not in names:
            raise UsageError(
                f"{here.host} has no program `rados`, by which {self.where} would be benched",
                advice="Install ceph-common there, or name another of the observed hosts.",
            )
        found = (
            self._details(here)
            if "ceph" in names
            else here.model_copy(
                update={"apart": f"nothing is known of it: {here.host} has no program `ceph`"}
            )
        )
        if not self.faults:
            self._probe()
        if self.faults:
            raise UsageError(
                "\n".join(f"{self.where}: {fault}" for fault in self.faults),
                advice="\n".join(dict.fromkeys(self.advice)),
            )
        return found

    def _details(self, here: BenchedPool) -> BenchedPool:
        """What the cluster says of the pool, and what is wrong with it."""
        listed = self.given.ceph("osd", "pool", "ls", "detail")
        if listed.code != 0:
            return here.model_copy(
                update={"apart": f"nothing is known of it: {self.pool.user}: {said(listed)}"}
            )
        known = {one.pool_name: one for one in details(listed.text, here.host)}
        mine = known.get(self.pool.pool)
        if mine is None:
            hint = did_you_mean(self.pool.pool, [printable(name) for name in known])
            self.faults.append(f"the cluster has no such pool{hint}")
            self.advice.append("Name an existing pool: this suite makes none in such a cluster.")
            return here
        self.faults += mine.faults
        if mine.faults:
            self.advice.append("Name another pool, or one of your own for this.")
        stores = [
            one
            for one in known.values()
            if one.keeps_objects or (one.may_keep_objects and one is not mine)
        ]
        kept = {one.pool_name: kept_by(one, self._profile) for one in (mine, *stores)}
        own = kept[mine.pool_name]
        remarks = (mine.remark, fewer(mine, stores), unclean(self.given.ceph("status")))
        return here.model_copy(
            update={
                "kept": None if isinstance(own, str) else own,
                "pg_num": mine.pg_num,
                "rule": mine.crush_rule,
                "stores": tuple(printable(one.pool_name) for one in stores),
                "apart": apart(mine, stores, kept),
                "remark": "; ".join(words for words in remarks if words),
            }
        )

    def _profile(self, name: str) -> CommandOutput:
        """What the cluster says of a profile of erasure coding."""
        return self.given.ceph("osd", "erasure-code-profile", "get", name)

    def _probe(self) -> None:
        """See whether objects can be written, listed and deleted."""
        rados = self.given.place.rados
        nothing_made = False
        try:
            for words in (("create", PROBE), ("stat", PROBE), ("ls",)):
                done = self.given.ask(*rados, *words)
                if done.code != 0:
                    self.faults.append(
                        f"{self.pool.user} cannot use it: rados {words[0]}: {said(done)}"
                    )
                    self._advise()
                    nothing_made = words[0] == "create"
                    return
        finally:
            if not nothing_made:
                self._delete()

    def _delete(self) -> None:
        """Delete the object: by its name, for which it need not be listed."""
        with contextlib.suppress(DriverError, TargetError):
            if self.given.ask(*self.given.place.rados, "rm", PROBE).code == 0:
                return
        self.given.sweep(within_s=ANSWER_S)

    def _advise(self) -> None:
        pool = self.pool
        grant = (
            f"ceph auth get-or-create {pool.user} mon 'allow r' osd "
            f"{shlex.quote(f'allow rw pool={pool.pool}')}"
        )
        self.advice.append(
            "Its user needs a keyring that the login of ssh can read (`user`, `keyring`, `conf` of "
            f"the layout), and rights such as: {grant}"
        )
