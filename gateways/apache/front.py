"""Apache as a front: its configuration, check, daemons, facts and counters."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field, field_validator, model_validator

from weighbridge.common.document import did_you_mean
from weighbridge.common.endpoint import bracketed, host_port
from weighbridge.common.errors import CommandFailed, MissingPrerequisite, UsageError
from weighbridge.common.host import Host, Service
from weighbridge.common.quantities import Seconds
from weighbridge.common.record import Record
from weighbridge.common.structure import CounterFigure, DaemonCounters, Scope
from weighbridge.gateways import config_text
from weighbridge.gateways.certificates import CA_FILE, SERVER_FILE
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.front import Backend, Behind, Front, FrontSettings, template
from weighbridge.gateways.options import Option, rows, values
from weighbridge.gateways.probe import FileGrammar, Reading

Count = Annotated[int, Field(ge=1)]
Port = Annotated[int, Field(ge=1, le=65535)]
Wait = Annotated[Seconds, Field(ge=1)]
Section = Literal["server", "host", "location"]
Value = config_text.Value
_MPM, _CLIENTS, _ANSWERS = "mpm", "clients", "answers"
"""Groups of directives."""

STATS_PORT = 9980
"""The port of the responder's counters; not one that radosgw, Swift or front ends usually have."""

_OWN = {
    "listen": "port",
    "maxclients": "mpm: max_request_workers",
    "maxrequestsperchild": "mpm: max_connections_per_child",
    "proxypass": "path, reuse and flush",
    "loadmodule": "modules",
    **dict.fromkeys(("sslengine", "sslcertificatefile", "sslcertificatekeyfile"), "tls"),
}
"""Directives that these settings write, beside those of rows, in lower case with the setting."""


class MpmSettings(Record):
    """Apache's processes and threads.

    The defaults are those of the 2014 study, `StartServers 20, MinSpareThreads 30, ThreadsPerChild
    128, MaxClients 4096, MaxRequestsPerChild 10000`, except for three figures. It had `ServerLimit
    4096` and `ThreadLimit 200`: with 128 threads each, 4096 clients never need more than 32
    processes, so these only change the size of the scoreboard, 269 MB of shared memory (measured
    with 2.4.71), too much for a host of 1 GiB; 32 and 128 are enough. For its `MaxSpareThreads 100`
    see below.
    """

    kind: Literal["worker", "event"] = "worker"
    """`event` frees threads from idle connections."""
    server_limit: Annotated[int, Field(ge=1, le=20000), Option(_MPM, "ServerLimit")] = 32
    """Processes at most; with `thread_limit`, the size of the scoreboard."""
    thread_limit: Annotated[int, Field(ge=1, le=20000), Option(_MPM, "ThreadLimit")] = 128
    """Threads of a process at most."""
    start_servers: Annotated[Count, Option(_MPM, "StartServers")] = 20
    """Processes at the start."""
    min_spare_threads: Annotated[Count, Option(_MPM, "MinSpareThreads", "reload")] = 30
    """With fewer idle threads Apache starts processes."""
    max_spare_threads: Annotated[Count, Option(_MPM, "MaxSpareThreads", "reload")] = 4096
    """With more idle threads Apache ends processes, one a second, and breaks their connections:
    clients see resets. With the study's 100 that begins as soon as its 20 processes have started,
    and again after each step. Apache uses at least min_spare_threads + threads_per_child."""
    threads_per_child: Annotated[Count, Option(_MPM, "ThreadsPerChild", "reload")] = 128
    """Threads of each process."""
    max_request_workers: Annotated[Count, Option(_MPM, "MaxRequestWorkers", "reload")] = 4096
    """Connections served at once; at least the number of workers."""
    max_connections_per_child: Annotated[
        int, Field(ge=0), Option(_MPM, "MaxConnectionsPerChild", "reload")
    ] = 10000
    """Connections after which a process ends, perhaps in the middle of a step; 0: never."""

    @model_validator(mode="after")
    def _fits(self) -> MpmSettings:
        each, workers = self.threads_per_child, self.max_request_workers
        least, most = self.start_servers * each, self.server_limit * each
        spare, at_most = self.min_spare_threads, self.max_spare_threads
        named = f"max_request_workers {workers}"
        faults = {
            f"threads_per_child {each} is above thread_limit {self.thread_limit}": (
                each > self.thread_limit
            ),
            f"{named} is not a multiple of threads_per_child {each}: Apache would use less": (
                workers % each > 0
            ),
            f"{named} is above server_limit {self.server_limit} x threads_per_child {each} = "
            f"{most}: Apache would use less": workers > most,
            f"start_servers {self.start_servers} x threads_per_child {each} is above {named}": (
                least > workers
            ),
            f"min_spare_threads {spare} is above max_spare_threads {at_most}": spare > at_most,
        }
        for fault, there in faults.items():
            if there:
                raise ValueError(fault)
        return self


