"""Logging in to a real host by keys, and what to do where that fails."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import urlsplit

import asyncssh

from weighbridge.common.errors import MissingPrerequisite, TargetError, UsageError
from weighbridge.topologies.hardware import HostSpec
from weighbridge.topologies.real_host import Reach, SshAccess

PASSPHRASE: Final = "WEIGHBRIDGE_SSH_PASSPHRASE"  # noqa: S105 - the name of a variable
KEEPALIVE_S: Final = 5
KEEPALIVE_MISSES: Final = 3
"""A host that stops answering is noticed after 15 to 20 s."""
CONNECT_S: Final = 15


@dataclass(frozen=True)
class Login:
    """Where and as whom to log in."""

    name: str
    host: str
    """Name or address of the sshd."""
    port: int
    user: str
    key: Path | None
    known_hosts: Path
    jump: Login | None = None
    """The host through which it is reached."""

    @classmethod
    def of(cls, name: str, spec: HostSpec, access: SshAccess) -> Self:
        """The login of a host of the hardware."""
        reach = spec.ssh or Reach()
        host = cls(
            name=name,
            host=reach.host or spec.address or "",
            port=reach.port or access.port,
            user=reach.user or access.user,
            key=Path(access.key).expanduser() if access.key is not None else None,
            known_hosts=Path(access.known_hosts).expanduser(),
        )
        jump = reach.jump or access.jump
        return host if jump is None else replace(host, jump=host._through(jump))

    def _through(self, jump: str) -> Login:
        """The login of a host written as `[USER@]HOST[:PORT]`."""
        user, _, place = jump.rpartition("@")
        parts = urlsplit(f"//{place}")
        return replace(
            self,
            name=f"jump host of {self.name}",
            host=parts.hostname or "",
            port=parts.port or 22,
            user=user or self.user,
        )

    @property
    def where(self) -> str:
        """`store-1 (10.0.0.4)`, with the port unless it is 22, for errors."""
        port = "" if self.port == 22 else f" port {self.port}"
        return f"{self.name} ({self.host}{port})"

    async def connect(self) -> asyncssh.SSHClientConnection:
        """A new connection; that to the jump host ends with it.

        Raises MissingPrerequisite, UsageError or TargetError saying what to do.
        """
        if self.jump is None:
            return await self._connect()
        tunnel = await self.jump.connect()
        try:
            client = await self._connect(tunnel)
        except BaseException:
            tunnel.close()
            raise
        client.set_tunnel(tunnel)
        return client

    async def _connect(
        self, tunnel: asyncssh.SSHClientConnection | None = None
    ) -> asyncssh.SSHClientConnection:
        options: dict[str, Any] = {}
        if self.key is not None:
            options = {"client_keys": [_private_key(self.key)], "agent_path": None}
        elif PASSPHRASE in os.environ:
            options = {"passphrase": os.environ[PASSPHRASE]}
        if not self.known_hosts.is_file():
            raise MissingPrerequisite(
                f"{self.where}: there is no {self.known_hosts} with its key", advice=self._add_key
            )
        try:
            return await asyncio.wait_for(
                asyncssh.connect(
                    self.host,
                    port=self.port,
                    username=self.user,
                    known_hosts=str(self.known_hosts),
                    preferred_auth="publickey",
                    keepalive_interval=KEEPALIVE_S,
                    keepalive_count_max=KEEPALIVE_MISSES,
                    connect_timeout=CONNECT_S,
                    login_timeout=CONNECT_S,
                    tunnel=tunnel or (),
                    **options,
                ),
                CONNECT_S + 5,
            )
        except asyncssh.HostKeyNotVerifiable as error:
            raise self._unknown_key() from error
        except asyncssh.PermissionDenied as error:
            raise MissingPrerequisite(
                f"{self.where}: refuses the login of {self.user}: {error.reason}",
                advice=f"add your public key to {self.user}'s authorized_keys there, or choose "
                "another key (ssh: key)",
            ) from error
        except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError) as error:
            raise MissingPrerequisite(
                f"{self.where}: a private key cannot be read: {error}", advice=_unlock(error)
            ) from error
        except TimeoutError as error:
            raise TargetError(
                f"{self.where}: does not answer within {CONNECT_S} s",
                advice="check that it is up, and that no firewall is in between",
            ) from error
        except (OSError, asyncssh.Error) as error:
            what = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise TargetError(
                f"{self.where}: cannot be reached: {what}",
                advice="check that it is up and runs sshd, and that its address is right",
            ) from error

    def _unknown_key(self) -> MissingPrerequisite:
        """The error for a host whose key is not known, or is not the known one."""
        port = None if self.port == 22 else self.port
        if asyncssh.read_known_hosts(str(self.known_hosts)).match(self.host, "", port)[0]:
            known_name = self.host if self.port == 22 else f"'[{self.host}]:{self.port}'"
            return MissingPrerequisite(
                f"{self.where}: has another host key than in {self.known_hosts}: it was "
                "reinstalled, or this is not that host",
                advice=f"if you know why, remove the old key (ssh-keygen -f {self.known_hosts} -R "
                f"{known_name}) and add the new one",
            )
        return MissingPrerequisite(
            f"{self.where}: its host key is not in {self.known_hosts}", advice=self._add_key
        )

    @property
    def _add_key(self) -> str:
        port = "" if self.port == 22 else f"-p {self.port} "
        return (
            f"log in once by hand (ssh {port}{self.user}@{self.host}) and compare its fingerprint, "
            f"or: ssh-keyscan {port}{self.host} >>{self.known_hosts}"
        )


def _private_key(path: Path) -> asyncssh.SSHKey:
    try:
        return asyncssh.read_private_key(str(path), os.environ.get(PASSPHRASE))
    except OSError as error:
        raise UsageError(f"the private key {path} cannot be read: {error.strerror}") from error
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError) as error:
        raise MissingPrerequisite(
            f"the private key {path} cannot be used: {error}", advice=_unlock(error)
        ) from error


def _unlock(error: Exception) -> str:
    """What to do about an encrypted key. Only bcrypt can read OpenSSH's own form of such keys."""
    if "bcrypt" in str(error):
        return (
            "install bcrypt beside weighbridge (pip install bcrypt), or load the key into "
            "ssh-agent and leave `key` out"
        )
    return f"set its passphrase in ${PASSPHRASE}, or load it into ssh-agent and leave `key` out"
