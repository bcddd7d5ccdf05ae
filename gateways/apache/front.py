"""Apache as a front: its configuration, check, daemons, facts and counters."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from weighbridge.common.counters import CounterFigure, DaemonCounters
from weighbridge.common.document import did_you_mean
from weighbridge.common.errors import CommandFailed, MissingPrerequisite, UsageError
from weighbridge.common.host import Host, Service
from weighbridge.common.scope import Scope
from weighbridge.gateways import program
from weighbridge.gateways.apache import scopes
from weighbridge.gateways.apache.config import (
    BARE,
    CONF,
    ERROR_LOG,
    GRAMMAR,
    PID_FILE,
    RESPONDER_CONF,
    STATUS_HOST,
    apache_conf,
    responder_conf,
    word,
)
from weighbridge.gateways.apache.settings import STATS_PORT, ApacheSettings
from weighbridge.gateways.certificates import CA_FILE
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.file_grammar import FileGrammar
from weighbridge.gateways.front import Backend, Behind, Front, FrontSettings
from weighbridge.gateways.probe import Probe

RESPONDER = Path(__file__).with_name("fastcgi_responder")
"""The responder's program, built by `make setup`: statically linked, to run on any release."""

SERVICE = "apache"
_APACHE = ("apache2", "-f", CONF)
RESPONDER_SERVICE = "fastcgi-responder"
_RESPONDER_ON_HOST = "/usr/local/lib/weighbridge/fastcgi_responder"
_COUNTERS_PROGRAM = "weighbridge.gateways.apache.apache_counters"
_RELOAD_PROGRAM = "weighbridge.gateways.apache.reload_apache"
_GENERATION = "ParentServerMPMGeneration"
_LEFT = 3
_SPARE_S = 30.0
_IGNORED = re.compile(r"not allowed during (?:a )?restart")
"""How Apache's log reports a changed directive, such as ServerLimit, that it ignores at a graceful
restart (worker.c, event.c).
"""
_REFUSED = 1
_DIRECTIVE = re.compile(r"^<?(?P<name>[A-Za-z][A-Za-z0-9_]*) \(\S+\)$", re.MULTILINE)
_PLACE = re.compile(r"Syntax error on line (?P<line>\d+) of \S+:\s*(?P<words>.*)", re.DOTALL)


COUNTERS = DaemonCounters(
    daemon="apache",
    figures=(
        CounterFigure(words="{} workers busy", reckon="sum", counters=("workers_busy",)),
        CounterFigure(words="{} idle", reckon="sum", counters=("workers_idle",)),
    ),
    busy="workers_busy",
    idle="workers_idle",
)


