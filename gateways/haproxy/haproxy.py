"""HAProxy as a front: its configuration, its check, its daemon, and what it says of itself."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import ClassVar, TypedDict

from weighbridge.common.counters import CounterFigure, DaemonCounters
from weighbridge.common.document import did_you_mean
from weighbridge.common.errors import CommandFailed, UsageError
from weighbridge.common.host import Host, Service
from weighbridge.gateways import program
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.file_grammar import FileGrammar
from weighbridge.gateways.front import Backend, Behind, Front, FrontSettings
from weighbridge.gateways.haproxy.grammar import GRAMMAR
from weighbridge.gateways.haproxy.settings import HaproxySettings
from weighbridge.gateways.probe import Probe

PATH = "/etc/haproxy/haproxy.cfg"
SOCKET = "/run/haproxy-stats.sock"
"""Where HAProxy is asked for its counters; only root of the host may.

A mere user is not told the algorithm.
"""

SERVICE = "haproxy"
_TELL = "weighbridge.gateways.haproxy.tell_haproxy"
_REFUSED = 1
_FAULT = re.compile(rf"parsing \[{re.escape(PATH)}:(?P<line>\d+)\]\s*:\s*(?P<words>.*)")
_ALERT = re.compile(r"^\[ALERT\][^:]*:\s*(?:config\s*:\s*)?(?P<words>.*)$")
_UNKNOWN = re.compile(r"unknown (?:keyword|option) '([^']+)'")
_WORDS = "grep -aoE '[a-z][a-z0-9-]*[.]?[a-z0-9-]{3,}' \"$(command -v haproxy)\" | sort -u"
_SUMMARY = re.compile(r"Error\(s\) found in configuration file|Fatal errors found in configuration")


_CHECKS = 5
"""Three checks that fail take a backend out, two that pass put it back: as many are between the two
at most.
"""
_SPARE_S = 10.0
_NOT_UP = 3


class _Told(TypedDict):
    """What the shipped program tells of HAProxy as it runs: its `show info`, and rows of `show
    stat`.
    """

    info: dict[str, str]
    rows: list[dict[str, str]]


_COUNT = re.compile(r" \d+/\d+$")
"""How many checks of how many have passed or failed so far, such as `UP 1/3` before the first:
another number at each moment.
"""


COUNTERS = DaemonCounters(
    daemon="haproxy",
    figures=(
        CounterFigure(words="{} sessions", reckon="sum", counters=("frontend.scur",)),
        CounterFigure(words="{} requests queued", reckon="sum", counters=("backend.qcur",)),
        CounterFigure(words="{} retries/s", reckon="rate", counters=("backend.wretr",)),
    ),
    waiting="backend.qcur",
)


class Haproxy(Front):
    """HAProxy with these settings."""

    label: ClassVar[str] = "HAProxy"
    Settings: ClassVar[type[FrontSettings]] = HaproxySettings
    packages: ClassVar[tuple[str, ...]] = ("haproxy",)
    grammars: ClassVar[tuple[FileGrammar, ...]] = (GRAMMAR,)

    def __init__(self, settings: HaproxySettings, behind: Behind) -> None:
        self.settings = settings
        self.port = settings.port
        self.health_path = settings.health_path or behind.health_path

    def files(self, address: str, backends: Sequence[Backend]) -> Mapping[str, str]:
        """See Front. Good for HAProxy 2.2 and later."""
        settings = self.settings
        wait = settings.timeouts
        sections = {
            "global": [
                "user haproxy",
                "group haproxy",
                f"maxconn {settings.maxconn}",
                f"nbthread {settings.threads}",
                f"stats socket {SOCKET} mode 600 level operator",
                f"tune.bufsize {settings.bufsize}",
            ],
            "defaults": [
                "mode http",
                "option http-keep-alive",
                f"http-reuse {settings.http_reuse}",
                f"retries {settings.retries}",
                "option redispatch",
                f"timeout connect {_ms(wait.connect)}",
                f"timeout client {_ms(wait.client)}",
                f"timeout server {_ms(wait.server)}",
                f"timeout queue {_ms(wait.queue)}",
            ],
            "frontend": [f"bind {address}:{settings.port}", "default_backend gateways"],
            "backend": [
                f"balance {settings.balance}",
                f"option httpchk GET {self.health_path}",
                "http-check expect status 200",
                f"default-server check inter {_ms(settings.health_interval)} fall 3 rise 2",
                *(f"server {one.name} {one.address}:{one.port}" for one in backends),
            ],
        }
        names = {"frontend": "frontend clients", "backend": "backend gateways"}
        # A line of the layout's own comes last: of two that contradict each other HAProxy takes the
        # later one.
        more = {str(section): own for section, own in settings.options.items()}
        texts = [
            "\n".join(
                [
                    names.get(section, section),
                    *(f"    {line}" for line in (*lines, *more.get(section, ()))),
                ]
            )
            for section, lines in sections.items()
        ]
        return {PATH: "\n\n".join(texts) + "\n"}

    def check(self, host: Host) -> None:
        """See Front. From 2.4 on HAProxy itself suggests what was meant; before, its program is
        searched for words that are alike.

        Raises CommandFailed when it cannot be run.
        """
        try:
            host.run(["haproxy", "-c", "-f", PATH])
        except CommandFailed as error:
            if error.code != _REFUSED:
                raise
            lines = host.run(["cat", PATH]).stdout.splitlines()
            found = faults(error.output, lines)
            if any(unknown(line) for line in found):
                words = host.run(["sh", "-ec", _WORDS]).stdout.split()
                found = [
                    line
                    + (did_you_mean(word, words, known=False) if (word := unknown(line)) else "")
                    for line in found
                ]
            raise UsageError(
                "\n".join(found),
                advice="HAProxy refuses this configuration; what a layout adds to it is under "
                "`haproxy: options`.",
            ) from error

    def daemons(self, host: Host) -> tuple[Daemon, ...]:
        """See Front."""
        return (Daemon(host, Service(SERVICE, ("haproxy", "-db", "-f", PATH)), self.port),)

    def facts(self, host: Host) -> dict[str, str]:
        """See Front: as HAProxy says of itself while it runs."""
        done = host.run((*program.ship(host, _TELL), SOCKET, "once"))
        told: _Told = json.loads(done.stdout)
        info, settings, wait = told["info"], self.settings, self.settings.timeouts
        servers = [row for row in told["rows"] if row["svname"] not in {"FRONTEND", "BACKEND"}]
        whole = next(row for row in told["rows"] if row["svname"] == "BACKEND")
        return {
            "path": f"clients -> HAProxy on {host.name} -> {len(servers)} backends",
            "haproxy": f"HAProxy {info['Version']}, {info['Nbthread']} thread(s), at most "
            f"{info['Maxconn']} connections",
            "haproxy balance": f"{whole['algo']} over {', '.join(row['svname'] for row in servers)}",
            "haproxy reuse": f"http-reuse {settings.http_reuse}, keep-alive on both sides; "
            f"{settings.retries} retries to connect",
            "haproxy health check": f"GET {self.health_path} every {settings.health_interval:g} s: "
            + ", ".join(f"{row['svname']} {_COUNT.sub('', row['status'])}" for row in servers),
            "haproxy timeouts": f"connect {wait.connect:g} s, client {wait.client:g} s, "
            f"server {wait.server:g} s, queue {wait.queue:g} s",
            "haproxy bufsize": f"{settings.bufsize} bytes",
            **{
                f"option haproxy.cfg [{section}]": "; ".join(lines)
                for section, lines in settings.options.items()
                if lines
            },
        }

    def probes(self, host: Host) -> tuple[Probe, ...]:
        """See Front: sessions, queues, bytes, answers by class, retries and connect times, by
        server.
        """
        return (
            Probe(
                host,
                f"{SERVICE}.{host.name}",
                (*program.ship(host, _TELL), SOCKET),
                counters=COUNTERS,
            ),
        )

    def await_backends(self, host: Host) -> None:
        """See Front: HAProxy answers 503 for a backend that it takes for dead, and knows of one
        only at its next check.
        """
        deadline_s = self.settings.health_interval * _CHECKS + _SPARE_S
        argv = (*program.ship(host, _TELL), SOCKET, "up", f"{deadline_s:g}")
        try:
            host.run(argv, timeout_s=deadline_s + _SPARE_S)
        except CommandFailed as error:
            if error.code != _NOT_UP:
                raise
            (haproxy,) = self.daemons(host)
            raise haproxy.failed(
                f"not all backends were up after {deadline_s:g} s: {error.output.strip()}"
            ) from error


def faults(output: str, lines: Sequence[str]) -> list[str]:
    """What HAProxy objects to, a line each, with the text of the line of the file it objects to."""
    found = []
    for words in (match["words"] for line in output.splitlines() if (match := _ALERT.match(line))):
        place = _FAULT.search(words)
        if place:
            number = int(place["line"])
            text = lines[number - 1].strip() if 0 < number <= len(lines) else ""
            found.append(f"haproxy.cfg:{number}: `{text}`: {place['words']}")
        elif not _SUMMARY.search(words):
            found.append(f"haproxy.cfg: {words}")
    return found or [output.strip()]


def unknown(fault: str) -> str | None:
    """The word that HAProxy does not know and has nothing to suggest for; None when it is about
    something else.
    """
    match = _UNKNOWN.search(fault)
    return match[1] if match and "did you mean" not in fault else None


def _ms(seconds: float) -> str:
    return f"{round(seconds * 1000)}ms"
