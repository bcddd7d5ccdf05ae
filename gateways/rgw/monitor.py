"""What Ceph is asked: its monitors in one session, daemons by their admin sockets, and the parser
by which a release reads ceph.conf.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Self

from pydantic import TypeAdapter

from weighbridge.common.document import did_you_mean
from weighbridge.common.errors import CommandFailed
from weighbridge.common.host import Host, PipedProcess
from weighbridge.common.program_lines import NoLine, ProgramEnded, ProgramLines, end
from weighbridge.common.structure import CounterFigure, DaemonCounters
from weighbridge.gateways import config_text, daemon, program
from weighbridge.gateways.daemon import Daemon
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


def ceph_name(one: Daemon) -> str:
    """A daemon's name in Ceph, such as osd.0 or client.rgw.gateway-1."""
    program, _, option, ident, *_ = one.service.argv
    return ident if option == "-n" else f"{program.removeprefix('ceph-')}.{ident}"


def socket_of(one: Daemon) -> str:
    """The path of a daemon's admin socket."""
    return f"/run/ceph/{ceph_name(one)}.asok"


def probe(one: Daemon) -> Probe:
    """The program that prints a radosgw's or OSD's counters every second; it is put on its host."""
    name = ceph_name(one)
    counters, shown = (
        (RADOSGW, SHOWN_OF_RADOSGW) if name.startswith("client.") else (OSD, SHOWN_OF_OSD)
    )
    argv = program.ship(one.host, "weighbridge.gateways.rgw.ask_daemon")
    # Users know client.rgw.gateway-1 as radosgw.gateway-1.
    shown_name = name.replace("client.rgw", "radosgw")
    return Probe(one.host, shown_name, (*argv, socket_of(one), *counters), counters=shown)


def ask(daemons: Sequence[Daemon], *commands: Command) -> list[list[str]]:
    """Each daemon's answers to commands; hosts are asked concurrently. Raises CommandFailed."""
    groups = daemon.by_host(daemons)

    def ask_host(group: Sequence[Daemon]) -> list[str]:
        argv = program.ship(group[0].host, "weighbridge.gateways.rgw.ask_daemon")
        order = [[socket_of(one), command] for one in group for command in commands]
        answers: list[str] = json.loads(
            group[0].host.run(argv, stdin=json.dumps(order), timeout_s=120).stdout
        )
        return answers

    by_name: dict[str, list[str]] = {}
    for group, answers in zip(
        groups, together([partial(ask_host, one) for one in groups]), strict=True
    ):
        for index, one in enumerate(group):
            by_name[ceph_name(one)] = answers[index * len(commands) : (index + 1) * len(commands)]
    return [by_name[ceph_name(one)] for one in daemons]


def ask_options(one: Daemon, prefix: str, names: Sequence[str]) -> dict[str, str]:
    """A daemon's answer to a command about each of these options. Raises CommandFailed."""
    if not names:
        return {}
    commands: list[Command] = [{"prefix": prefix, "var": name} for name in names]
    return dict(zip(names, ask([one], *commands)[0], strict=True))


def set_options(daemons: Sequence[Daemon], options: Mapping[str, str]) -> list[dict[str, str]]:
    """Each daemon's answers to setting options while it runs, by option. Raises CommandFailed."""
    commands = [
        {"prefix": "config set", "var": name, "val": [value]} for name, value in options.items()
    ]
    return [dict(zip(options, answers, strict=True)) for answers in ask(daemons, *commands)]


def running_values(one: Daemon, names: Iterable[str]) -> dict[str, str]:
    """A daemon's running values. Raises ServiceFailed for an unknown option, CommandFailed."""
    values = {}
    for name, answer in ask_options(one, "config get", tuple(names)).items():
        value = option(answer, name)
        if value is None:
            raise one.failed(f"does not know the option {name!r}")
        values[name] = value
    return values


