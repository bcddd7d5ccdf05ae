"""Commands to a cluster: to its monitors in one session, and to daemons by their admin sockets."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

from pydantic import TypeAdapter

from weighbridge.common.errors import CommandFailed, ServiceFailed
from weighbridge.common.host import Host, PipedProcess
from weighbridge.common.program_lines import NoLine, ProgramEnded, ProgramLines, end
from weighbridge.common.structure import CounterFigure, DaemonCounters
from weighbridge.gateways import program
from weighbridge.gateways.probe import Probe
from weighbridge.gateways.together import together

# Each is `key=group.counter`, with groups and counters of the daemon's `perf dump`. Other releases'
# names for the same counter follow after a comma. Counters that a release or object store lacks are
# left out.

RADOSGW: tuple[str, ...] = (
    *("req=rgw.req", "failed_req=rgw.failed_req", "qlen=rgw.qlen", "qactive=rgw.qactive"),
    *("get=rgw.get,rgw_op.get_obj_ops", "get_b=rgw.get_b,rgw_op.get_obj_bytes"),
    *("put=rgw.put,rgw_op.put_obj_ops", "put_b=rgw.put_b,rgw_op.put_obj_bytes"),
    "get_initial_lat=rgw.get_initial_lat,rgw_op.get_obj_lat",
    "put_initial_lat=rgw.put_initial_lat,rgw_op.put_obj_lat",
    *("cache_hit=rgw.cache_hit", "cache_miss=rgw.cache_miss"),
    "gc_retire_object=rgw.gc_retire_object",
    *("objecter_op=objecter.op", "objecter_op_active=objecter.op_active"),
    *("objecter_op_laggy=objecter.op_laggy", "objecter_op_resend=objecter.op_resend"),
    "objecter_send_bytes=objecter.op_send_bytes",
    # Bytes and operations in flight to OSDs, and how long requests waited for the limit on them.
    "objecter_bytes=throttle-objecter_bytes.val",
    "objecter_bytes_wait=throttle-objecter_bytes.wait",
    "objecter_ops=throttle-objecter_ops.val",
    "objecter_ops_wait=throttle-objecter_ops.wait",
)
OSD: tuple[str, ...] = (
    *(
        f"{name}=osd.{name}"
        for name in (
            *("op_wip", "op", "op_in_bytes", "op_out_bytes", "op_latency", "op_process_latency"),
            *("op_r", "op_r_latency", "op_w", "op_w_latency", "op_rw", "op_rw_latency"),
            *("subop_w", "subop_w_in_bytes", "subop_w_latency", "op_before_dequeue_op_lat"),
        )
    ),
    "used_bytes=osd.stat_bytes_used",
    *(
        f"bluestore_{name}=bluestore.{name}"
        for name in ("kv_flush_lat", "kv_commit_lat", "kv_sync_lat", "read_lat")
    ),
    "bluestore_commit_lat=bluestore.commit_lat,bluestore.txc_commit_lat",
    "bluestore_throttle_lat=bluestore.throttle_lat,bluestore.txc_throttle_lat",
    "bluestore_aio_wait_lat=bluestore.state_aio_wait_lat",
    "bluestore_deferred_writes=bluestore.deferred_write_ops,bluestore.issued_deferred_writes",
    "bluestore_onode_hits=bluestore.onode_hits,bluestore.bluestore_onode_hits",
    "bluestore_onode_misses=bluestore.onode_misses,bluestore.bluestore_onode_misses",
    "bluestore_buffer_hit_bytes=bluestore.buffer_hit_bytes,bluestore.bluestore_buffer_hit_bytes",
    "bluestore_buffer_miss_bytes=bluestore.buffer_miss_bytes,bluestore.bluestore_buffer_miss_bytes",
    *(
        f"filestore_{name}=filestore.{name}"
        for name in (
            *("journal_latency", "journal_queue_bytes", "journal_full"),
            *("apply_latency", "commitcycle_latency", "op_queue_ops"),
        )
    ),
)

SHOWN_OF_RADOSGW = DaemonCounters(
    daemon="radosgw",
    figures=(
        CounterFigure(words="{} requests in work", reckon="sum", counters=("qactive",)),
        CounterFigure(
            words="first byte of a read after {} ms",
            reckon="latency",
            counters=("get_initial_lat",),
        ),
        CounterFigure(words="a write takes {} ms", reckon="latency", counters=("put_initial_lat",)),
        CounterFigure(
            words="{} % of metadata from its cache",
            reckon="hits",
            counters=("cache_hit", "cache_miss"),
        ),
    ),
    waiting="qlen",
    working="qactive",
)
SHOWN_OF_OSD = DaemonCounters(
    daemon="osd",
    figures=(
        CounterFigure(words="{} op/s", reckon="rate", counters=("op",)),
        CounterFigure(words="an operation takes {} ms", reckon="latency", counters=("op_latency",)),
        CounterFigure(words="a commit {} ms", reckon="latency", counters=("bluestore_commit_lat",)),
        CounterFigure(
            words="{} % of onodes cached",
            reckon="hits",
            counters=("bluestore_onode_hits", "bluestore_onode_misses"),
        ),
    ),
)


Command = Mapping[str, Any]

_ANSWER_WITHIN_S = 90.0
_ANSWERS = TypeAdapter(list[tuple[int, str, str]])
_LONGEST_ANSWER_BYTES = 256 * 2**20
"""For the state of a large cluster."""


class Monitor:
    """A kept session with the monitors, a context manager that calls `watch` as it waits."""

    def __init__(self, host: Host, watch: Callable[[], None]) -> None:
        """Start the session's program on the mon host. Raises CommandFailed."""
        self._host = host
        self._watch = watch
        self._argv = program.ship(host, "weighbridge.gateways.rgw.ask_mon")
        self._log = host.log("ask-mon.err")
        self._process: PipedProcess = host.spawn(self._argv, stderr=self._log)
        self._lines = ProgramLines(self._process, longest_bytes=_LONGEST_ANSWER_BYTES)

    def ask(self, *commands: Command) -> list[str]:
        """The outputs of concurrent commands. Raises CommandFailed with the first one refused."""
        try:
            self._lines.send(json.dumps(commands), _ANSWER_WITHIN_S)
            line = self._lines.next(_ANSWER_WITHIN_S, self._watch)
            answers = list(zip(commands, _ANSWERS.validate_json(line), strict=True))
        except ValueError:
            said = f"no answers: {line[:100].decode(errors='replace')}"
            raise CommandFailed(self._host.name, self._argv, None, said) from None
        except NoLine as error:
            self._watch()
            code = error.code if isinstance(error, ProgramEnded) else None
            what = [str(error)] if code is None else []
            output = "\n".join((*what, *self._host.log_tail(self._log.name)))
            raise CommandFailed(self._host.name, self._argv, code, output) from None
        for command, (code, output, message) in answers:
            if code:
                raise CommandFailed(
                    self._host.name, ("ceph", json.dumps(command)), code, f"{message}\n{output}"
                )
        return [output for _, (_, output, _) in answers]

    def status(self) -> dict[str, Any]:
        """The output of `ceph status`."""
        found: dict[str, Any] = json.loads(self.ask({"prefix": "status", "format": "json"})[0])
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        end(self._process)


