"""Configuration of Apache and of the responder, from their settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weighbridge.gateways.apache.settings import STATS_PORT, ApacheSettings, Section, Value
from weighbridge.gateways.front import Backend

CONF = "/etc/weighbridge/apache/apache.conf"
RESPONDER_CONF = "/etc/weighbridge/apache/responder.conf"
ERROR_LOG = "apache.error.log"
PID_FILE = "/run/weighbridge-apache.pid"
STATUS_HOST = "status.weighbridge.invalid"
"""The virtual host that tells Apache's counters, to the host itself alone; no client asks for such
a name (RFC 6761).
"""
BARE = "WEIGHBRIDGE_BARE"
"""Defined, it leaves out what the layout adds, so that Apache can be asked what it knows."""

_FOLDER = "/etc/weighbridge/apache"
_MODULES = "/usr/lib/apache2/modules"
_SOCKET = "/run/weighbridge-responder.sock"
# radosgw ends connections that were silent for 65 s; Apache is to end them first.
_IDLE_S = 30


def apache_conf(
    settings: ApacheSettings, address: str, backends: Sequence[Backend], *, native: bool
) -> str:
    """The text of Apache's whole configuration. `native`: the backends speak FastCGI themselves."""
    mpm = settings.mpm
    server = [
        f'ServerRoot "{_FOLDER}"',
        'DefaultRuntimeDir "/run"',
        f'PidFile "{PID_FILE}"',
        f'ErrorLog "/var/log/host/{ERROR_LOG}"',
        "LogLevel warn",
        f"ServerName {address}",
        "ServerTokens Prod",
        "User www-data",
        "Group www-data",
        *(
            f'LoadModule {name}_module "{_MODULES}/mod_{name}.so"'
            for name in _modules(settings, len(backends), native=native)
        ),
        f"ServerLimit {mpm.server_limit}",
        f"ThreadLimit {mpm.thread_limit}",
        f"StartServers {mpm.start_servers}",
        f"MinSpareThreads {mpm.min_spare_threads}",
        f"MaxSpareThreads {mpm.max_spare_threads}",
        f"ThreadsPerChild {mpm.threads_per_child}",
        f"MaxRequestWorkers {mpm.max_request_workers}",
        f"MaxConnectionsPerChild {mpm.max_connections_per_child}",
        f"Timeout {settings.timeout:.0f}",
        f"KeepAlive {_on(settings.keep_alive)}",
        f"KeepAliveTimeout {settings.keep_alive_timeout:.0f}",
        f"MaxKeepAliveRequests {settings.keep_alive_requests}",
        "LimitRequestBody 0",
        f"EnableSendfile {_on(settings.sendfile)}",
        f"ExtendedStatus {_on(settings.extended_status)}",
        f"Listen {address}:{settings.port}",
    ]
    if settings.access_log:
        # %U is the path alone: a query may hold a signature.
        server.append(
            'CustomLog "/var/log/host/apache.access.log" "%h %t \\"%m %U %H\\" %>s %O %D"'
        )
    return "\n".join(
        [
            *server,
            "<Directory />",
            "  AllowOverride None",
            "  Require all denied",
            "</Directory>",
            *_own(settings, "server"),
            f"<VirtualHost *:{settings.port}>",
            *(f"  {line}" for line in _clients(settings, address, backends, native=native)),
            "</VirtualHost>",
            # On the clients' own port: with a second one, Apache would take turns at accepting,
            # under a lock.
            f"<VirtualHost *:{settings.port}>",
            f"  ServerName {STATUS_HOST}",
            '  <Location "/server-status">',
            "    SetHandler server-status",
            "    Require local",
            "  </Location>",
            "</VirtualHost>",
            "",
        ]
    )


def responder_conf(settings: ApacheSettings, address: str, backends: Sequence[Backend]) -> str:
    """The text of the responder's configuration: the options of its command line."""
    lines = [
        (
            "listen "
            f"{_SOCKET if settings.responder.socket == 'unix' else f'127.0.0.1:{settings.responder.port}'}"
        ),
        *(f"origin {one.address}:{one.port}" for one in backends),
        f"stats {address}:{STATS_PORT}",
        f"keep {settings.responder.keep}",
        f"timeout-s {settings.timeout:.0f}",
    ]
    return "\n".join(lines) + "\n"