def option(answer: str, name: str) -> str | None:
    """The value in the answer to `config get`; None when the daemon does not know the option."""
    try:
        value = json.loads(answer).get(name)
    except json.JSONDecodeError:
        return None
    return None if value is None else str(value)


# Options of ceph.conf, parsed and checked by the release's own `ceph-conf`, without a daemon.


_WRONG = "parse error setting"
_STATUS = "\x1e"
_END = "\x1f"
# An empty file: the one on the host must not influence the answer.
_CEPH_CONF = ("ceph-conf", "-c", "/dev/null")


def known_options(host: Host) -> frozenset[str]:
    """Every option of the release on this host. Raises CommandFailed."""
    shown = host.run([*_CEPH_CONF, "--show-config"]).stdout
    return frozenset(line.partition(" = ")[0] for line in shown.splitlines() if " = " in line)


def unknown_options(host: Host, release: str, conf: str) -> dict[str, str]:
    """Options unknown to the release, which it ignores, in sentences. Raises CommandFailed."""
    return _unknown(known_options(host), release, conf)


def _unknown(names: frozenset[str], release: str, conf: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for section, name, _ in _parsed(conf):
        if name not in names:
            hint = did_you_mean(name, sorted(names), known=False)
            kind = section.partition(".")[0]
            found.setdefault(name, f"{release} has no option {name!r} in [{kind}]{hint}")
    return found


def option_faults(
    host: Host,
    release: str,
    conf: str,
    given: Sequence[Mapping[str, config_text.OptionValue]],
    *,
    of_another: bool = False,
) -> list[str]:
    """Options of a ceph.conf that the release does not know, and values it does not accept.

    `given` are the layout's own options by section: only their values are checked, and only their
    names if the settings are `of_another` release. Raises CommandFailed.
    """
    mine = {name: value for of in given for name, value in of.items()}
    names = known_options(host)
    missing = _unknown(names, release, conf)
    faults = [said for name, said in missing.items() if name in mine or not of_another]
    values = {name: config_text.option_word(value) for name, value in mine.items() if name in names}
    _, refused = parsed_values(host, "client.admin", values)
    return faults + [f"{release}: {line}" for line in refused]


def effective(conf: str, name: str) -> dict[str, str]:
    """The options of a ceph.conf for the daemon `name`, such as client.rgw.gateway-1.

    Its own section overrides that of its kind, which overrides [global].
    """
    sections: dict[str, dict[str, str]] = {}
    for section, option, value in _parsed(conf):
        sections.setdefault(section, {})[option] = value
    found: dict[str, str] = {}
    for one in ("global", name.partition(".")[0], name):
        found |= sections.get(one, {})
    return found


def parsed_values(
    host: Host, daemon_name: str, options: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """Values as the release's parser writes them for a daemon, `true` for 1, 16777216 for 16M, and
    what it says of those that it does not accept. As arguments values are parsed as in a file, but
    errors are printed. Raises CommandFailed.
    """
    if not options:
        return {}, []
    argv = [*_CEPH_CONF, "-n", daemon_name]
    commands = [
        shlex.join([*argv, f"--{name}={value}", "--show-config-value", name])
        for name, value in options.items()
    ]
    script = "\n".join(f"{command} 2>&1; printf '{_STATUS}%d{_END}' $?" for command in commands)
    answers = host.run(["sh", "-c", script]).stdout.split(_END)[:-1]
    values, refused = {}, []
    for name, answer in zip(options, answers, strict=True):
        text, _, status = answer.rpartition(_STATUS)
        # Release 14 prints an error, and its default as well.
        errors = [line for line in text.splitlines() if line.startswith(_WRONG)]
        if errors or status != "0":
            refused.append(errors[0] if errors else f"{name}: {text.strip()}")
        values[name] = text.strip()
    return values, refused


def _parsed(conf: str) -> Iterator[tuple[str, str, str]]:
    section = ""
    for line in conf.splitlines():
        if line.startswith("["):
            section = line[1:-1]
        elif line:
            option, _, value = line.partition(" = ")
            yield section, option, value
