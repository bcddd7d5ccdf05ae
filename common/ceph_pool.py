"""A pool of a Ceph cluster that already runs, and the client by which `rados bench` may use it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from weighbridge.common.record import Record

PathThere = Annotated[str, Field(pattern=r"^/[A-Za-z0-9._/+-]{1,200}$")]


class CephPool(Record):
    """An existing pool for `rados bench`, from a host that has Ceph's programs. Only objects of the
    run are made there, in a namespace of its own, and deleted; nothing else is changed.
    """

    host: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,30}$")]
    """One of the hardware's `observed` hosts; it has `rados` and the user's keyring."""
    pool: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.][A-Za-z0-9_.:+-]{0,99}$")]
    """The pool, which exists and has no quota."""
    user: Annotated[str, Field(pattern=r"^client\.[A-Za-z0-9_.-]{1,90}$")] = "client.admin"
    """Ceph's user; needs `mon 'allow r'` and `osd 'allow rw pool=POOL'`."""
    conf: PathThere | None = None
    """The cluster's ceph.conf on that host; None: /etc/ceph/ceph.conf."""
    keyring: PathThere | None = None
    """The user's keyring on that host, which the login of ssh can read; None: where Ceph looks,
    such as /etc/ceph/ceph.client.admin.keyring.
    """

    @property
    def client(self) -> tuple[str, ...]:
        """Options by which Ceph's programs are this client."""
        words = ["--name", self.user]
        words += ["--conf", self.conf] if self.conf is not None else []
        words += ["--keyring", self.keyring] if self.keyring is not None else []
        return tuple(words)
