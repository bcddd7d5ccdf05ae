"""What of Apache's settings a graceful restart takes, and what it takes only when it is stopped and
started.

Apache ignores a changed ServerLimit and ThreadLimit at a restart, since the scoreboard keeps its
size (httpd 2.4, mpm_common: "any attempts to change this directive during a restart will be
ignored"), refuses another MPM, and keeps sockets that it listens on as they were made (listen.c),
with their backlog and buffers. StartServers is about its start alone. What is not known here to be
taken is stopped and started for.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from weighbridge.common.scope import Scope

_GRACEFUL_SETTINGS: Final = frozenset(
    {
        *(
            f"mpm.{name}"
            for name in (
                "min_spare_threads",
                "max_spare_threads",
                "threads_per_child",
                "max_request_workers",
            )
        ),
        "mpm.max_connections_per_child",
        # Not `timeout`, which the responder has too, nor `reuse` and `flush`: members of a balancer
        # have them in memory that stays.
        *("keep_alive", "keep_alive_timeout", "keep_alive_requests"),
        *("access_log", "sendfile", "extended_status"),
    }
)

_GRACEFUL: Final = frozenset(
    name.lower()
    for name in (
        *(
            "MinSpareThreads",
            "MaxSpareThreads",
            "ThreadsPerChild",
            "MaxRequestWorkers",
            "MaxConnectionsPerChild",
        ),
        *("AsyncRequestWorkerFactor", "MaxMemFree", "ThreadStackSize", "GracefulShutdownTimeout"),
        *("KeepAlive", "KeepAliveTimeout", "MaxKeepAliveRequests", "Timeout", "RequestReadTimeout"),
        *(
            "EnableSendfile",
            "EnableMMAP",
            "FlushMaxThreshold",
            "FlushMaxPipelined",
            "ReadBufferSize",
        ),
        *("ExtendedStatus", "CustomLog", "LogLevel", "LogFormat", "BufferedLogs"),
        *(
            "HostnameLookups",
            "UseCanonicalName",
            "FileETag",
            "SetEnv",
            "SetEnvIf",
            "Header",
            "RequestHeader",
        ),
        *("LimitRequestBody", "LimitRequestFields", "LimitRequestFieldSize", "LimitRequestLine"),
        *(
            "ProxyPass",
            "ProxyTimeout",
            "ProxyIOBufferSize",
            "ProxyReceiveBufferSize",
            "ProxyAddHeaders",
            "ProxyVia",
        ),
    )
)
"""Directives, in lower case, that child processes of the next generation take."""


def scope(key: str) -> Scope:
    """The least that must be done for a setting of Apache to count, by its dotted key below
    `apache`.
    """
    if key == "port":
        return "cluster"
    first, _, rest = key.partition(".")
    if first == "options":
        return "reload" if rest.rpartition(".")[2].lower() in _GRACEFUL else "restart"
    return "reload" if key in _GRACEFUL_SETTINGS else "restart"


def graceful(before: str, after: str) -> bool:
    """Whether a graceful restart takes the step from one configuration to the other."""
    lines = [Counter(line.strip() for line in text.splitlines()) for text in (before, after)]
    differing = (lines[0] - lines[1]) + (lines[1] - lines[0])
    # The bracket that only our own additions stand in comes and goes with the first and last of
    # them.
    named = {
        line.split(maxsplit=1)[0].lower()
        for line in differing
        if not line.startswith(("<IfDefine", "</IfDefine"))
    }
    return before == after or (bool(named) and named <= _GRACEFUL)