class ResponderSettings(Record):
    """The FastCGI responder between Apache and a radosgw without FastCGI."""

    socket: Literal["unix", "tcp"] = "unix"
    """How Apache reaches it. radosgw's own front end had both (`socket_path`, `socket_port`)."""
    port: Port = 9000
    """The loopback port with `socket: tcp`; the port in Ceph's FastCGI documentation."""
    keep: Annotated[int, Field(ge=0)] = 1024
    """Idle connections kept to each radosgw."""


class ApacheSettings(FrontSettings):
    """Apache's settings."""

    path: Literal["http", "fastcgi"] = "http"
    """The protocol to the backends: mod_proxy_http, or mod_proxy_fcgi."""
    mpm: MpmSettings = MpmSettings()
    timeout: Annotated[Wait, Option(_CLIENTS, "Timeout", spell=round)] = 600.0
    """How long a client, radosgw or the responder may be silent: as in the HAProxy layouts."""
    keep_alive: Annotated[bool, Option(_CLIENTS, "KeepAlive", "reload")] = True
    """Whether clients may keep their connections."""
    keep_alive_timeout: Annotated[
        Wait, Option(_CLIENTS, "KeepAliveTimeout", "reload", spell=round)
    ] = 15.0
    """Apache's own default of 5 s would close connections of workers that pause. Keep it short:
    with `worker` a thread waits that long, and when a backend of mod_proxy_fcgi dies within an
    answer, 2.4.71 closes the client's connection only afterwards."""
    keep_alive_requests: Annotated[
        int, Field(ge=0), Option(_CLIENTS, "MaxKeepAliveRequests", "reload")
    ] = 0
    """Requests on a connection before it is closed; 0: any number. Apache's own default of 100
    makes clients reconnect.
    """
    reuse: bool = True
    """Whether connections to backends are kept between requests."""
    flush: Literal["on", "off", "auto"] = "on"
    """mod_proxy_fcgi's flushpackets. With `off` a slow answer arrives in one piece at its end."""
    balance: Literal["byrequests", "bytraffic", "bybusyness"] = "byrequests"
    """How a backend is chosen. The responder, where it is used, takes them in turn."""
    responder: ResponderSettings = ResponderSettings()
    access_log: Annotated[bool, Option(name="CustomLog", scope="reload")] = False
    """Write a line for each request to apache.access.log, without the query."""
    sendfile: Annotated[bool, Option(_ANSWERS, "EnableSendfile", "reload")] = False
    """EnableSendfile: for Apache's own files, of which a proxy has none."""
    extended_status: Annotated[bool, Option(_ANSWERS, "ExtendedStatus", "reload")] = True
    """Whether Apache counts requests and bytes, at two clock reads each; False: only workers."""
    modules: tuple[Annotated[str, Field(pattern=r"^[a-z0-9_]+$")], ...] = ()
    """Further modules, such as `headers`, for directives under `options`."""
    options: dict[
        Section, dict[Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9]*$")], Value]
    ] = Field(default_factory=dict)
    """Further directives by name: of the server, of the clients' virtual host, of its `<Location
    "/">`; `apache2 -t` checks them.
    """

    @field_validator("options")
    @classmethod
    def _addable(cls, options: dict[Section, dict[str, Value]]) -> dict[Section, dict[str, Value]]:
        settings = {row.name.lower(): row.key.replace(".", ": ") for row in rows(cls)} | _OWN
        for section, directives in options.items():
            for name, value in directives.items():
                if value == "":
                    raise ValueError(f"{section}: the value of {name} is not one line: it is empty")
                own = settings.get(name.lower())
                if own is not None:
                    raise ValueError(f"{section}: {name} is set by `{own}`")
        return options


CONF = "/etc/weighbridge/apache/apache.conf"
RESPONDER_CONF = "/etc/weighbridge/apache/responder.conf"
ERROR_LOG = "apache.error.log"
PID_FILE = "/run/weighbridge-apache.pid"
STATUS_HOST = "status.weighbridge.invalid"
"""The virtual host for Apache's counters, on the host only; no client asks for it (RFC 6761)."""
BARE = "WEIGHBRIDGE_BARE"
"""When defined, the layout's own directives are left out, so that Apache can list what it knows."""

_SOCKET = "/run/weighbridge-responder.sock"


