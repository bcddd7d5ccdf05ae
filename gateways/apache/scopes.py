"""Which of Apache's settings a graceful restart applies, and which need a stop and a start.

At a restart Apache ignores a changed ServerLimit and ThreadLimit, since the scoreboard keeps its
size (httpd 2.4, mpm_common: "any attempts to change this directive during a restart will be
ignored"), refuses another MPM, and keeps its listening sockets (listen.c), with their backlog and
buffers. StartServers matters only at start. Anything not listed here is stopped and started.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from weighbridge.common.scope import Scope

_GRACEFUL_SETTINGS: Final = frozenset(
    {
        *("mpm.min_spare_threads", "mpm.max_spare_threads", "mpm.threads_per_child"),
        *("mpm.max_request_workers", "mpm.max_connections_per_child"),
        # Not `timeout`, which the responder uses too, nor `reuse` and `flush`: members of a
        # balancer keep them in memory.
        *("keep_alive", "keep_alive_timeout", "keep_alive_requests"),
        *("access_log", "sendfile", "extended_status"),
    }
)

_GRACEFUL: Final = frozenset(
    name.lower()
    for name in (
        *("MinSpareThreads", "MaxSpareThreads", "ThreadsPerChild", "MaxRequestWorkers"),
        *("MaxConnectionsPerChild", "AsyncRequestWorkerFactor", "MaxMemFree", "ThreadStackSize"),
        *("GracefulShutdownTimeout", "RequestReadTimeout", "Timeout"),
        *("KeepAlive", "KeepAliveTimeout", "MaxKeepAliveRequests"),
        *("EnableSendfile", "EnableMMAP", "ReadBufferSize"),
        *("FlushMaxThreshold", "FlushMaxPipelined", "ExtendedStatus"),
        *("CustomLog", "LogLevel", "LogFormat", "BufferedLogs", "HostnameLookups"),
        *("UseCanonicalName", "FileETag", "SetEnv", "SetEnvIf", "Header", "RequestHeader"),
        *("LimitRequestBody", "LimitRequestFields", "LimitRequestFieldSize", "LimitRequestLine"),
        *("ProxyPass", "ProxyTimeout", "ProxyIOBufferSize", "ProxyReceiveBufferSize"),
        *("ProxyAddHeaders", "ProxyVia"),
    )
)
"""Directives, in lower case, that the next generation of child processes uses."""


def scope(key: str) -> Scope:
    """The least restart for a setting of Apache to take effect, by its key below `apache`."""
    if key in {"port", "tls"}:
        return "cluster"
    first, _, rest = key.partition(".")
    if first == "options":
        return "reload" if rest.rpartition(".")[2].lower() in _GRACEFUL else "restart"
    return "reload" if key in _GRACEFUL_SETTINGS else "restart"


def graceful(before: str, after: str) -> bool:
    """Whether a graceful restart is enough to go from one configuration to the other."""
    lines = [Counter(line.strip() for line in text.splitlines()) for text in (before, after)]
    differing = (lines[0] - lines[1]) + (lines[1] - lines[0])
    # The container of the layout's own directives comes and goes with the first and last of them.
    named = {
        line.split(maxsplit=1)[0].lower()
        for line in differing
        if not line.startswith(("<IfDefine", "</IfDefine"))
    }
    return before == after or (bool(named) and named <= _GRACEFUL)
