"""ceph.conf of a deployment, from its settings."""

from __future__ import annotations

import base64
import re
import secrets
import shlex
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

from weighbridge.common.document import did_you_mean
from weighbridge.common.endpoint import host_port
from weighbridge.common.errors import UsageError
from weighbridge.common.host import Host
from weighbridge.gateways import config_text
from weighbridge.gateways.certificates import SERVER_FILE
from weighbridge.gateways.gateway import Rendered
from weighbridge.gateways.probe import IniGrammar
from weighbridge.gateways.rgw import objectstore
from weighbridge.gateways.rgw.ceph_roster import CephRoster
from weighbridge.gateways.rgw.releases import MGR_MODULES
from weighbridge.gateways.rgw.settings import PoolSettings, RadosgwSettings, RgwSettings
from weighbridge.gateways.together import together

INDEX_POOL = "default.rgw.buckets.index"
DATA_POOL = "default.rgw.buckets.data"
OTHER_POOLS = (
    ".rgw.root",
    "default.rgw.log",
    "default.rgw.control",
    "default.rgw.meta",
    "default.rgw.buckets.non-ec",
)

CONF = "/etc/ceph/ceph.conf"
KEYRING = "/etc/ceph/keyring"
CLUSTER_LOG = "cluster.log"

_MOST_PG_PER_OSD = 2000


def pools(settings: PoolSettings) -> Mapping[str, int]:
    """Number of placement groups by pool, for all pools that radosgw would create on demand."""
    others = dict.fromkeys(OTHER_POOLS, settings.other_pg_num)
    return {**others, INDEX_POOL: settings.index_pg_num, DATA_POOL: settings.data_pg_num}


def frontend(settings: RadosgwSettings, address: str, port: int, *, native: bool = False) -> str:
    """The value of `rgw_frontends` of a radosgw; `native`: it speaks FastCGI itself."""
    if native:
        return f"fastcgi socket_port={port} socket_host={address}"
    # Beast rejects an address in `port` as no number, and civetweb does not know `endpoint`.
    listen = "port" if settings.frontend == "civetweb" else "endpoint"
    where = [f"{listen}={host_port(address, port)}"]
    if settings.tls:
        where = [f"ssl_endpoint={host_port(address, port)}", f"ssl_certificate={SERVER_FILE}"]
    words = [settings.frontend, *where, f"tcp_nodelay={int(settings.tcp_nodelay)}"]
    if settings.frontend == "civetweb":
        words.append(f"num_threads={settings.threads}")
    words += [f"{name}={value}" for name, value in settings.frontend_options.items()]
    return " ".join(words)


def ceph_conf(
    settings: RgwSettings,
    roster: CephRoster,
    *,
    fsid: str,
    lacks: AbstractSet[str] = frozenset(),
    native: bool = False,
) -> str:
    """The text of ceph.conf, the same on every host.

    This suite's options that the release `lacks` are left out. The layout's options override them
    all.
    """
    ours = _sections(settings, roster, fsid, native=native)
    given: config_text.Sections = {str(name): options for name, options in settings.options.items()}
    general = {name for section in ("global", "client") for name in given.get(section, {})}
    known: dict[str, dict[str, config_text.OptionValue]] = {}
    for section, options in ours.items():
        # A daemon's own section would override the layout's general ones.
        hidden = {*lacks, *(general if section.startswith("client.") else ())}
        known[section] = {name: value for name, value in options.items() if name not in hidden}
    return config_text.ini_text(config_text.merged_sections(known, given))