def _directives(settings: ApacheSettings, group: str) -> dict[str, str]:
    """Those of rows."""
    return {name: word(value) for name, value in values(settings)[group].items()}


def word(value: Value) -> str:
    """A value as Apache spells it: booleans are `On` and `Off`."""
    return ("On" if value else "Off") if isinstance(value, bool) else str(value)


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
        """`<IfDefine !...>` is this suite's own: see BARE."""
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


# Which directives a graceful restart applies, and which need a stop and a start.
#
# At a restart Apache ignores a changed ServerLimit and ThreadLimit, since the scoreboard keeps
# its size (httpd 2.4, mpm_common: "any attempts to change this directive during a restart will be
# ignored"), refuses another MPM, and keeps its listening sockets (listen.c), with their backlog
# and buffers. StartServers matters only at start. The setting `timeout` is the responder's too, and
# members of a balancer keep those of `reuse` and `flush` in memory. Anything not listed here, nor a
# row that says so, is stopped and started.
_GRACEFUL: Final = frozenset(
    name.lower()
    for name in (
        *(row.name for row in rows(ApacheSettings) if row.option.scope == "reload"),
        *("AsyncRequestWorkerFactor", "MaxMemFree", "ThreadStackSize", "GracefulShutdownTimeout"),
        *("RequestReadTimeout", "Timeout", "EnableMMAP", "ReadBufferSize"),
        *("FlushMaxThreshold", "FlushMaxPipelined", "LogLevel", "LogFormat", "BufferedLogs"),
        *("HostnameLookups", "UseCanonicalName", "FileETag", "SetEnv", "SetEnvIf", "Header"),
        *("RequestHeader", "LimitRequestBody", "LimitRequestFields", "LimitRequestFieldSize"),
        *("LimitRequestLine", "ProxyPass", "ProxyTimeout", "ProxyIOBufferSize"),
        *("ProxyReceiveBufferSize", "ProxyAddHeaders", "ProxyVia"),
    )
)
"""Directives, in lower case, that the next generation of child processes uses."""


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


RESPONDER = Path(__file__).with_name("fastcgi_responder")
"""The responder's program, built by `make setup`: statically linked, to run on any release."""

_APACHE = ("apache2", "-f", CONF)
_RESPONDER_ON_HOST = "/usr/local/lib/weighbridge/fastcgi_responder"
_LEFT = 3
_SPARE_S = 30.0
_IGNORED = re.compile(r"not allowed during (?:a )?restart")
"""How Apache's log reports a changed directive, such as ServerLimit, that it ignores at a graceful
restart (worker.c, event.c).
"""
_REFUSED = 1
_DIRECTIVE = re.compile(r"^<?(?P<name>[A-Za-z][A-Za-z0-9_]*) \(\S+\)$", re.MULTILINE)
_PLACE = re.compile(r"Syntax error on line (?P<line>\d+) of \S+:\s*(?P<words>.*)", re.DOTALL)


