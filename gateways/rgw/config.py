"""ceph.conf of a deployment, from its settings."""

from __future__ import annotations

from collections.abc import Mapping

from gateways import ini
from gateways.rgw.settings import PoolSettings, RadosgwSettings, Settings

INDEX_POOL = "default.rgw.buckets.index"
DATA_POOL = "default.rgw.buckets.data"
OTHER_POOLS = (".rgw.root", "default.rgw.log", "default.rgw.control", "default.rgw.meta", "default.rgw.buckets.non-ec")

CONF = "/etc/ceph/ceph.conf"
KEYRING = "/etc/ceph/keyring"
CLUSTER_LOG = "cluster.log"

_MOST_PG_PER_OSD = 2000


def pools(settings: PoolSettings) -> Mapping[str, int]:
    """Number of placement groups by pool: all that radosgw would make one by one when it first needs them."""
    others = dict.fromkeys(OTHER_POOLS, settings.other_pg_num)
    return {**others, INDEX_POOL: settings.index_pg_num, DATA_POOL: settings.data_pg_num}


def frontend(settings: RadosgwSettings) -> str:
    """The value of `rgw_frontends`."""
    words = [settings.frontend, f"port={settings.port}", f"tcp_nodelay={int(settings.tcp_nodelay)}"]
    if settings.frontend == "civetweb":
        words.append(f"num_threads={settings.threads}")
    return " ".join(words)


def ceph_conf(
    settings: Settings, fsid: str, mon_address: str, osds: Mapping[int, tuple[str, str]], gateways: Mapping[str, str]
) -> str:
    """The text of ceph.conf, the same on every host.

    `osds`: number -> (name of its host, address); `gateways`: name of the daemon -> address.
    """
    return ini.render(
        ini.merge(
            _sections(settings, fsid, mon_address, osds, gateways),
            {str(name): options for name, options in settings.options.items()},
        )
    )


def _sections(
    settings: Settings, fsid: str, mon_address: str, osds: Mapping[int, tuple[str, str]], gateways: Mapping[str, str]
) -> ini.Sections:
    rgw, osd, pool = settings.radosgw, settings.osd, settings.pools
    sections: dict[str, Mapping[str, ini.Value]] = {
        "global": {
            "fsid": fsid,
            "mon_host": f"[v2:{mon_address}:3300,v1:{mon_address}:6789]",
            "mon_initial_members": "a",
            "auth_allow_insecure_global_id_reclaim": False,
            "keyring": KEYRING,
            "log_file": "/var/log/host/$name.log",
            "mon_cluster_log_file": f"/var/log/host/{CLUSTER_LOG}",
            "admin_socket": "/run/ceph/$name.asok",
            "run_dir": "/run/ceph",
            "mon_data": "/var/lib/ceph/mon/a",
            "mgr_data": "/var/lib/ceph/mgr/a",
            "osd_data": "/var/lib/ceph/osd/$id",
            # PG numbers are chosen in the layout: nothing may change them while a step runs.
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
            "mon_allow_pool_size_one": pool.replicas == 1,
            "mon_warn_on_pool_no_redundancy": pool.replicas > 1,
            # The disk under the mon's store is the machine's own; how full that is says nothing about the gateway.
            "mon_data_avail_warn": 1,
            "mon_data_avail_crit": 0,
            # A mon waits up to a second before each change, for others to join in: pools would come up seconds later.
            "paxos_propose_interval": 0.05,
            "paxos_min_wait": 0.01,
        },
        "mgr": {"mgr_initial_modules": ""},
        "osd": {
            "osd_objectstore": osd.objectstore,
            "osd_memory_target": osd.memory_target,
            # Flags such as noscrub would leave the cluster in HEALTH_WARN; no scrub slots do not.
            **({} if osd.scrub else {"osd_max_scrubs": 0}),
            "osd_crush_update_on_start": True,
            "osd_crush_chooseleaf_type": 1 if pool.failure_domain == "host" else 0,
        },
        "client": {
            "rgw_frontends": frontend(rgw),
            "rgw_thread_pool_size": rgw.threads,
            "rgw_max_concurrent_requests": rgw.max_concurrent_requests,
            "rgw_override_bucket_index_max_shards": rgw.index_shards,
            "rgw_dynamic_resharding": rgw.dynamic_resharding,
            "rgw_enable_lc_threads": rgw.lifecycle,
            "rgw_enable_ops_log": rgw.ops_log,
            "rgw_enable_gc_threads": rgw.gc.enabled,
            "rgw_gc_obj_min_wait": round(rgw.gc.min_wait),
            "rgw_gc_processor_period": round(rgw.gc.processor_period),
            "rgw_gc_max_concurrent_io": rgw.gc.max_concurrent_io,
        },
        "mon.a": {"public_addr": mon_address},
        "mgr.a": {"public_addr": mon_address},
    }
    for number, (host, address) in osds.items():
        sections[f"osd.{number}"] = {
            "public_addr": address,
            "cluster_addr": address,
            # Hosts may share one kernel, and with it a host name: CRUSH must still see them apart.
            "crush_location": f"root=default host={host}",
        }
    for name, address in gateways.items():
        sections[name] = {"public_addr": address}
    return sections
