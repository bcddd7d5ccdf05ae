"""The configuration files of Apache and of the responder."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import ClassVar

from weighbridge.common.address import bracketed, host_port
from weighbridge.gateways.apache.settings import STATS_PORT, ApacheSettings, Section, Value
from weighbridge.gateways.certificates import SERVER_FILE
from weighbridge.gateways.file_grammar import FileGrammar, Reading
from weighbridge.gateways.front import Backend

CONF = "/etc/weighbridge/apache/apache.conf"
RESPONDER_CONF = "/etc/weighbridge/apache/responder.conf"
ERROR_LOG = "apache.error.log"
PID_FILE = "/run/weighbridge-apache.pid"
STATUS_HOST = "status.weighbridge.invalid"
"""The virtual host for Apache's counters, on the host only; no client asks for it (RFC 6761)."""
BARE = "WEIGHBRIDGE_BARE"
"""When defined, the layout's own directives are left out, so that Apache can list what it knows."""

_FOLDER = "/etc/weighbridge/apache"
_SOCKET = "/run/weighbridge-responder.sock"
# The size of Debian's own ssl.conf.
_SESSIONS = "shmcb:/run/weighbridge-apache-sessions(512000)"
# radosgw closes connections that were silent for 65 s; Apache must close them first.
_IDLE_S = 30


