"""A search for secrets in everything a run leaves: every file, and what is packed in it."""

from __future__ import annotations

import base64
import binascii
import gzip
import io
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote
from xml.sax.saxutils import escape

import duckdb

_STREAM = re.compile(rb"stream\r?\n(.*?)\r?\nendstream", re.DOTALL)
_BASE64 = re.compile(rb"[A-Za-z0-9+/]{64,}={0,2}")


def find_secrets(folder: Path, secrets: Mapping[str, str]) -> list[str]:
    """Which secret is where below a folder, by name: `run/logs/a.gz: the key of S3`."""
    wanted = {name: _forms(secret) for name, secret in secrets.items()}
    return sorted(
        {
            f"{place.removeprefix(f'{folder}/')}: {name}"
            for path in sorted(folder.rglob("*"))
            for place, content in _parts(path)
            for name, forms in wanted.items()
            if any(form in content for form in forms)
        }
    )


def secrets_in(content: bytes, secrets: Mapping[str, str]) -> list[str]:
    return sorted(
        name for name, secret in secrets.items() if any(form in content for form in _forms(secret))
    )


def _forms(secret: str) -> tuple[bytes, ...]:
    texts = {
        secret,
        quote(secret, safe=""),
        escape(secret, {'"': "&quot;"}),
        secret.replace("/", "\\/"),
        base64.b64encode(secret.encode()).decode(),
    }
    return tuple(text.encode() for text in texts)


def _parts(path: Path) -> Iterator[tuple[str, bytes]]:
    """A file's name, its content, and its unpacked content."""
    yield str(path), str(path).encode()
    if not path.is_file():
        return
    content = path.read_bytes()
    yield from _unpacked(str(path), content)
    if path.suffix == ".parquet":
        with duckdb.connect() as database:
            rows = database.execute("SELECT * FROM read_parquet(?)", [str(path)]).fetchall()
            yield f"{path} (its values)", repr(rows).encode()


def _unpacked(name: str, content: bytes) -> Iterator[tuple[str, bytes]]:
    yield name, content
    if content.startswith(b"\x1f\x8b"):
        yield from _unpacked(f"{name} (unpacked)", gzip.decompress(content))
    if content.startswith(b"PK\x03\x04"):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for member in archive.namelist():
                yield from _unpacked(f"{name}/{member}", archive.read(member))
    if content.startswith(b"%PDF"):
        for number, stream in enumerate(_STREAM.findall(content)):
            yield f"{name} (stream {number})", _inflated(stream)
    if name.endswith((".hlog", ".jsonl", ".json")):
        for text in _BASE64.findall(content):
            yield f"{name} (base64)", _decoded(text)


def _inflated(data: bytes) -> bytes:
    try:
        return zlib.decompress(data)
    except zlib.error:
        return b""  # not deflated


def _decoded(text: bytes) -> bytes:
    """Decoded base64, and what is deflated in it (histograms: after a header of eight bytes)."""
    try:
        data = base64.b64decode(text)
    except binascii.Error:
        return b""  # not base64
    unpacked = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else b""
    return data + _inflated(data[8:]) + unpacked
