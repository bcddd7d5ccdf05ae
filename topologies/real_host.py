"""What hardware files say of real hosts alone: how to reach them, and their size."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from weighbridge.common.quantities import Bytes
from weighbridge.common.record import Record

_JUMP_HOST = r"([a-z_][a-z0-9_.-]*@)?(\[[0-9A-Fa-f:]+\]|[A-Za-z0-9][A-Za-z0-9._-]*)(:\d{1,5})?"
JumpHost = Annotated[str, Field(pattern=f"^{_JUMP_HOST}$")]


class Reach(Record):
    """How to reach one real host, where it differs from the hardware's `SshAccess`."""

    host: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9.:_-]*$")] | None = None
    """Name or address; None: the host's `address`."""
    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """Port of its sshd."""
    user: str | None = None
    """Whom to log in as."""
    jump: JumpHost | None = None
    """The host through which it is reached: `[USER@]HOST[:PORT]`."""


class SshAccess(Record):
    """How to reach real hosts, and where to put files there; `~` is of the command's user."""

    user: str = "root"
    """Needs sudo without a password unless it is root."""
    port: Annotated[int, Field(ge=1, le=65535)] = 22
    """Port of sshd."""
    key: str | None = None
    """File of the private key; None: ssh-agent's keys, else the files that ssh itself tries. Its
    passphrase, if it has one, is in $WEIGHBRIDGE_SSH_PASSPHRASE.
    """
    jump: JumpHost | None = None
    """The host through which all others are reached: `[USER@]HOST[:PORT]`; None: directly."""
    known_hosts: str = "~/.ssh/known_hosts"
    """The known host keys; a host with no key or another key there is refused."""
    folder: Annotated[str, Field(pattern=r"^/[A-Za-z0-9._/-]+$")] = "/opt/weighbridge"
    """Holds all that deployments put on a host, except changes by `sysctl` and `network`."""
    python: str = "python3"
    """Python 3.9 or later; on clients 3.11 or later."""


class MachineSize(Record):
    """What a real host has."""

    cpus: Annotated[int, Field(ge=1, le=10**5)]
    """Those that Linux counts: two a core with SMT."""
    memory: Annotated[Bytes, Field(ge=64 * 2**20)]
