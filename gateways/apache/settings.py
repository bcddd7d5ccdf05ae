"""Settings of Apache."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from weighbridge.common.quantities import Seconds
from weighbridge.common.record import Record
from weighbridge.gateways import config_text
from weighbridge.gateways.front import FrontSettings

Count = Annotated[int, Field(ge=1)]
Port = Annotated[int, Field(ge=1, le=65535)]
Wait = Annotated[Seconds, Field(ge=1)]
Section = Literal["server", "host", "location"]
Value = config_text.Value

STATS_PORT = 9980
"""The port of the responder's counters; not one that radosgw, Swift or front ends usually have."""

_OWN = {
    "listen": "port",
    "maxclients": "mpm: max_request_workers",
    "maxrequestsperchild": "mpm: max_connections_per_child",
    "timeout": "timeout",
    "proxypass": "path, reuse and flush",
    "keepalive": "keep_alive",
    "keepalivetimeout": "keep_alive_timeout",
    "maxkeepaliverequests": "keep_alive_requests",
    "enablesendfile": "sendfile",
    "extendedstatus": "extended_status",
    "loadmodule": "modules",
    "sslengine": "tls",
    "sslcertificatefile": "tls",
    "sslcertificatekeyfile": "tls",
}
"""Directives that these settings write, in lower case, and the setting of each; those of `mpm` have
its names.
"""


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
    server_limit: Annotated[int, Field(ge=1, le=20000)] = 32
    """Processes at most; with `thread_limit`, the size of the scoreboard."""
    thread_limit: Annotated[int, Field(ge=1, le=20000)] = 128
    """Threads of a process at most."""
    start_servers: Count = 20
    """Processes at the start."""
    min_spare_threads: Count = 30
    """With fewer idle threads Apache starts processes."""
    max_spare_threads: Count = 4096
    """With more idle threads Apache ends processes, one a second, and breaks their connections:
    clients see resets. With the study's 100 that begins as soon as its 20 processes have started,
    and again after each step. Apache uses at least min_spare_threads + threads_per_child."""
    threads_per_child: Count = 128
    """Threads of each process."""
    max_request_workers: Count = 4096
    """Connections served at once; at least the number of workers."""
    max_connections_per_child: Annotated[int, Field(ge=0)] = 10000
    """Connections after which a process ends, perhaps in the middle of a step; 0: never."""

    @model_validator(mode="after")
    def _fits(self) -> MpmSettings:
        if self.threads_per_child > self.thread_limit:
            raise ValueError(
                f"threads_per_child {self.threads_per_child} is above thread_limit "
                f"{self.thread_limit}"
            )
        if self.max_request_workers % self.threads_per_child:
            raise ValueError(
                f"max_request_workers {self.max_request_workers} is not a multiple of "
                f"threads_per_child {self.threads_per_child}: Apache would use less"
            )
        most = self.server_limit * self.threads_per_child
        if self.max_request_workers > most:
            raise ValueError(
                f"max_request_workers {self.max_request_workers} is above server_limit "
                f"{self.server_limit} x threads_per_child {self.threads_per_child} = "
                f"{most}: Apache would use less"
            )
        if self.start_servers * self.threads_per_child > self.max_request_workers:
            raise ValueError(
                f"start_servers {self.start_servers} x threads_per_child {self.threads_per_child} "
                f"is above max_request_workers {self.max_request_workers}"
            )
        if self.min_spare_threads > self.max_spare_threads:
            raise ValueError(
                f"min_spare_threads {self.min_spare_threads} is above max_spare_threads "
                f"{self.max_spare_threads}"
            )
        return self

    @property
    def directives(self) -> Mapping[str, int]:
        """Apache's own, whose names are those of the settings."""
        sizes = {name: size for name, size in self if name != "kind"}
        return {name.title().replace("_", ""): size for name, size in sizes.items()}


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
    keep_alive: bool = True
    """Whether clients may keep their connections."""
    keep_alive_timeout: Wait = 15.0
    """Apache's own default of 5 s would close connections of workers that pause. Keep it short:
    with `worker` a thread waits that long, and when a backend of mod_proxy_fcgi dies within an
    answer, 2.4.71 closes the client's connection only afterwards."""
    keep_alive_requests: Annotated[int, Field(ge=0)] = 0
    """Requests on a connection before it is closed; 0: any number. Apache's own default of 100
    makes clients reconnect.
    """
    timeout: Wait = 600.0
    """How long a client, radosgw or the responder may be silent: as in the HAProxy layouts."""
    reuse: bool = True
    """Whether connections to backends are kept between requests."""
    flush: Literal["on", "off", "auto"] = "on"
    """mod_proxy_fcgi's flushpackets. With `off` a slow answer arrives in one piece at its end."""
    balance: Literal["byrequests", "bytraffic", "bybusyness"] = "byrequests"
    """How a backend is chosen. The responder, where it is used, takes them in turn."""
    responder: ResponderSettings = ResponderSettings()
    access_log: bool = False
    """Write a line for each request to apache.access.log, without the query."""
    sendfile: bool = False
    """EnableSendfile: for Apache's own files, of which a proxy has none."""
    extended_status: bool = True
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
        mpm = {key.replace("_", ""): f"mpm: {key}" for key in MpmSettings.model_fields}
        settings = {**_OWN, **mpm}
        for section, directives in options.items():
            for name, value in directives.items():
                if value == "":
                    raise ValueError(f"{section}: the value of {name} is not one line: it is empty")
                own = settings.get(name.lower())
                if own is not None:
                    raise ValueError(f"{section}: {name} is set by `{own}`")
        return options