def _sections(
    settings: RgwSettings, roster: CephRoster, fsid: str, *, native: bool
) -> config_text.Sections:
    rgw, osd, pool = settings.radosgw, settings.osd, settings.pools
    sections: dict[str, Mapping[str, config_text.OptionValue]] = {
        "global": {
            "fsid": fsid,
            "mon_host": ",".join(one.places for one in roster.mons),
            "mon_initial_members": ",".join(one.id for one in roster.mons),
            **_ip_version(roster),
            "auth_allow_insecure_global_id_reclaim": False,
            "keyring": KEYRING,
            "log_file": "/var/log/host/$name.log",
            # A separate thread writes the log: a daemon that fails at once may exit before it has
            # logged why.
            "log_flush_on_exit": True,
            "mon_cluster_log_file": f"/var/log/host/{CLUSTER_LOG}",
            "admin_socket": "/run/ceph/$name.asok",
            "run_dir": "/run/ceph",
            "mon_data": "/var/lib/ceph/mon/$id",
            "mgr_data": "/var/lib/ceph/mgr/$id",
            "osd_data": "/var/lib/ceph/osd/$id",
            # The layout fixes the PG numbers: nothing may change them while a step runs.
            "osd_pool_default_size": pool.replicas,
            "osd_pool_default_min_size": pool.min_size,
            "osd_pool_default_pg_num": pool.other_pg_num,
            "osd_pool_default_pgp_num": pool.other_pg_num,
            "osd_pool_default_pg_autoscale_mode": "off",
            **settings.debug,
        },
        "mon": {
            "mon_max_pg_per_osd": _MOST_PG_PER_OSD,
            "mon_allow_pool_delete": True,
            # The mon creates the rule for placing copies together with its store.
            "osd_crush_chooseleaf_type": 1 if pool.failure_domain == "host" else 0,
            "mon_allow_pool_size_one": pool.replicas == 1,
            "mon_warn_on_pool_no_redundancy": pool.replicas > 1,
            # The mon's store is on the machine's own disk; how full that is says nothing about the
            # gateway.
            "mon_data_avail_warn": 1,
            "mon_data_avail_crit": 0,
            # A mon waits up to a second before each change, to batch others: pools would be ready
            # seconds later.
            "paxos_propose_interval": 0.05,
            "paxos_min_wait": 0.01,
        },
        "mgr": {"mgr_initial_modules": "", "mgr_disabled_modules": " ".join(MGR_MODULES)},
        "osd": {
            "osd_objectstore": osd.objectstore,
            **objectstore.options(osd),
            "osd_memory_target": osd.memory_target,
            # Flags such as noscrub would cause HEALTH_WARN; zero scrub slots do not.
            **({} if osd.scrub else {"osd_max_scrubs": 0}),
            # An OSD's own disk benchmark, before limits apply, would differ between deployments.
            "osd_mclock_skip_benchmark": True,
            "osd_crush_update_on_start": True,
            **({"cluster_network": osd.cluster_network} if osd.cluster_network else {}),
        },
        "client": {
            "rgw_print_continue": rgw.print_continue and not native,
            "rgw_thread_pool_size": rgw.threads,
            # Else requests with a customer's key are refused over plain HTTP (400).
            "rgw_crypt_require_ssl": False,
            "rgw_max_concurrent_requests": rgw.max_concurrent_requests,
            "rgw_override_bucket_index_max_shards": rgw.index_shards,
            "rgw_dynamic_resharding": rgw.dynamic_resharding,
            "rgw_enable_lc_threads": rgw.lifecycle,
            "rgw_enable_ops_log": rgw.ops_log,
            "rgw_max_chunk_size": rgw.max_chunk_size,
            "rgw_obj_stripe_size": rgw.stripe_size,
            "rgw_put_obj_min_window_size": rgw.put_min_window,
            "rgw_put_obj_max_window_size": rgw.put_max_window,
            "rgw_get_obj_window_size": rgw.get_window,
            "rgw_get_obj_max_req_size": rgw.get_max_request,
            "rgw_enable_gc_threads": rgw.gc.enabled,
            "rgw_gc_obj_min_wait": round(rgw.gc.min_wait),
            "rgw_gc_processor_period": round(rgw.gc.processor_period),
            "rgw_gc_max_concurrent_io": rgw.gc.max_concurrent_io,
        },
    }
    for mon in roster.mons:
        sections[f"mon.{mon.id}"] = sections[f"mgr.{mon.id}"] = {"public_addr": mon.address}
    for one in roster.osds:
        sections[f"osd.{one.number}"] = {
            "public_addr": one.address,
            **({} if osd.cluster_network else {"cluster_addr": one.address}),
            # Hosts may share one kernel and host name: CRUSH must still distinguish them.
            "crush_location": f"root=default host={one.host}",
            **objectstore.own_options(osd, one),
        }
    if roster.front_url is not None:
        # radosgw would give Swift clients a storage URL with its own port where the front's is 80:
        # they would bypass the front.
        sections["client"] = {**sections["client"], "rgw_swift_url": roster.front_url}
        if roster.front_url.startswith("https:"):
            # Else it refuses what it does over TLS only, such as SSE-C.
            sections["client"] = {**sections["client"], "rgw_trust_forwarded_https": True}
    for radosgw in roster.radosgws:
        front = frontend(rgw, radosgw.address, radosgw.port, native=native)
        sections[radosgw.name] = {"public_addr": radosgw.address, "rgw_frontends": front}
    return sections


def _ip_version(roster: CephRoster) -> dict[str, config_text.OptionValue]:
    """Ceph binds to IPv4 unless it is told otherwise."""
    if all(":" not in site.address for site in roster.sites.values()):
        return {}
    both = any(":" not in site.address for site in roster.sites.values())
    return {"ms_bind_ipv4": both, "ms_bind_ipv6": True}


class CephGrammar(IniGrammar):
    """ceph.conf."""

    names: ClassVar[tuple[str, ...]] = ("ceph.conf",)
    where: ClassVar[str] = (
        "Where: at the end of ceph.conf, or in the existing sections: the later of two lines for "
        "an option wins. A daemon's own section overrides a general one such as [client], wherever "
        "it is. Daemons read the file when they start."
    )

    def note(self, head: str) -> str:
        named = re.fullmatch(r"\[client\.rgw\..*\]", head)
        return "a radosgw of this layout: use the name of yours" if named else ""


