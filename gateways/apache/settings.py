"""Settings of Apache."""

from __future__ import annotations

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
"""Where the responder tells its counters; chosen apart from what radosgw, Swift and front ends
usually have.
"""

_OWN = {
    "listen": "port",
    "serverlimit": "mpm: server_limit",
    "threadlimit": "mpm: thread_limit",
    "startservers": "mpm: start_servers",
    "minsparethreads": "mpm: min_spare_threads",
    "maxsparethreads": "mpm: max_spare_threads",
    "threadsperchild": "mpm: threads_per_child",
    "maxrequestworkers": "mpm: max_request_workers",
    "maxclients": "mpm: max_request_workers",
    "maxconnectionsperchild": "mpm: max_connections_per_child",
    "maxrequestsperchild": "mpm: max_connections_per_child",
    "timeout": "timeout",
    "proxypass": "path, reuse and flush",
    "keepalive": "keep_alive",
    "keepalivetimeout": "keep_alive_timeout",
    "maxkeepaliverequests": "keep_alive_requests",
    "enablesendfile": "sendfile",
    "extendedstatus": "extended_status",
    "loadmodule": "modules",
}
"""Directives that these settings write themselves, in lower case, and where."""


class MpmSettings(Record):
    """Apache's processes and threads.

    The 2014 study's block is the default: `StartServers 20, MinSpareThreads 30, ThreadsPerChild
    128, MaxClients 4096, MaxRequestsPerChild 10000`, but for three figures. It had `ServerLimit
    4096` and `ThreadLimit 200`: with 128 threads each, 4096 clients never need more than 32
    processes, so those change nothing but the size of the scoreboard, 269 MB of shared memory
    (measured with 2.4.71), which a host of 1 GiB does not have to spare; 32 and 128 fit. Of its
    `MaxSpareThreads 100` see below.
    """

    kind: Literal["worker", "event"] = "worker"
    """`event` keeps idle connections off the threads."""
    server_limit: Annotated[int, Field(ge=1, le=20000)] = 32
    thread_limit: Annotated[int, Field(ge=1, le=20000)] = 128
    start_servers: Count = 20
    min_spare_threads: Count = 30
    max_spare_threads: Count = 4096
    """With more idle threads Apache ends processes, one a second, and connections in use with them:
    clients see resets. With the study's 100 that begins as soon as its 20 processes have started,
    and comes back after each step. Apache takes at least min_spare_threads + threads_per_child."""
    threads_per_child: Count = 128
    max_request_workers: Count = 4096
    """Connections served at once; at least as many as there are workers."""
    max_connections_per_child: Annotated[int, Field(ge=0)] = 10000
    """A process ends after so many connections, which may be in the middle of a step; 0: never."""

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
                f"threads_per_child {self.threads_per_child}: "
                "Apache would take less"
            )
        most = self.server_limit * self.threads_per_child
        if self.max_request_workers > most:
            raise ValueError(
                f"max_request_workers {self.max_request_workers} is above server_limit "
                f"{self.server_limit} "
                f"x threads_per_child {self.threads_per_child} = {most}: Apache would take less"
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


class ResponderSettings(Record):
    """The FastCGI responder between Apache and a radosgw that has no FastCGI of its own."""

    socket: Literal["unix", "tcp"] = "unix"
    """How Apache finds it. radosgw's own front end had both (`socket_path`, `socket_port`)."""
    port: Port = 9000
    """With `socket: tcp`, on the host's loopback; the port in Ceph's documentation of FastCGI."""
    keep: Annotated[int, Field(ge=0)] = 1024
    """Connections kept to each radosgw between requests."""


class ApacheSettings(FrontSettings):
    """Apache, where a layout places one."""

    path: Literal["http", "fastcgi"] = "http"
    """How it speaks to what is behind it: mod_proxy_http, or mod_proxy_fcgi."""
    mpm: MpmSettings = MpmSettings()
    keep_alive: bool = True
    keep_alive_timeout: Wait = 15.0
    """Apache's own default of 5 s would end connections of workers that pause. Not more than it
    takes: with `worker` a thread waits as long, and when what is behind mod_proxy_fcgi dies within
    an answer, 2.4.71 ends the client's connection only after it."""
    keep_alive_requests: Annotated[int, Field(ge=0)] = 0
    """Requests on a connection before it is ended; 0: any number.

    Apache's own default of 100 makes clients connect anew.
    """
    timeout: Wait = 600.0
    """How long silence of a client, of radosgw or of the responder is borne: as long as the HAProxy
    layouts do.
    """
    reuse: bool = True
    """Whether connections to what is behind are kept between requests."""
    flush: Literal["on", "off", "auto"] = "on"
    """mod_proxy_fcgi's flushpackets.

    With `off` an answer that comes slowly reaches the client in one piece at its end.
    """
    balance: Literal["byrequests", "bytraffic", "bybusyness"] = "byrequests"
    """How one of several backends is chosen. The responder, where it is used, takes them in turn.
    """
    responder: ResponderSettings = ResponderSettings()
    access_log: bool = False
    """A line for each request in apache.access.log, without its query."""
    sendfile: bool = False
    """EnableSendfile; of files of Apache's own, of which a proxy has none."""
    extended_status: bool = True
    """Whether Apache counts requests and bytes, which costs it two looks at the clock a request;
    False: workers only.
    """
    modules: tuple[Annotated[str, Field(pattern=r"^[a-z0-9_]+$")], ...] = ()
    """More modules, such as `headers`, for directives under `options`."""
    options: dict[
        Section, dict[Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9]*$")], Value]
    ] = Field(default_factory=dict)
    """More directives by name: of the server, of the virtual host of clients, of its `<Location
    "/">`; `apache2 -t` checks them.
    """

    @field_validator("options")
    @classmethod
    def _addable(cls, options: dict[Section, dict[str, Value]]) -> dict[Section, dict[str, Value]]:
        for section, directives in options.items():
            for name, value in directives.items():
                if value == "":
                    raise ValueError(f"{section}: the value of {name} is not one line: it is empty")
                own = _OWN.get(name.lower())
                if own is not None:
                    raise ValueError(f"{section}: {name} is said by `{own}`")
        return options