def apache_conf(
    settings: ApacheSettings, address: str, backends: Sequence[Backend], *, native: bool
) -> str:
    """Apache's complete configuration. `native`: the backends speak FastCGI themselves."""
    mpm = settings.mpm
    server = [
        f'ServerRoot "{_FOLDER}"',
        'DefaultRuntimeDir "/run"',
        f'PidFile "{PID_FILE}"',
        f'ErrorLog "/var/log/host/{ERROR_LOG}"',
        "LogLevel warn",
        f"ServerName {bracketed(address)}",
        "ServerTokens Prod",
        "User www-data",
        "Group www-data",
        *(
            f'LoadModule {name}_module "/usr/lib/apache2/modules/mod_{name}.so"'
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
        f"Listen {host_port(address, settings.port)}",
    ]
    if settings.tls:
        server += ["SSLProtocol -all +TLSv1.2 +TLSv1.3", f'SSLSessionCache "{_SESSIONS}"']
    if settings.access_log:
        # %U is the path only: a query may contain a signature.
        server.append(
            'CustomLog "/var/log/host/apache.access.log" "%h %t \\"%m %U %H\\" %>s %O %D"'
        )
    secured = ("SSLEngine On", f'SSLCertificateFile "{SERVER_FILE}"') if settings.tls else ()
    return "\n".join(
        [
            *server,
            "<Directory />",
            "  AllowOverride None",
            "  Require all denied",
            "</Directory>",
            *_own(settings, "server"),
            f"<VirtualHost *:{settings.port}>",
            *(f"  {line}" for line in secured),
            *(f"  {line}" for line in _clients(settings, address, backends, native=native)),
            "</VirtualHost>",
            # On the clients' own port: with a second one, Apache would serialise accepts with a
            # lock.
            f"<VirtualHost *:{settings.port}>",
            f"  ServerName {STATUS_HOST}",
            *(f"  {line}" for line in secured),
            '  <Location "/server-status">',
            "    SetHandler server-status",
            "    Require local",
            "  </Location>",
            "</VirtualHost>",
            "",
        ]
    )


def responder_conf(settings: ApacheSettings, address: str, backends: Sequence[Backend]) -> str:
    """The responder's configuration: the options of its command line."""
    responder = settings.responder
    listen = _SOCKET if responder.socket == "unix" else f"127.0.0.1:{responder.port}"
    lines = [
        f"listen {listen}",
        *(f"origin {host_port(one.address, one.port)}" for one in backends),
        f"stats {host_port(address, STATS_PORT)}",
        f"keep {responder.keep}",
        f"timeout-s {settings.timeout:.0f}",
    ]
    return "\n".join(lines) + "\n"


def word(value: Value) -> str:
    """A value as Apache spells it: booleans are `On` and `Off`."""
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
    spread = balancer if _balanced(settings, backends, native=native) else ()
    secured = ("socache_shmcb", "ssl", "headers") if settings.tls else ()
    return tuple(dict.fromkeys((*wanted, *spread, *secured, *settings.modules)))


def _balanced(settings: ApacheSettings, backends: int, *, native: bool) -> bool:
    return backends > 1 and (settings.path == "http" or native)


def _clients(
    settings: ApacheSettings, address: str, backends: Sequence[Backend], *, native: bool
) -> list[str]:
    """The clients' virtual host: the first one, used for any name they ask for."""
    lines = [
        f"ServerName {bracketed(address)}",
        # Neither is inherited from the server. Without them %2F is answered with 404, and // in a
        # key becomes /.
        "AllowEncodedSlashes NoDecode",
        "MergeSlashes Off",
        "ProxyPreserveHost On",
    ]
    if settings.tls:
        lines.append('RequestHeader set X-Forwarded-Proto "https"')
    location = []
    if settings.path == "http":
        lines.append("ProxyAddHeaders Off")
    else:
        # Since 2.4.59 Apache ignores the Content-Length of a CGI-like program otherwise: HEAD would
        # lose it, and a truncated answer would look complete.
        lines.append("SetEnv ap_trust_cgilike_cl 1")
        # Valid only here; without it the Authorization header is not passed on.
        location.append("CGIPassAuth On")
    # nocanon passes the target unchanged. With fcgi it must be left out: every request with a query
    # would get 403, and REQUEST_URI is unchanged anyway.
    canon = " nocanon" if settings.path == "http" else ""
    shared = f"retry=0 timeout={settings.timeout:.0f} {_reuse(settings)}"
    if settings.path == "fastcgi":
        shared += f" flushpackets={settings.flush}"
    if _balanced(settings, len(backends), native=native):
        scheme = "http" if settings.path == "http" else "fcgi"
        lines.append('<Proxy "balancer://gateways">')
        lines += [
            f'  BalancerMember "{scheme}://{host_port(one.address, one.port)}" {shared}'
            for one in backends
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
        return f"http://{host_port(backends[0].address, backends[0].port)}/"
    if native:
        return f"fcgi://{host_port(backends[0].address, backends[0].port)}/"
    if settings.responder.socket == "unix":
        return f"unix:{_SOCKET}|fcgi://localhost/"
    return f"fcgi://127.0.0.1:{settings.responder.port}/"


def _reuse(settings: ApacheSettings) -> str:
    if settings.path == "fastcgi":
        return f"enablereuse={_on(settings.reuse).lower()}"
    return f"ttl={_IDLE_S}" if settings.reuse else "disablereuse=on"


def _own(settings: ApacheSettings, section: Section) -> list[str]:
    """The layout's own directives for a section.

    They come last: Apache takes the later of two contradicting directives.
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


class ApacheGrammar(FileGrammar):
    """apache.conf: containers within containers."""

    names: ClassVar[tuple[str, ...]] = ("apache.conf",)
    where: ClassVar[str] = (
        "Where: put lines outside containers at the end of the configuration, where the later "
        "line wins (but load only one MPM). Put lines of a container into the existing one: of "
        "two virtual hosts of an address Apache uses only the first. ServerLimit, "
        "ThreadLimit and another MPM need a stop and a start, not a reload."
    )
    indent: ClassVar[str] = "  "
    of_two: ClassVar[frozenset[str]] = frozenset({"SetEnv", "BalancerMember", "CustomLog"})

    def reads(self, raw: str) -> Reading:
        """See FileGrammar. `<IfDefine !...>` is this suite's own: see BARE."""
        line = raw.strip()
        if line.startswith("</"):
            return "end"
        if line.startswith("<"):
            own = re.fullmatch(r"<IfDefine !WEIGHBRIDGE_\w+>", line)
            return "transparent" if own else "container"
        return "line"

    def about(self, line: str) -> str:
        """A module is its own key, so that only an MPM replaces another one."""
        words = line.split()
        if words[0] == "LoadModule":
            return "mpm" if words[1].startswith("mpm_") else words[1]
        return super().about(line)

    def ending(self, head: str) -> str:
        return f"</{head[1:].split(maxsplit=1)[0].rstrip('>')}>"


GRAMMAR = ApacheGrammar()
