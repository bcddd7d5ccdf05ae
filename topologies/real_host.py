"""What hardware files say of real hosts alone: how to reach them, their size, who is watched."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from weighbridge.common.quantities import Bytes
from weighbridge.common.record import Record


def _device(text: str) -> str:
    if not re.fullmatch(r"/dev/[A-Za-z0-9_./:@+=,-]+", text) or ".." in text.split("/"):
        raise ValueError(
            f"{text!r} is not a device: write its path, such as /dev/disk/by-id/nvme-..."
        )
    return text


DeviceId = Annotated[str, AfterValidator(_device)]


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


class Observed(Record):
    """A host of a cluster that already runs. Its counters are read by a program that ssh's session
    runs; nothing is written, installed or changed there, and no root is needed. A layout may name
    it for `rados bench` (`ceph`).
    """

    ssh: Reach
    """How to log in, at least `{host: NAME}`; the rest is as the hardware's `ssh` says."""
    tier: Literal["gateway", "storage", "shared"] = "storage"
    """What it does: answers clients, keeps data, or both."""
    nic: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:-]{1,15}$")] | None = None
    """Its network device, such as eth0; None: its traffic is not known."""
    disks: Annotated[tuple[DeviceId, ...], Field(max_length=100)] = ()
    """Devices of its disks with data, such as /dev/nvme0n1."""


class MachineSize(Record):
    """What a real host has."""

    cpus: Annotated[int, Field(ge=1, le=10**5)]
    """Those that Linux counts: two a core with SMT."""
    memory: Annotated[Bytes, Field(ge=64 * 2**20)]
