"""HAProxy as a front: its configuration, check, daemon, facts and counters."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, ClassVar, Literal, TypedDict, get_args

from pydantic import AfterValidator, Field, field_validator

from weighbridge.common.endpoint import host_port
from weighbridge.common.errors import CommandFailed, UsageError
from weighbridge.common.host import Host, Service
from weighbridge.common.quantities import Bytes, Seconds
from weighbridge.common.record import Record
from weighbridge.common.structure import CounterFigure, DaemonCounters
from weighbridge.gateways.certificates import SERVER_FILE
from weighbridge.gateways.config_text import Line, config_line
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.front import Backend, Behind, Front, FrontSettings, template
from weighbridge.gateways.options import Option, Size
from weighbridge.gateways.probe import FileGrammar, Reading

Count = Annotated[int, Field(ge=1)]
Wait = Annotated[Seconds, Field(ge=0.001)]
Section = Literal["global", "defaults", "frontend", "backend"]


class Timeouts(Record):
    """HAProxy's timeouts: of silence, not of a transfer (HAProxy's configuration manual)."""

    connect: Wait = 5.0
    """For a connection to a backend; one more attempt is made after it."""
    client: Wait = 600.0
    """For a silent client, also between requests: workers may pause, and the front must not close
    their connections.
    """
    server: Wait = 600.0
    """For a silent backend: a store at its limit may take minutes to acknowledge a large PUT."""
    queue: Wait = 600.0
    """For a request queued at a backend whose servers have `maxconn`. HAProxy's default: `connect`.
    """


class HaproxySettings(FrontSettings):
    """HAProxy's settings. Unless documented otherwise, defaults are HAProxy's own, written out."""

    balance: Annotated[str, Field(pattern=r"^\S(.*\S)?$"), AfterValidator(config_line)] = (
        "roundrobin"
    )
    """Load balancing: roundrobin, leastconn, source, random or any other algorithm of HAProxy."""
    # More than 64 threads need groups of them, which releases before 2.7 lack.
    threads: Annotated[Count, Option("global", "nbthread", size=Size(most=64))] = 1
    """nbthread; unless given, the CPUs of its host. HAProxy would count the machine's, whatever the
    host's limit.
    """
    maxconn: Annotated[Count, Option("global", size=Size(per_cpu=1024, least=4096))] = 4096
    """Client connections, at least twice the workers; unless given, 1024 per CPU of its host, and
    this at least. HAProxy's own default depends on ulimit.
    """
    http_reuse: Annotated[
        Literal["never", "safe", "aggressive", "always"], Option("defaults", "http-reuse")
    ] = "safe"
    """When a backend connection may serve another client.

    With `always` a request fails if the backend closes the connection at that moment.
    """
    retries: Annotated[int, Field(ge=0)] = 3
    """Retries to connect, the last to another backend (`option redispatch`), never of a request."""
    bufsize: Annotated[Bytes, Field(ge=1024, le=16 * 2**20), Option("global", "tune.bufsize")] = (
        16384
    )
    """tune.bufsize, two a connection; 64 KiB spares system calls with large objects."""
    timeouts: Timeouts = Timeouts()
    health_path: Annotated[str, Field(pattern=r"^/\S*$"), AfterValidator(config_line)] | None = None
    """Path for health checks of backends; None: the one of the gateway behind."""
    health_interval: Wait = 2.0
    """Interval of health checks; three failed ones take a backend out, two passed put it back."""
    options: dict[Section, tuple[Line, ...]] = Field(default_factory=dict)
    """More lines of HAProxy's configuration by section, such as `{backend: [option
    http-no-delay]}`; `haproxy -c` checks them.
    """

    @field_validator("options", mode="before")
    @classmethod
    def _lists(cls, options: object) -> object:
        # A single line needs no list: a tuning sets one value at a time.
        if not isinstance(options, dict):
            return options
        return {
            section: (lines,) if isinstance(lines, str) else lines
            for section, lines in options.items()
        }

    @field_validator("options")
    @classmethod
    def _one_interval(cls, options: dict[Section, tuple[Line, ...]]) -> object:
        # What waits for backends and what is said of failures know that one.
        for line in (line for lines in options.values() for line in lines):
            if match := re.search(r"\b(?:fast|down)?inter\b", line):
                raise ValueError(f"`{line}`: not `{match[0]}`, but the setting `health_interval`")
        return options


PATH = "/etc/haproxy/haproxy.cfg"
SOCKET = "/run/haproxy-stats.sock"
"""HAProxy's admin socket, for the host's root only: level `user` does not see the algorithm."""

_REFUSED = 1
_FAULT = re.compile(rf"parsing \[{re.escape(PATH)}:(?P<line>\d+)\]\s*:\s*(?P<words>.*)")
_MESSAGE = re.compile(r"^\[(?:ALERT|WARNING)\][^:]*:\s*(?:config\s*:\s*)?(?P<words>.*)$")
_IGNORED = re.compile(r"already specified|ignored")
_SUMMARY = re.compile(r"Error\(s\) found in configuration file|Fatal errors found in configuration")


_FALL, _RISE = 3, 2
"""Failed checks that take a backend out, and passed ones that put it back."""
_CHECKS = ("option httpchk", "option tcp-check", "http-check send", "http-check connect")
_CONNECTIONS = ("option httpclose", "option http-server-close", "option http-keep-alive")
_SPARE_S = 10.0
_NOT_UP = 3


class _Output(TypedDict):
    info: dict[str, str]
    rows: list[dict[str, str]]


_COUNT = re.compile(r" \d+/\d+$")
"""Checks passed or failed so far, such as `UP 1/3` before the first: it changes all the time."""


class HaproxyGrammar(FileGrammar):
    """haproxy.cfg: a section begins where a line is not indented."""

    names: ClassVar[tuple[str, ...]] = ("haproxy.cfg",)
    where: ClassVar[str] = (
        "Where: in the existing sections of these names, in place of the lines that begin with the "
        "same words: HAProxy refuses a second section of a name. It reads the file when it starts "
        "or reloads."
    )
    indent: ClassVar[str] = "    "
    of_two: ClassVar[frozenset[str]] = frozenset(
        {"timeout", "option", "no", "stats", "server", "http-check", "bind"}
    )

    def reads(self, raw: str) -> Reading:
        return "line" if raw[0].isspace() else "section"


class Haproxy(Front):
    """HAProxy with these settings."""

    label: ClassVar[str] = "HAProxy"
    Settings: ClassVar[type[FrontSettings]] = HaproxySettings
    packages: ClassVar[tuple[str, ...]] = ("haproxy",)
    grammars: ClassVar[tuple[FileGrammar, ...]] = (HaproxyGrammar(),)
    speaks_tls: ClassVar[bool] = True
    service: ClassVar[str] = "haproxy"
    program: ClassVar[str] = "weighbridge.gateways.haproxy.haproxy_counters"
    counters: ClassVar[DaemonCounters] = DaemonCounters(
        daemon="haproxy",
        figures=(
            CounterFigure(words="{} sessions", reckon="sum", counters=("frontend.scur",)),
            CounterFigure(words="{} requests queued", reckon="sum", counters=("backend.qcur",)),
            CounterFigure(words="{} retries/s", reckon="rate", counters=("backend.wretr",)),
        ),
        waiting="backend.qcur",
    )

    def __init__(self, settings: HaproxySettings, behind: Behind) -> None:
        self.settings = settings
        self.port = settings.port
        self.health_path = settings.health_path or behind.health_path

    def files(self, address: str, backends: Sequence[Backend]) -> Mapping[str, str]:
        """Good for HAProxy 2.2 and later."""
        settings = self.settings
        own: dict[Section, tuple[Line, ...]] = dict.fromkeys(get_args(Section), ())
        own.update(settings.options)
        every = [line for lines in own.values() for line in lines]
        text = template(Path(__file__).with_name("haproxy.cfg.j2")).render(
            s=settings,
            own=own,
            own_check=any(line.startswith("http-check ") for line in every),
            listen=host_port(address, settings.port),
            servers=[f"{one.name} {host_port(one.address, one.port)}" for one in backends],
            timeouts={name: _ms(wait_s) for name, wait_s in settings.timeouts},
            interval=_ms(settings.health_interval),
            health_path=self.health_path,
            socket=SOCKET,
            server_file=SERVER_FILE,
            fall=_FALL,
            rise=_RISE,
        )
        return {PATH: text}

    def check(self, host: Host) -> None:
        try:
            done = host.run(["haproxy", "-c", "-f", PATH])
            output, refused = f"{done.stdout}\n{done.stderr}", False
        except CommandFailed as error:
            if error.code != _REFUSED:
                raise
            output, refused = error.output, True
        # It takes a file with lines that it says it ignores, of which nothing would be measured.
        if not refused and not _IGNORED.search(output):
            return
        found = faults(output, host.run(["cat", PATH]).stdout.splitlines(), refused=refused)
        own = "the layout's own lines are under `haproxy: options`"
        advice = f"HAProxy refuses this configuration; {own}."
        if not refused:
            advice = f"HAProxy ignores these lines; {own}, and `haproxy` has settings of its own."
        raise UsageError("\n".join(found), advice=advice)

    def daemons(self, host: Host) -> tuple[Daemon, ...]:
        return (Daemon(host, Service(self.service, ("haproxy", "-db", "-f", PATH)), self.port),)

    def facts(self, host: Host) -> dict[str, str]:
        output: _Output = json.loads(self.ask(host, "once"))
        info, settings = output["info"], self.settings
        servers = [row for row in output["rows"] if row["svname"] not in {"FRONTEND", "BACKEND"}]
        names = ", ".join(row["svname"] for row in servers)
        # Of a disabled backend HAProxy says nothing.
        total = next((row for row in output["rows"] if row["svname"] == "BACKEND"), None)
        health = ", ".join(f"{row['svname']} {_COUNT.sub('', row['status'])}" for row in servers)
        health = f"{self._check()}: {health}"
        checked = [row for row in servers if row.get("check_fall")]
        for fall, rise in dict.fromkeys((row["check_fall"], row["check_rise"]) for row in checked):
            health += f"; out after {fall} failed, in after {rise}"
        return {
            "path": f"clients -> HAProxy on {host.name} -> {len(servers)} backends",
            "haproxy": f"HAProxy {info['Version']}, {info['Nbthread']} thread(s), at most "
            f"{info['Maxconn']} connections",
            "haproxy balance": f"{total['algo'] if total else 'disabled'} over {names or 'none'}",
            "haproxy reuse": f"{self._said(f'http-reuse {settings.http_reuse}', 'http-reuse')}, "
            f"{self._said('keep-alive on both sides', *_CONNECTIONS)}; {self._retries()}",
            "haproxy health check": health,
            "haproxy timeouts": ", ".join(self._timeout(name) for name in Timeouts.model_fields),
            "haproxy bufsize": self._said(f"{settings.bufsize} bytes", "tune.bufsize"),
            **{
                f"option haproxy.cfg [{section}]": "; ".join(lines)
                for section, lines in settings.options.items()
                if lines
            },
        }

    def tolerance(self) -> dict[str, str]:
        check = self._check()
        if not self._unchecked():
            check += f", out after {self._checks('fall', _FALL)} failed, in again after "
            check += f"{self._checks('rise', _RISE)} passed"
        return {
            "HAProxy check": check,
            "HAProxy retries": f"{self._retries()}, "
            f"{self._said('the last to another backend (redispatch)', 'option redispatch')}; "
            f"timeout {self._timeout('connect')}, {self._timeout('server')}",
        }

    def _said(self, otherwise: str, *begins: str) -> str:
        """What the settings say, or the layout's own lines that begin with these words instead:
        which of them HAProxy heeds is its own affair.
        """
        heads = tuple(f"{begin} " for begin in begins)
        lines = [line for lines in self.settings.options.values() for line in lines]
        own = [x for x in lines if f"{' '.join(_words(x)).removeprefix('no ')} ".startswith(heads)]
        return f"as the options say ({'; '.join(own)})" if own else otherwise

    def _check(self) -> str:
        if own := self._unchecked():
            return f"as the options say ({'; '.join(own)})"
        asked = self._said(f"GET {self.health_path}", *_CHECKS)
        return f"{asked} every {self.settings.health_interval:g} s"

    def _retries(self) -> str:
        count, again = self._said(f"{self.settings.retries}", "retries"), self._said("", "retry-on")
        return f"{count} retries to connect" + f", and of requests {again}" * bool(again)

    def _timeout(self, name: str) -> str:
        wait_s = getattr(self.settings.timeouts, name)
        return f"{name} {self._said(f'{wait_s:g} s', f'timeout {name}')}"

    def _server_lines(self) -> list[str]:
        options = self.settings.options
        own = (*options.get("defaults", ()), *options.get("backend", ()))
        return [line for line in own if _words(line)[:1] == ["default-server"]]

    def _unchecked(self) -> list[str]:
        return [line for line in self._server_lines() if {"no-check", "disabled"} & {*_words(line)}]

    def _checks(self, what: str, otherwise: int) -> int:
        pairs = [pair for line in self._server_lines() for pair in pairwise(_words(line))]
        counts = [int(count) for word, count in pairs if word == what and count.isdecimal()]
        return counts[-1] if counts else otherwise

    def place_of_counters(self, host: Host) -> tuple[str, ...]:
        return (SOCKET,)

    def await_backends(self, host: Host) -> None:
        """HAProxy answers 503 while it thinks a backend dead, until the next check."""
        # At most so many are in between.
        checks = self._checks("fall", _FALL) + self._checks("rise", _RISE)
        deadline_s = self.settings.health_interval * checks + _SPARE_S
        try:
            self.ask(host, "up", f"{deadline_s:g}", timeout_s=deadline_s + _SPARE_S)
        except CommandFailed as error:
            if error.code != _NOT_UP:
                raise
            (haproxy,) = self.daemons(host)
            raise haproxy.failed(
                f"not all backends were up after {deadline_s:g} s: {error.output.strip()}"
            ) from error


def faults(output: str, lines: Sequence[str], *, refused: bool = True) -> list[str]:
    """HAProxy's errors, a line each, with the text of the faulty line of the file; of a file that
    it has not `refused`, the lines that it ignores.
    """
    found = []
    for line in output.splitlines():
        match = _MESSAGE.match(line)
        if not match or not (line.startswith("[ALERT]") if refused else _IGNORED.search(line)):
            continue
        words = match["words"]
        place = _FAULT.search(words)
        if place:
            number = int(place["line"])
            text = lines[number - 1].strip() if 0 < number <= len(lines) else ""
            found.append(f"haproxy.cfg:{number}: `{text}`: {place['words']}")
        elif not _SUMMARY.search(words):
            found.append(f"haproxy.cfg: {words}")
    return found or [output.strip()]


def _words(line: str) -> list[str]:
    """The words of a line, which HAProxy quotes as a shell does."""
    try:
        return shlex.split(line, comments=True)
    except ValueError:
        return line.split()


def _ms(seconds: float) -> str:
    return f"{round(seconds * 1000)}ms"
