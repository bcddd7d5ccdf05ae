from __future__ import annotations

import os
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Final

from weighbridge.common import safe_files
from weighbridge.common.paths import expanded

LARGEST_BYTES: Final = 16 << 20
"""Of a kept script; that of Vega-Lite 6.4 has 0.9 MB."""


def vega_bundle() -> str:
    """Sets `window.vegaEmbed`. Bundling takes 2 s of CPU, so it is kept in the user's cache, by
    vl-convert's version; a cache that fails costs those seconds alone.
    """
    cache = expanded(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    name = f"weighbridge/vega-{metadata.version('vl-convert-python')}.js"
    script = _kept(cache, name) if cache.is_absolute() else None
    if script is None:
        import vl_convert as vlc  # noqa: PLC0415 - an extra, and slow to import

        script = vlc.javascript_bundle("window.vegaEmbed=vegaEmbed;")
        if cache.is_absolute():
            with suppress(OSError):
                cache.mkdir(parents=True, exist_ok=True, mode=0o700)
                safe_files.write(cache, name, script.encode(), mode=0o600)
    return script


def _kept(cache: Path, name: str) -> str | None:
    """What was kept before, if nobody but this user can have written it: a page runs it."""
    try:
        with safe_files.open_to_read(cache, name, largest_bytes=LARGEST_BYTES) as file:
            status = os.fstat(file.fileno())
            if status.st_uid != os.geteuid() or status.st_mode & 0o022:
                return None
            return file.read().decode()
    except (OSError, UnicodeDecodeError):
        return None
