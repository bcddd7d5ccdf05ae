"""The errors of the suite. Libraries raise them; only the command layer prints them and exits.

WeighbridgeError             exit 3
├── UsageError               exit 2   the request cannot be carried out; nothing was started
│   ├── DocumentError                 all faults of a YAML file, with positions (common.document)
│   └── MissingPrerequisite           a tool, a right or a resource of this machine is missing
├── TargetError              exit 3   a host or a gateway failed
│   ├── CommandFailed                 a command on a host failed
│   ├── ServiceFailed                 a service did not start or died; has its last log lines
│   ├── VerificationFailed            a gateway answered, but wrongly
│   └── LeftBehind                    what this suite made may be left where it outlives a run
│       ├── BucketsLeft               buckets that could not be deleted
│       └── ObjectsLeft               objects in a pool of a cluster that already ran
├── DriverError              exit 3   the load generator failed
└── InvalidMeasurement       exit 4   what was measured cannot be used

Anything else that reaches the command is a bug of the suite: exit 5, one line, details in a file.
"""

from __future__ import annotations

import errno
import os.path
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Final

EXIT_FINE = 0
EXIT_DIFFERENCE = 1
EXIT_USAGE = 2
EXIT_TARGET = 3
EXIT_INVALID = 4
EXIT_INTERNAL = 5

NAMED_BUCKETS: Final = 8
"""So many buckets are named one by one."""

DISK_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Error numbers of a disk, a quota or a file size limit that is exhausted."""


class WeighbridgeError(Exception):
    """Any error of the suite. `advice` says what to do about it, where known."""

    exit_code = EXIT_TARGET

    def __init__(self, message: str, *, advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice

    def __str__(self) -> str:
        return f"{self.message}\n{self.advice}" if self.advice else self.message


class UsageError(WeighbridgeError):
    """The request cannot be carried out; nothing was started."""

    exit_code = EXIT_USAGE


class MissingPrerequisite(UsageError):
    """A tool, a right or a resource of this machine is missing."""


class TargetError(WeighbridgeError):
    """A host or a gateway failed."""

    exit_code = EXIT_TARGET


class CommandFailed(TargetError):
    """A command on a host failed with exit status `code`; None if it took too long."""

    def __init__(
        self, host: str, argv: Sequence[str], code: int | None, output: str, *, advice: str = ""
    ) -> None:
        self.host = host
        self.argv = tuple(argv)
        self.code = code
        self.output = output
        how = "took too long" if code is None else f"ended with {code}"
        tail = "\n".join(output.splitlines()[-20:])
        super().__init__(f"{host}: {' '.join(argv)[:400]}: {how}\n{tail}".rstrip(), advice=advice)


class ServiceFailed(TargetError):
    """A service did not start or died. `log` is where its log is here, `tail` its last lines."""

    def __init__(
        self, host: str, service: str, what: str, *, log: str, tail: Sequence[str], advice: str = ""
    ) -> None:
        self.host = host
        self.service = service
        self.what = what
        self.log = log
        self.tail = tuple(tail)
        lines = "\n".join(f"  | {line}" for line in tail) or "  | (the log is empty)"
        super().__init__(f"{host}: {service}: {what}\nlast lines of {log}:\n{lines}", advice=advice)

    def with_log(self, log: str) -> ServiceFailed:
        """The same error with the log's new place: hosts go, their logs are kept elsewhere."""
        return ServiceFailed(
            self.host, self.service, self.what, log=log, tail=self.tail, advice=self.advice
        )


class VerificationFailed(TargetError):
    """A gateway answered, but not what the S3 or Swift API promises."""


class LeftBehind(TargetError):
    """What this suite made may be left; `words` says it in the last line of an interruption."""

    def __init__(self, message: str, words: str, *, advice: str = "") -> None:
        self.words = words
        super().__init__(message, advice=advice)


class ObjectsLeft(LeftBehind):
    """Objects that this suite made may be left in a pool; `where` names it and their namespace."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(
            f"objects that this run made may be left ({where}):\n  {reason}",
            f"objects that may be left: {where}",
            advice="Delete them when the cluster answers again (`weighbridge clean --hardware FILE "
            "LAYOUT` lists them); nothing else was touched.",
        )


class BucketsLeft(LeftBehind):
    """Buckets that this suite made may be left on a gateway that outlives its deployment."""

    def __init__(self, buckets: Sequence[str], reasons: Sequence[str]) -> None:
        self.buckets = tuple(buckets)
        super().__init__(
            "\n  ".join(("buckets that this run made may be left:", *reasons)),
            f"buckets that may be left: {name_buckets(self.buckets)}",
            advice="Delete them when the gateway answers again (`weighbridge clean` lists them); "
            "no other bucket was touched.",
        )


def name_buckets(buckets: Sequence[str]) -> str:
    """Buckets by name, or many of them by how their names begin."""
    if len(buckets) <= NAMED_BUCKETS:
        return ", ".join(buckets)
    start = os.path.commonprefix(list(buckets))  # noqa: RUF071 - of texts, not of paths
    return f"{len(buckets)} whose names begin with {start}"


class DriverError(WeighbridgeError):
    """The load generator failed."""

    exit_code = EXIT_TARGET


class InvalidMeasurement(WeighbridgeError):
    """What was measured cannot be used."""

    exit_code = EXIT_INVALID


EXTRA_OF: Final = {
    "asyncssh": ("hosts", "COSBench's archive over SSH"),
    "duckdb": ("sql", "queries and Parquet"),
    "influxdb_client": ("influx", "InfluxDB"),
    "lxml": ("slides", "slides"),
    "otava": ("history", "histories of runs"),
    "optuna": ("tune", "searches of settings"),
    "pptx": ("slides", "slides"),
    "trustme": ("hosts", "certificates of TLS"),
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
        f"{purpose} need module {module}, which is not installed",
        advice=install(extra),
    )


def install(extra: str) -> str:
    """How an extra is installed. Never by the package's name: no index has it, so that the name is
    anybody's.
    """
    setup = "make setup-history" if extra == "history" else "make setup"
    wheel = f'pip install "$(echo dist/weighbridge-*.whl)[{extra}]"'
    return f"Run `{setup}` in a checkout, or install the wheel's file with it: {wheel}"
