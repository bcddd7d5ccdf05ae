"""What is kept of COSBench's own words beside the run: its script, figures and logs, without
secrets.
"""

from __future__ import annotations

import base64
import gzip
from typing import Final

from weighbridge.drivers.cosbench.access import StorageAccess
from weighbridge.drivers.cosbench.archive import Archived
from weighbridge.drivers.cosbench.script import Script
from weighbridge.drivers.order import KeptFile

LONG: Final = 32 * 1024
"""Texts of more characters are packed."""
LONGEST: Final = 4 * 1024 * 1024
"""Of longer ones the beginning is kept: a log has a line for each request where something asks for
it.
"""
_EXPANDED: Final = "workload-config.xml"


def kept(access: StorageAccess, script: Script, archived: Archived | None) -> tuple[KeptFile, ...]:
    """The script as it was handed in, and what its archive has beside the same script written out
    at length.
    """
    found = {"workload.xml": script.text}
    if archived is not None:
        found |= {name: archived.text(name) for name in archived.files if name != _EXPANDED}
        found["system.log"] = archived.system_log
    return tuple(one(name, access.redacted(text)) for name, text in found.items() if text)


def one(name: str, text: str) -> KeptFile:
    """A text to be kept, packed when it is long."""
    if len(text) <= LONG:
        return KeptFile(name=name, text=text)
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]}\n(cut here: {len(text)} characters in all)\n"
    return KeptFile(
        name=f"{name}.gz", packed=base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
    )
