"""ceph.conf of a deployment, from its settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import ClassVar

from weighbridge.common.address import host_port
from weighbridge.gateways import ini
from weighbridge.gateways.certificates import SERVER_FILE
from weighbridge.gateways.file_grammar import IniGrammar
from weighbridge.gateways.rgw import objectstore
from weighbridge.gateways.rgw.ceph_roster import CephRoster
from weighbridge.gateways.rgw.releases import MGR_MODULES
from weighbridge.gateways.rgw.settings import PoolSettings, RadosgwSettings, RgwSettings

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
    given: ini.Sections = {str(name): options for name, options in settings.options.items()}
    general = {name for section in ("global", "client") for name in given.get(section, {})}
    known: dict[str, dict[str, ini.Value]] = {}
    for section, options in ours.items():
        # A daemon's own section would override the layout's general ones.
        hidden = {*lacks, *(general if section.startswith("client.") else ())}
        known[section] = {name: value for name, value in options.items() if name not in hidden}
    return ini.render(ini.merge(known, given))


def _sections(
    settings: RgwSettings, roster: CephRoster, fsid: str, *, native: bool
) -> ini.Sections:
    rgw, osd, pool = settings.radosgw, settings.osd, settings.pools
    sections: dict[str, Mapping[str, ini.Value]] = {
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


def _ip_version(roster: CephRoster) -> dict[str, ini.Value]:
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
