"""The toy store's program as a wheel of PyPI has it: the same bytes each time."""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path

NAME = "toy_server_bin-1.0-py3-none-any.whl"


def wheel() -> bytes:
    """Its bytes."""
    server = Path(__file__).with_name("toy_server.py").read_text(encoding="utf-8")
    metadata = "toy_server_bin-1.0.dist-info"
    files = {
        "toy_server_bin-1.0.data/scripts/toy-server": f"#!/usr/bin/python3\n{server}",
        f"{metadata}/METADATA": "Metadata-Version: 2.1\nName: toy-server-bin\nVersion: 1.0\n",
        f"{metadata}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-any\n",
        f"{metadata}/RECORD": "",
    }
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for path, text in files.items():
            archive.writestr(zipfile.ZipInfo(path), text)
    return made.getvalue()


def sha256() -> str:
    """Its sum, which a store of a real program has as a constant."""
    return hashlib.sha256(wheel()).hexdigest()