class Apache(Front):
    """Apache with its settings. It needs no responder where the daemons behind it speak FastCGI."""

    label: ClassVar[str] = "Apache"
    Settings: ClassVar[type[FrontSettings]] = ApacheSettings
    packages: ClassVar[tuple[str, ...]] = ("apache2-bin",)
    stores: ClassVar[tuple[str, ...]] = ("rgw",)
    """Its configuration and facts are about radosgw: FastCGI, or the HTTP that replaced it."""
    grammars: ClassVar[tuple[FileGrammar, ...]] = (GRAMMAR,)
    speaks_tls: ClassVar[bool] = True

    def __init__(self, settings: ApacheSettings, behind: Behind) -> None:
        self.settings = settings
        self.port = settings.port
        self.native = behind.fastcgi and settings.path == "fastcgi"

    @property
    def wants_fastcgi(self) -> bool:
        return self.settings.path == "fastcgi"

    def further_ports(self) -> tuple[tuple[int, str], ...]:
        """See Front: with FastCGI the responder's, as only the hosts show whether one is needed."""
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
        """See Front. Good for Apache 2.4.39 and later."""
        files = {CONF: apache_conf(self.settings, address, backends, native=self.native)}
        if self.has_responder:
            files[RESPONDER_CONF] = responder_conf(self.settings, address, backends)
        return files

    def check(self, host: Host) -> None:
        """See Front. Raises MissingPrerequisite without a built responder, CommandFailed if Apache
        fails.
        """
        if self.has_responder:
            _responder()
        known = {
            name.lower(): name
            for name in _DIRECTIVE.findall(host.run([*_APACHE, "-D", BARE, "-L"]).stdout)
        }
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
        """Apache's error about the files on the host, with the faulty line."""
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
        """See Front. Puts the responder's program on the host; raises MissingPrerequisite without
        it.
        """
        apache = Daemon(host, Service(SERVICE, (*_APACHE, "-DFOREGROUND")), self.port, (ERROR_LOG,))
        if not self.has_responder:
            return (apache,)
        host.put(_RESPONDER_ON_HOST, _responder(), mode=0o755)
        return (
            Daemon(
                host, Service(RESPONDER_SERVICE, (_RESPONDER_ON_HOST, RESPONDER_CONF)), STATS_PORT
            ),
            apache,
        )

    def facts(self, host: Host) -> dict[str, str]:
        """See Front: versions and figures as the running Apache reports them."""
        status = self._status(host)
        version = status["ServerVersion"].split(" ")[0].replace("/", " ")
        settings, mpm = self.settings, self.settings.mpm
        threads = int(status["BusyWorkers"]) + int(status["IdleWorkers"])
        reuse = "kept" if settings.reuse else "new for each request"
        many = settings.keep_alive_requests or "any number of"
        found = {
            "path": self._path(host, version),
            "apache": f"{status['ServerVersion']}, MPM {status['ServerMPM']}",
            "apache mpm": f"ServerLimit {mpm.server_limit}, ThreadLimit {mpm.thread_limit}, "
            f"StartServers {mpm.start_servers}, MinSpareThreads {mpm.min_spare_threads}, "
            f"MaxSpareThreads {mpm.max_spare_threads}, ThreadsPerChild {mpm.threads_per_child}, "
            f"MaxRequestWorkers {mpm.max_request_workers}, "
            f"MaxConnectionsPerChild {mpm.max_connections_per_child}; {threads} threads at start",
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
            found |= {
                f"option apache.conf [{section}] {name}": word(value)
                for name, value in directives.items()
            }
        return found

    def _status(self, host: Host) -> dict[str, str]:
        """The fields of server-status. Raises CommandFailed."""
        done = host.run((*program.ship(host, _COUNTERS_PROGRAM), *self._status_at(host), "once"))
        status: dict[str, str] = json.loads(done.stdout)
        return status

    def _status_at(self, host: Host) -> list[str]:
        """Where its status is, as arguments of the counters' program."""
        authority = CA_FILE if self.settings.tls else ""
        return [host.address, str(self.port), authority, STATUS_HOST]

    def await_backends(self, host: Host) -> None:
        """See Front. All layouts set `retry=0`: Apache always retries a failed backend at once."""

    @classmethod
    def scope(cls, key: str) -> Scope:
        return scopes.scope(key)

    def reloads(self, before: Mapping[str, str], after: Mapping[str, str]) -> bool:
        """See Front: when only directives for which a graceful restart is enough differ, and the
        responder's file does not.
        """
        others = [
            {path: text for path, text in files.items() if path != CONF}
            for files in (before, after)
        ]
        return others[0] == others[1] and scopes.graceful(before[CONF], after[CONF])

    def reload(self, host: Host) -> str:
        """See Front: a graceful restart, until no old process is left.

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
        return int(self._status(host)[_GENERATION])

    def _restarted(self, host: Host) -> int:
        """Restart it gracefully; returns the number of processes when all are new and complete."""
        mpm, apache = self.settings.mpm, self.daemons(host)[-1]
        deadline_s = self.settings.keep_alive_timeout + _SPARE_S
        spare = min(mpm.min_spare_threads, mpm.max_request_workers)
        words = (CONF, PID_FILE, str(mpm.threads_per_child), str(spare), f"{deadline_s:g}")
        arguments = (*words, "apache2")
        try:
            done = host.run(
                (*program.ship(host, _RELOAD_PROGRAM), *arguments), timeout_s=deadline_s + _SPARE_S
            )
        except CommandFailed as error:
            apache.check()
            if error.code != _LEFT:
                raise
            raise apache.failed(
                f"{error.output.strip()}, {deadline_s:g} s after a graceful restart"
            ) from error
        apache.check()
        counts: dict[str, int] = json.loads(done.stdout)
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

    def probes(self, host: Host) -> tuple[Probe, ...]:
        """See Front: workers by state, requests, bytes; requests and connections of a responder."""
        arguments = self._status_at(host)
        if self.has_responder:
            arguments += [host.address, str(STATS_PORT)]
        return (
            Probe(
                host,
                f"{SERVICE}.{host.name}",
                (*program.ship(host, _COUNTERS_PROGRAM), *arguments),
                counters=COUNTERS,
            ),
        )


def _responder() -> bytes:
    try:
        return RESPONDER.read_bytes()
    except FileNotFoundError as error:
        raise MissingPrerequisite(
            f"the FastCGI responder is not built: {RESPONDER} is missing", advice="run `make setup`"
        ) from error


def _hint(name: str, known: Mapping[str, str]) -> str:
    """A hint at the closest directive: Apache ignores case, so the search is in lower case."""
    hint = did_you_mean(name.lower(), sorted(known), known=False)
    return re.sub(r"'(.*)'", lambda match: repr(known[match[1]]), hint)
