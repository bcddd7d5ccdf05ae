"""The configuration files of a deployment with their secrets, and its cephx keyring."""

from __future__ import annotations

import base64
import secrets
import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from weighbridge.common.host import Host
from weighbridge.gateways import ini
from weighbridge.gateways.gateway import Rendered
from weighbridge.gateways.together import together

_SECRET_BYTES = {1: 16, 2: 32}


@dataclass(frozen=True)
class HostFile:
    """One file of one host. `secrets` are the parts of its text that must not be shown."""

    host: str
    path: str
    text: str
    secrets: tuple[str, ...] = ()

    @property
    def mode(self) -> int:
        """File permissions: one with secrets is for root only."""
        return 0o600 if self.secrets else 0o644


@dataclass(frozen=True)
class Files:
    """All files of a deployment."""

    files: Sequence[HostFile]

    def write(self, hosts: Mapping[str, Host]) -> None:
        """Write them to their hosts. Raises TargetError."""

        def put(name: str) -> None:
            for file in self.files:
                if file.host == name:
                    hosts[name].put(file.path, file.text, mode=file.mode)

        together([partial(put, name) for name in dict.fromkeys(file.host for file in self.files)])

    def shown(self) -> tuple[Rendered, ...]:
        """The files with `***` for secrets."""
        return tuple(
            Rendered(host=file.host, path=file.path, text=ini.mask(file.text, file.secrets))
            for file in self.files
        )


def new_key(kind: Literal[1, 2]) -> str:
    """A random key: base64 of u16 kind, u32 s, u32 ns, u16 length (little endian), secret."""
    length = _SECRET_BYTES[kind]
    return base64.b64encode(
        struct.pack("<HIIH", kind, int(time.time()), 0, length) + secrets.token_bytes(length)
    ).decode()


def keyring(
    kind: Literal[1, 2], osds: int, gateways: Sequence[str], *, mgrs: Sequence[str] = ("a",)
) -> str:
    """The keyring, with caps, of the mons, mgrs, OSDs and gateways, and of an administrator."""
    entities: dict[str, Mapping[str, str]] = {
        "mon.": {"mon": "allow *"},
        "client.admin": {"mon": "allow *", "osd": "allow *", "mgr": "allow *", "mds": "allow *"},
    }
    entities |= {
        f"mgr.{one}": {"mon": "allow profile mgr", "osd": "allow *", "mds": "allow *"}
        for one in mgrs
    }
    entities |= {
        f"osd.{number}": {"mon": "allow profile osd", "mgr": "allow profile osd", "osd": "allow *"}
        for number in range(osds)
    }
    entities |= {
        name: {"mon": "allow rw", "mgr": "allow rw", "osd": "allow rwx"} for name in gateways
    }
    lines = []
    for name, caps in entities.items():
        lines += [
            f"[{name}]",
            f"key = {new_key(kind)}",
            *(f'caps {what} = "{caps[what]}"' for what in caps),
        ]
    return "\n".join(lines) + "\n"