def word(value: Value) -> str:
    """A value as Apache wants it: booleans are `On` and `Off`."""
    return _on(value) if isinstance(value, bool) else str(value)


def _modules(settings: ApacheSettings, backends: int, *, native: bool) -> tuple[str, ...]:
    path = "proxy_http" if settings.path == "http" else "proxy_fcgi"
    balancer = ("slotmem_shm", "proxy_balancer", f"lbmethod_{settings.balance}")
    wanted = (
        f"mpm_{settings.mpm.kind}",
        "authz_core",
        "authz_host",
        "env",
        "status",
        "proxy",
        path,
    )
    spread = _balanced(settings, backends, native=native)
    return tuple(dict.fromkeys((*wanted, *(balancer if spread else ()), *settings.modules)))


def _balanced(settings: ApacheSettings, backends: int, *, native: bool) -> bool:
    return backends > 1 and (settings.path == "http" or native)


def _clients(
    settings: ApacheSettings, address: str, backends: Sequence[Backend], *, native: bool
) -> list[str]:
    """The virtual host that clients find: the first one, whatever name they ask for."""
    lines = [
        f"ServerName {address}",
        # Neither is inherited from outside. Without them %2F is answered with 404, and // in a key
        # becomes /.
        "AllowEncodedSlashes NoDecode",
        "MergeSlashes Off",
        "ProxyPreserveHost On",
    ]
    location = []
    if settings.path == "http":
        lines.append("ProxyAddHeaders Off")
    else:
        # Since 2.4.59 the length of what a CGI-like program answers is not believed otherwise: HEAD
        # would lose it, and an answer that breaks off would end as if it were whole.
        lines.append("SetEnv ap_trust_cgilike_cl 1")
        # Only here is it valid; without it the Authorization header is not passed on.
        location.append("CGIPassAuth On")
    # With nocanon the target is passed as it came. With fcgi it must not stand: every request with
    # a query would be 403, and REQUEST_URI is as it came anyway.
    canon = " nocanon" if settings.path == "http" else ""
    shared = f"retry=0 timeout={settings.timeout:.0f} {_reuse(settings)}"
    if settings.path == "fastcgi":
        shared += f" flushpackets={settings.flush}"
    if _balanced(settings, len(backends), native=native):
        scheme = "http" if settings.path == "http" else "fcgi"
        lines.append('<Proxy "balancer://gateways">')
        lines += [
            f'  BalancerMember "{scheme}://{one.address}:{one.port}" {shared}' for one in backends
        ]
        lines += [
            f"  ProxySet lbmethod={settings.balance}",
            "</Proxy>",
            f'ProxyPass "/" "balancer://gateways/"{canon}',
        ]
    else:
        lines.append(
            f'ProxyPass "/" "{_target(settings, backends, native=native)}"{canon} {shared}'
        )
    location += _own(settings, "location")
    return [
        *lines,
        '<Location "/">',
        *(f"  {line}" for line in location),
        "</Location>",
        *_own(settings, "host"),
    ]


def _target(settings: ApacheSettings, backends: Sequence[Backend], *, native: bool) -> str:
    if settings.path == "http":
        return f"http://{backends[0].address}:{backends[0].port}/"
    if native:
        return f"fcgi://{backends[0].address}:{backends[0].port}/"
    if settings.responder.socket == "unix":
        return f"unix:{_SOCKET}|fcgi://localhost/"
    return f"fcgi://127.0.0.1:{settings.responder.port}/"


def _reuse(settings: ApacheSettings) -> str:
    if settings.path == "fastcgi":
        return f"enablereuse={_on(settings.reuse).lower()}"
    return f"ttl={_IDLE_S}" if settings.reuse else "disablereuse=on"


def _own(settings: ApacheSettings, section: Section) -> list[str]:
    """What the layout adds to a section.

    It comes last: of two directives that contradict each other Apache takes the later one.
    """
    directives: Mapping[str, Value] = settings.options.get(section, {})
    if not directives:
        return []
    return [
        f"<IfDefine !{BARE}>",
        *(f"  {name} {word(value)}" for name, value in directives.items()),
        "</IfDefine>",
    ]


def _on(flag: bool) -> str:
    return "On" if flag else "Off"