GRAMMAR = CephGrammar()


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
    found = [said for name, said in missing.items() if name in mine or not of_another]
    values = {name: value for name, value in mine.items() if name in names}
    return found + _refused(host, release, values)


def _refused(host: Host, release: str, values: Mapping[str, config_text.OptionValue]) -> list[str]:
    """Values that the release does not accept, in its words: as arguments they are parsed as in a
    file, but errors are printed.
    """
    if not values:
        return []
    script = [
        shlex.join(
            [*_CEPH_CONF, f"--{name}={config_text.option_word(value)}", "--show-config-value", name]
        )
        + " 2>&1 || true"
        for name, value in values.items()
    ]
    output = host.run(["sh", "-c", "\n".join(script)]).stdout
    return [f"{release}: {line}" for line in output.splitlines() if line.startswith(_WRONG)]


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


def read_as(host: Host, daemon: str, options: Mapping[str, str]) -> dict[str, str]:
    """Values as the release's parser writes them for the daemon: `true` for 1, 16777216 for 16M.

    Raises UsageError with the values that it does not accept, in its own words; CommandFailed.
    """
    if not options:
        return {}
    commands = [
        shlex.join([*_CEPH_CONF, "-n", daemon, f"--{name}={value}", "--show-config-value", name])
        for name, value in options.items()
    ]
    script = "\n".join(f"{command} 2>&1; printf '{_STATUS}%d{_END}' $?" for command in commands)
    answers = host.run(["sh", "-c", script]).stdout.split(_END)[:-1]
    found, wrong = {}, []
    for name, answer in zip(options, answers, strict=True):
        text, _, status = answer.rpartition(_STATUS)
        # Release 14 prints an error, and its default as well.
        errors = [line for line in text.splitlines() if line.startswith(_WRONG)]
        if errors or status != "0":
            wrong.append(errors[0] if errors else f"{name}: {text.strip()}")
        found[name] = text.strip()
    if wrong:
        raise UsageError("\n".join(wrong))
    return found


def _parsed(conf: str) -> Iterator[tuple[str, str, str]]:
    section = ""
    for line in conf.splitlines():
        if line.startswith("["):
            section = line[1:-1]
        elif line:
            option, _, value = line.partition(" = ")
            yield section, option, value


_SECRET_BYTES = {1: 16, 2: 32}


@dataclass(frozen=True)
class HostFile:
    """One file of one host. `secrets` are the parts of its text that must not be shown."""

    host: str
    path: str
    text: str
    secrets: tuple[str, ...] = ()

    @property
    def mode(self) -> int:
        """File permissions: one with secrets is for root only."""
        return 0o600 if self.secrets else 0o644


@dataclass(frozen=True)
class Files:
    """All files of a deployment."""

    files: Sequence[HostFile]

    def write(self, hosts: Mapping[str, Host]) -> None:
        """Write them to their hosts. Raises TargetError."""

        def put(name: str) -> None:
            for file in self.files:
                if file.host == name:
                    hosts[name].put(file.path, file.text, mode=file.mode)

        together([partial(put, name) for name in dict.fromkeys(file.host for file in self.files)])

    def shown(self) -> tuple[Rendered, ...]:
        """The files with `***` for secrets."""
        return tuple(
            Rendered(
                host=file.host, path=file.path, text=config_text.masked(file.text, file.secrets)
            )
            for file in self.files
        )


def new_key(kind: Literal[1, 2]) -> str:
    """A random key: base64 of u16 kind, u32 s, u32 ns, u16 length (little endian), secret."""
    length = _SECRET_BYTES[kind]
    return base64.b64encode(
        struct.pack("<HIIH", kind, int(time.time()), 0, length) + secrets.token_bytes(length)
    ).decode()


def keyring(
    kind: Literal[1, 2], osds: int, gateways: Sequence[str], *, mgrs: Sequence[str] = ("a",)
) -> str:
    """The keyring, with caps, of the mons, mgrs, OSDs and gateways, and of an administrator."""
    entities: dict[str, Mapping[str, str]] = {
        "mon.": {"mon": "allow *"},
        "client.admin": {"mon": "allow *", "osd": "allow *", "mgr": "allow *", "mds": "allow *"},
    }
    entities |= {
        f"mgr.{one}": {"mon": "allow profile mgr", "osd": "allow *", "mds": "allow *"}
        for one in mgrs
    }
    entities |= {
        f"osd.{number}": {"mon": "allow profile osd", "mgr": "allow profile osd", "osd": "allow *"}
        for number in range(osds)
    }
    entities |= {
        name: {"mon": "allow rw", "mgr": "allow rw", "osd": "allow rwx"} for name in gateways
    }
    lines = []
    for name, caps in entities.items():
        lines += [
            f"[{name}]",
            f"key = {new_key(kind)}",
            *(f'caps {what} = "{caps[what]}"' for what in caps),
        ]
    return "\n".join(lines) + "\n"