class Apache(Front):
    """Apache with its settings. It needs no responder where the daemons behind it speak FastCGI."""

    label: ClassVar[str] = "Apache"
    Settings: ClassVar[type[FrontSettings]] = ApacheSettings
    packages: ClassVar[tuple[str, ...]] = ("apache2-bin",)
    stores: ClassVar[tuple[str, ...]] = ("rgw",)
    """Its configuration and facts are about radosgw: FastCGI, or the HTTP that replaced it."""
    grammars: ClassVar[tuple[FileGrammar, ...]] = (ApacheGrammar(),)
    speaks_tls: ClassVar[bool] = True
    service: ClassVar[str] = "apache"
    program: ClassVar[str] = "weighbridge.gateways.apache.apache_host"
    counters: ClassVar[DaemonCounters] = DaemonCounters(
        daemon="apache",
        figures=(
            CounterFigure(words="{} workers busy", reckon="sum", counters=("workers_busy",)),
            CounterFigure(words="{} idle", reckon="sum", counters=("workers_idle",)),
        ),
        busy="workers_busy",
        idle="workers_idle",
    )

    def __init__(self, settings: ApacheSettings, behind: Behind) -> None:
        self.settings = settings
        self.port = settings.port
        self.native = behind.fastcgi and settings.path == "fastcgi"

    @property
    def wants_fastcgi(self) -> bool:
        return self.settings.path == "fastcgi"

    def further_ports(self) -> tuple[tuple[int, str], ...]:
        """With FastCGI the responder's, as only the hosts show whether one is needed."""
        if not self.wants_fastcgi:
            return ()
        responder = self.settings.responder
        tcp = (responder.port,) if responder.socket == "tcp" else ()
        return tuple((port, "the FastCGI responder") for port in (STATS_PORT, *tcp))

    @property
    def has_responder(self) -> bool:
        """Whether the responder runs between Apache and the daemons behind it."""
        return self.settings.path == "fastcgi" and not self.native

    def files(self, address: str, backends: Sequence[Backend]) -> Mapping[str, str]:
        """Good for Apache 2.4.39 and later."""
        settings, responder = self.settings, self.settings.responder
        places = [host_port(one.address, one.port) for one in backends]
        own: dict[Section, list[str]] = {"server": [], "host": [], "location": []}
        # The layout's own directives. They come last: Apache takes the later of two.
        for section, directives in settings.options.items():
            lines = [f"  {name} {word(value)}" for name, value in directives.items()]
            own[section] = [f"<IfDefine !{BARE}>", *lines, "</IfDefine>"] if lines else []
        socket = _SOCKET if responder.socket == "unix" else f"127.0.0.1:{responder.port}"
        text = template(Path(__file__).with_name("apache.conf.j2")).render(
            s=settings,
            directives={group: _directives(settings, group) for group in values(settings)},
            name=bracketed(address),
            listen=host_port(address, self.port),
            places=places,
            native=self.native,
            own=own,
            socket=socket,
            pid_file=PID_FILE,
            error_log=ERROR_LOG,
            server_file=SERVER_FILE,
            status_host=STATUS_HOST,
        )
        if not self.has_responder:
            return {CONF: text}
        # The options of its command line.
        listen = [f"listen {socket}", *(f"origin {place}" for place in places)]
        limits = [f"keep {responder.keep}", f"timeout-s {settings.timeout:.0f}"]
        lines = [*listen, f"stats {host_port(address, STATS_PORT)}", *limits]
        return {CONF: text, RESPONDER_CONF: "\n".join(lines) + "\n"}

    def check(self, host: Host) -> None:
        if self.has_responder:
            _responder()
        listed = host.run([*_APACHE, "-D", BARE, "-L"]).stdout
        known = {name.lower(): name for name in _DIRECTIVE.findall(listed)}
        faults = [
            f"Apache has no directive {name!r} in [{section}] of options{_hint(name, known)}"
            for section, directives in self.settings.options.items()
            for name in directives
            if name.lower() not in known
        ]
        faults = faults or self._refused(host)
        if faults:
            raise UsageError(
                "\n".join(faults),
                advice="The layout's own directives are under `apache: options`; `apache: modules` "
                "adds more.",
            )

    def _refused(self, host: Host) -> list[str]:
        try:
            host.run([*_APACHE, "-t"])
        except CommandFailed as error:
            if error.code != _REFUSED:
                raise
            place = _PLACE.search(error.output)
            if place is None:
                return [error.output.strip()]
            lines = host.run(["cat", CONF]).stdout.splitlines()
            number = int(place["line"])
            text = lines[number - 1].strip() if 0 < number <= len(lines) else ""
            return [f"apache.conf:{number}: `{text}`: {' '.join(place['words'].split())}"]
        return []

    def daemons(self, host: Host) -> tuple[Daemon, ...]:
        service = Service(self.service, (*_APACHE, "-DFOREGROUND"))
        apache = Daemon(host, service, self.port, (ERROR_LOG,))
        if not self.has_responder:
            return (apache,)
        host.put(_RESPONDER_ON_HOST, _responder(), mode=0o755)
        service = Service("fastcgi-responder", (_RESPONDER_ON_HOST, RESPONDER_CONF))
        return (Daemon(host, service, STATS_PORT), apache)

    def facts(self, host: Host) -> dict[str, str]:
        status = self._status(host)
        version = status["ServerVersion"].split(" ")[0].replace("/", " ")
        settings = self.settings
        sizes = ", ".join(f"{name} {size}" for name, size in _directives(settings, _MPM).items())
        threads = int(status["BusyWorkers"]) + int(status["IdleWorkers"])
        reuse = "kept" if settings.reuse else "new for each request"
        many = settings.keep_alive_requests or "any number of"
        found = {
            "path": self._path(host, version),
            "apache": f"{status['ServerVersion']}, MPM {status['ServerMPM']}",
            "apache mpm": f"{sizes}; {threads} threads at start",
            "apache keep-alive": f"{settings.keep_alive_timeout:g} s, {many} requests on a "
            "connection"
            if settings.keep_alive
            else "off",
            "apache proxy": f"connections to backends are {reuse}; timeout {settings.timeout:g} s"
            + (f"; flushpackets {settings.flush}" if settings.path == "fastcgi" else ""),
            "apache log": f"access log {'on' if settings.access_log else 'off'}, "
            f"ExtendedStatus {'on' if settings.extended_status else 'off'}",
        }
        for section, directives in settings.options.items():
            for name, value in directives.items():
                found[f"option apache.conf [{section}] {name}"] = word(value)
        return found

    def _status(self, host: Host) -> dict[str, str]:
        status: dict[str, str] = json.loads(self.ask(host, "once"))
        return status

    def place_of_counters(self, host: Host) -> tuple[str, ...]:
        authority = CA_FILE if self.settings.tls else ""
        responder = (host.address, str(STATS_PORT)) if self.has_responder else ("", "")
        return (host.address, str(self.port), authority, STATUS_HOST, *responder)

    def await_backends(self, host: Host) -> None:
        """All layouts set `retry=0`: Apache always retries a failed backend at once."""

    @classmethod
    def scope(cls, key: str) -> Scope:
        first, _, name = key.partition(".")
        if first == "options" and name.rpartition(".")[2].lower() in _GRACEFUL:
            return "reload"
        return super().scope(key)

    def reloads(self, before: Mapping[str, str], after: Mapping[str, str]) -> bool:
        others = before.get(RESPONDER_CONF) == after.get(RESPONDER_CONF)
        return others and graceful(before[CONF], after[CONF])

    def reload(self, host: Host) -> str:
        """A graceful restart, until no old process is left.

        An old process ends with its last connection, and with `worker` an idle one is kept for
        keep_alive_timeout. Apache does not start StartServers processes at every graceful restart:
        after one that ended 20 of them, 1, 12 and 17 were seen with 2.4.71. Requests would then
        wait while the others start one by one, as they do not after a start.
        """
        known = len(host.read_log(ERROR_LOG))
        before = self._generation(host)
        new = self._restarted(host)
        apache, after = self.daemons(host)[-1], self._generation(host)
        if after <= before:
            raise apache.failed(
                f"was asked to restart gracefully and is still at generation {after}"
            )
        since = host.read_log(ERROR_LOG, known).decode(errors="replace")
        ignored = [line for line in since.splitlines() if _IGNORED.search(line)]
        if ignored:
            raise apache.failed(f"ignored part of its file at a graceful restart: {ignored[0]}")
        if new < self.settings.mpm.start_servers:
            return ""
        generations = f"generation {before} to {after}"
        return f"Apache restarted gracefully, {generations}: {new} processes, none of them old"

    def _generation(self, host: Host) -> int:
        return int(self._status(host)["ParentServerMPMGeneration"])

    def _restarted(self, host: Host) -> int:
        """Restart it gracefully; returns the number of processes when all are new and complete."""
        mpm, apache = self.settings.mpm, self.daemons(host)[-1]
        deadline_s = self.settings.keep_alive_timeout + _SPARE_S
        spare = min(mpm.min_spare_threads, mpm.max_request_workers)
        sizes = (str(mpm.threads_per_child), str(spare), f"{deadline_s:g}", "apache2")
        words = ("reload", CONF, PID_FILE, *sizes)
        try:
            said = self.ask(host, *words, timeout_s=deadline_s + _SPARE_S)
        except CommandFailed as error:
            apache.check()
            if error.code != _LEFT:
                raise
            raise apache.failed(
                f"{error.output.strip()}, {deadline_s:g} s after a graceful restart"
            ) from error
        apache.check()
        counts: dict[str, int] = json.loads(said)
        return counts["new"]

    def _path(self, host: Host, version: str) -> str:
        clients = f"clients -> {version} on {host.name}"
        if self.settings.path == "http":
            return f"{clients}, mod_proxy_http -> HTTP front end of radosgw"
        if self.native:
            return f"{clients}, mod_proxy_fcgi -> FastCGI front end of radosgw"
        how = "a unix socket" if self.settings.responder.socket == "unix" else "TCP on loopback"
        return (
            f"{clients}, mod_proxy_fcgi -> FastCGI over {how} -> FastCGI responder of Weighbridge "
            "-> HTTP front end of radosgw, "
            "since this radosgw has no FastCGI front end"
        )


def _responder() -> bytes:
    try:
        return RESPONDER.read_bytes()
    except FileNotFoundError as error:
        raise MissingPrerequisite(
            f"the FastCGI responder is not built: {RESPONDER} is missing", advice="run `make setup`"
        ) from error


def _hint(name: str, known: Mapping[str, str]) -> str:
    hint = did_you_mean(name.lower(), sorted(known), known=False)
    return re.sub(r"'(.*)'", lambda match: repr(known[match[1]]), hint)