@dataclass(frozen=True)
class CephDaemon:
    """A running Ceph daemon with its admin socket, such as osd.0 or client.rgw.gateway-1."""

    host: Host
    name: str

    @property
    def socket(self) -> str:
        return f"/run/ceph/{self.name}.asok"

    def failed(self, what: str, *, advice: str = "") -> ServiceFailed:
        """The error that `what` happened, with the last lines of its log."""
        log = f"{self.name}.log"
        return ServiceFailed(
            self.host.name,
            self.name,
            what,
            log=str(self.host.log(log)),
            tail=self.host.log_tail(log),
            advice=advice,
        )

    def probe(self) -> Probe:
        """The program that prints its counters every second; it is put on the host."""
        counters, shown = (
            (RADOSGW, SHOWN_OF_RADOSGW) if self.name.startswith("client.") else (OSD, SHOWN_OF_OSD)
        )
        # Users know client.rgw.gateway-1 as radosgw.gateway-1.
        name = self.name.replace("client.rgw", "radosgw")
        argv = program.ship(self.host, "weighbridge.gateways.rgw.ceph_counters")
        return Probe(self.host, name, (*argv, self.socket, *counters), counters=shown)


def ask(daemons: Sequence[CephDaemon], *commands: Command) -> dict[CephDaemon, list[str]]:
    """The answers of daemons of one host to commands, by daemon. Raises CommandFailed."""
    argv = program.ship(daemons[0].host, "weighbridge.gateways.rgw.ask_daemon")
    order = [[daemon.socket, command] for daemon in daemons for command in commands]
    answers: list[str] = json.loads(
        daemons[0].host.run(argv, stdin=json.dumps(order), timeout_s=120).stdout
    )
    size = len(commands)
    return {
        daemon: answers[index * size : (index + 1) * size] for index, daemon in enumerate(daemons)
    }


def ask_all(daemons: Sequence[CephDaemon], *commands: Command) -> dict[CephDaemon, list[str]]:
    """As `ask`, of daemons of any hosts, which are asked concurrently."""
    by_host: dict[str, list[CephDaemon]] = {}
    for daemon in daemons:
        by_host.setdefault(daemon.host.name, []).append(daemon)
    answers = together([partial(ask, mine, *commands) for mine in by_host.values()])
    return {daemon: texts for answer in answers for daemon, texts in answer.items()}


def ask_options(daemon: CephDaemon, prefix: str, names: Sequence[str]) -> dict[str, str]:
    """A daemon's answer to a command about each of these options. Raises CommandFailed."""
    if not names:
        return {}
    commands: list[Command] = [{"prefix": prefix, "var": name} for name in names]
    return dict(zip(names, ask([daemon], *commands)[daemon], strict=True))


def running_values(daemon: CephDaemon, names: Sequence[str]) -> dict[str, str]:
    """A daemon's running values. Raises ServiceFailed for an unknown option, CommandFailed."""
    values = {}
    for name, answer in ask_options(daemon, "config get", names).items():
        value = option(answer, name)
        if value is None:
            raise daemon.failed(f"does not know the option {name!r}")
        values[name] = value
    return values


def option(answer: str, name: str) -> str | None:
    """The value in the answer to `config get`; None when the daemon does not know the option."""
    try:
        value = json.loads(answer).get(name)
    except json.JSONDecodeError:
        return None
    return None if value is None else str(value)
