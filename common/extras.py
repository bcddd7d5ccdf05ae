"""What a client does without: modules that come with an extra of this package."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from weighbridge.common.errors import MissingPrerequisite

EXTRA_OF: Final = {
    "asyncssh": ("hosts", "hosts over SSH"),
    "cryptography": ("hosts", "certificates of TLS"),
    "duckdb": ("sql", "queries and Parquet"),
    "influxdb_client": ("influx", "InfluxDB"),
    "lxml": ("slides", "slides"),
    "otava": ("history", "histories of runs"),
    "optuna": ("tune", "searches of settings"),
    "PIL": ("slides", "slides"),
    "pptx": ("slides", "slides"),
    "vl_convert": ("report", "charts and reports"),
}
"""By module: the extra of pyproject.toml that has it, and what it is for."""


def installed(module: str) -> bool:
    """Whether a module of an extra can be imported; it is not."""
    return find_spec(module) is not None


def need(*modules: str) -> None:
    """Raise MissingPrerequisite for the first of these modules that is not installed."""
    for module in modules:
        if not installed(module):
            raise missing(module)


def missing(module: str) -> MissingPrerequisite:
    """The error for a module of an extra that is not installed. Raises KeyError for others."""
    extra, purpose = EXTRA_OF[module]
    return MissingPrerequisite(
        f"{purpose} need module {module}, which is not installed: run "
        f"pip install 'weighbridge[{extra}]'"
    )
