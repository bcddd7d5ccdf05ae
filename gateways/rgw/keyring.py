"""cephx keys and the one keyring of a deployment, written here instead of by `ceph auth`: the mon
imports it when it is made.
"""

from __future__ import annotations

import base64
import secrets
import struct
import time
from collections.abc import Mapping, Sequence
from typing import Literal

_SECRET_BYTES = {1: 16, 2: 32}


def new_key(kind: Literal[1, 2]) -> str:
    """A fresh random key: base64 of u16 kind, u32 seconds, u32 nanoseconds, u16 length (little
    endian) and the secret.
    """
    length = _SECRET_BYTES[kind]
    return base64.b64encode(
        struct.pack("<HIIH", kind, int(time.time()), 0, length) + secrets.token_bytes(length)
    ).decode()


def keyring(kind: Literal[1, 2], osds: int, gateways: Sequence[str]) -> str:
    """The keyring of a mon, a mgr named a, OSDs 0 to `osds` - 1, the named gateways and the
    administrator, each with its caps.
    """
    entities: dict[str, Mapping[str, str]] = {
        "mon.": {"mon": "allow *"},
        "client.admin": {"mon": "allow *", "osd": "allow *", "mgr": "allow *", "mds": "allow *"},
        "mgr.a": {"mon": "allow profile mgr", "osd": "allow *", "mds": "allow *"},
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
