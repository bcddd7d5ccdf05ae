"""What a layout makes on its hosts: Ceph's daemons with their names, addresses, ports and disks,
ceph.conf and keyring, and the scripts that make and mount the stores of OSDs.
"""

from __future__ import annotations

import base64
import re
import secrets
import struct
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final, Literal, NamedTuple

from weighbridge.common.endpoint import host_port
from weighbridge.common.host import Host
from weighbridge.gateways import config_text
from weighbridge.gateways.certificates import SERVER_FILE, Certificates
from weighbridge.gateways.front import Backend, Behind, Front, front_of, front_url, tls_host
from weighbridge.gateways.gateway import Gateway, Site
from weighbridge.gateways.options import values
from weighbridge.gateways.probe import IniGrammar
from weighbridge.gateways.rgw.monitor import known_options
from weighbridge.gateways.rgw.releases import MGR_MODULES, RELEASES
from weighbridge.gateways.rgw.settings import (
    MON_IDS,
    OsdSettings,
    RadosgwSettings,
    RgwPlacement,
    RgwSettings,
)
from weighbridge.gateways.running import HostFile

MON_PORTS: Final = (3300, 6789)
"""Ports of a mon: of protocol v2 and v1."""
CONF: Final = "/etc/ceph/ceph.conf"
KEYRING: Final = "/etc/ceph/keyring"
CLUSTER_LOG: Final = "cluster.log"
_HEALTH_PATH: Final = "/swift/healthcheck"
# A radosgw with the FastCGI front end calls libfcgi: its symbols are in the program or Ceph's
# library.
_FASTCGI: Final = (
    "grep -qa FCGX_ $(command -v radosgw) /usr/lib/*/libradosgw.so* 2>/dev/null && echo "
    "yes || echo no"
)


_OF_EVERY_CLUSTER: Final[config_text.Sections] = {
    "global": {
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
        "osd_pool_default_pg_autoscale_mode": "off",
    },
    "mon": {
        "mon_max_pg_per_osd": 2000,
        "mon_allow_pool_delete": True,
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
        # An OSD's own disk benchmark, before limits apply, would differ between deployments.
        "osd_mclock_skip_benchmark": True,
        "osd_crush_update_on_start": True,
    },
    # Else requests with a customer's key are refused over plain HTTP (400).
    "client": {"rgw_crypt_require_ssl": False},
}


@dataclass(frozen=True)
class Osd:
    """A planned OSD. `data` are the disks of its store, over which a file system may stripe, and
    empty for memstore; `journal_disk` is only of separate journals.
    """

    number: int
    host: str
    address: str
    data: tuple[str, ...] = ()
    journal_disk: str | None = None
    uuid: str = field(default_factory=lambda: str(uuid.uuid4()), compare=False)

    @property
    def disks(self) -> tuple[str, ...]:
        return self.data if self.journal_disk is None else (*self.data, self.journal_disk)

    @property
    def folder(self) -> str:
        return f"/var/lib/ceph/osd/{self.number}"


@dataclass(frozen=True)
class Mon:
    """A planned mon, `mon.a`, and the mgr beside it, `mgr.a`."""

    id: str
    host: str
    address: str

    @property
    def places(self) -> str:
        """Where it listens, as Ceph writes it."""
        v2, v1 = (host_port(self.address, port) for port in MON_PORTS)
        return f"[v2:{v2},v1:{v1}]"


@dataclass(frozen=True)
class Radosgw:
    """A planned radosgw. `name` is its name in Ceph, `service` its service on the host."""

    name: str
    service: str
    host: str
    address: str
    port: int


@dataclass(frozen=True)
class CephKeys:
    """What a cluster keeps while its settings change: its number, keys and certificates."""

    fsid: str
    keyring: str
    certificates: Certificates | None
    """None: clients use plain HTTP."""
    access_key: str = field(default_factory=lambda: secrets.token_hex(10).upper())
    secret_key: str = field(default_factory=lambda: secrets.token_urlsafe(30))
    swift_key: str = field(default_factory=lambda: secrets.token_urlsafe(30))


class CephPlan:
    """The daemons that a layout makes on these hosts, and their files."""

    place: RgwPlacement
    settings: RgwSettings

    def __init__(self, gateway: Gateway, sites: Mapping[str, Site]) -> None:
        self.place, self.settings = place, settings = gateway.place, gateway.settings
        self.release = RELEASES[gateway.release]
        self.sites: Mapping[str, Site] = {name: sites[name] for name in place.hosts}
        self.mons = tuple(
            Mon(letter, name, sites[name].address)
            for letter, name in zip(MON_IDS, place.mon, strict=False)
        )
        # OSDs are numbered host by host: one a disk, or for memstore as many as the layout says.
        disks = [
            (self.sites[name], disks)
            for name in place.osd
            for disks in self._osd_disks(self.sites[name])
        ]
        self.osds = tuple(
            Osd(number, site.name, site.address, *own) for number, (site, own) in enumerate(disks)
        )
        self.radosgws = tuple(self._radosgws())
        self.front_url = front_url(place, settings, sites)

    def _osd_disks(self, site: Site) -> Iterator[tuple[tuple[str, ...], str | None]]:
        osd = self.settings.osd
        if osd.objectstore == "memstore":
            yield from [((), None)] * osd.memstore.per_host
            return
        data, journals = osd.split(len(site.disks))
        apart = site.disks[journals[0]] if journals else None
        disks = tuple(site.disks[number] for number in data)
        yield from [(disks, apart)] if osd.striped else (((disk,), apart) for disk in disks)

    def _radosgws(self) -> Iterator[Radosgw]:
        settings = self.settings.radosgw
        for name in self.place.radosgw:
            for index in range(settings.daemons):
                more = f".{index}" if settings.daemons > 1 else ""
                address, port = self.sites[name].address, settings.port + index
                yield Radosgw(f"client.rgw.{name}{more}", f"radosgw{more}", name, address, port)

    def knows(self, host: Host) -> Callable[[str], bool]:
        """Whether its daemons know an option of this suite; the release on the host is asked if it
        has the settings of another. Raises CommandFailed.
        """
        lacks = self.release.lacks
        if not self.release.settings_of:
            return lambda name: name not in lacks
        known = known_options(host) - lacks
        return lambda name: name in known

    def speaks_fastcgi(self, hosts: Mapping[str, Host]) -> bool:
        """Whether a front should speak FastCGI to radosgw that can. Raises CommandFailed."""
        front = self.front(native=False)
        if front is None or not front.wants_fastcgi:
            return False
        host = hosts[self.place.radosgw[0]]
        return host.run(["sh", "-c", _FASTCGI]).stdout.strip() == "yes"

    def osds_of(self, host: str) -> list[Osd]:
        return [one for one in self.osds if one.host == host]

    def front(self, *, native: bool) -> Front | None:
        """The layout's front; `native`: the radosgw behind it speak FastCGI themselves."""
        behind = Behind(health_path=_HEALTH_PATH, fastcgi=native)
        return front_of(self.place, self.settings, behind)

    def keyring(self) -> str:
        """A new keyring."""
        names = [one.name for one in self.radosgws]
        mgrs = [one.id for one in self.mons]
        return keyring(self.release.key_type, len(self.osds), names, mgrs=mgrs)

    def front_files(self, *, native: bool) -> Mapping[str, str]:
        front = self.front(native=native)
        if front is None or self.place.front is None:
            return {}
        backends = [
            Backend(f"{one.host}-{one.port}", one.address, one.port) for one in self.radosgws
        ]
        return front.files(self.sites[self.place.front].address, backends)

    def files(self, keys: CephKeys, *, native: bool) -> tuple[HostFile, ...]:
        """All configuration files."""
        conf = self.conf(keys.fsid, native=native)
        secret = tuple(re.findall(r"^key = (.*)$", keys.keyring, re.MULTILINE))
        files = []
        for name in self.sites:
            files.append(HostFile(name, CONF, conf))
            files.append(HostFile(name, KEYRING, keys.keyring, secret))
        if self.place.front is not None:
            for path, text in self.front_files(native=native).items():
                files.append(HostFile(self.place.front, path, text))
        host = tls_host_of(self.place, self.settings)
        if host is not None and keys.certificates is not None:
            own = (keys.certificates.secret,)
            files.append(HostFile(host, SERVER_FILE, keys.certificates.server, own))
        return tuple(files)

    def conf(self, fsid: str, *, native: bool) -> str:
        """The text of ceph.conf, the same on every host: what this suite sets of what the release
        has, below the layout's own options.
        """
        given: config_text.Sections = {
            str(name): options for name, options in self.settings.options.items()
        }
        general = {name for section in ("global", "client") for name in given.get(section, {})}
        ours: dict[str, dict[str, config_text.OptionValue]] = {}
        for section, options in self._sections(fsid, native=native).items():
            # A daemon's own section would override the layout's general ones.
            hidden = {*self.release.lacks, *(general if section.startswith("client.") else ())}
            ours[section] = {name: value for name, value in options.items() if name not in hidden}
        return config_text.ini_text(config_text.merged_sections(ours, given))

    def _sections(self, fsid: str, *, native: bool) -> config_text.Sections:
        settings = self.settings
        rgw, osd, pools = settings.radosgw, settings.osd, settings.pools
        client: dict[str, config_text.OptionValue] = {}
        if native:
            client["rgw_print_continue"] = False
        if self.front_url is not None:
            # radosgw would give Swift clients a storage URL with its own port where the front's is
            # 80: they would bypass the front.
            client["rgw_swift_url"] = self.front_url
            if self.front_url.startswith("https:"):
                # Else it refuses what it does over TLS only, such as SSE-C.
                client["rgw_trust_forwarded_https"] = True
        sections: dict[str, Mapping[str, config_text.OptionValue]] = {
            "global": {
                "fsid": fsid,
                "mon_host": ",".join(one.places for one in self.mons),
                "mon_initial_members": ",".join(one.id for one in self.mons),
                **self._ip_version(),
                "osd_pool_default_pg_num": pools.other_pg_num,
                "osd_pool_default_pgp_num": pools.other_pg_num,
                **settings.debug,
            },
            "mon": {
                # The mon creates the rule for placing copies together with its store.
                "osd_crush_chooseleaf_type": 1 if pools.failure_domain == "host" else 0,
                "mon_allow_pool_size_one": pools.replicas == 1,
                "mon_warn_on_pool_no_redundancy": pools.replicas > 1,
            },
            # Flags such as noscrub would cause HEALTH_WARN; zero scrub slots do not.
            "osd": {**_store_options(osd), **({} if osd.scrub else {"osd_max_scrubs": 0})},
            "client": client,
        }
        for mon in self.mons:
            sections[f"mon.{mon.id}"] = sections[f"mgr.{mon.id}"] = {"public_addr": mon.address}
        for one in self.osds:
            sections[f"osd.{one.number}"] = {
                "public_addr": one.address,
                **({} if osd.cluster_network else {"cluster_addr": one.address}),
                # Hosts may share one kernel and host name: CRUSH must still distinguish them.
                "crush_location": f"root=default host={one.host}",
                **_journal(osd, one),
            }
        for radosgw in self.radosgws:
            front = frontend(rgw, radosgw.address, radosgw.port, native=native)
            sections[radosgw.name] = {"public_addr": radosgw.address, "rgw_frontends": front}
        return config_text.merged_sections(
            _OF_EVERY_CLUSTER, values(rgw), values(osd), values(pools), sections
        )

    def _ip_version(self) -> dict[str, config_text.OptionValue]:
        """Ceph binds to IPv4 unless it is told otherwise."""
        versions = {":" in site.address for site in self.sites.values()}
        return {"ms_bind_ipv4": False in versions, "ms_bind_ipv6": True} if True in versions else {}


def tls_host_of(place: RgwPlacement, settings: RgwSettings) -> str | None:
    """The host whose server speaks TLS to clients; None: they use plain HTTP."""
    unfronted = place.radosgw[0] if settings.radosgw.tls else None
    return tls_host(place, settings, unfronted)


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


_SECRET_BYTES = {1: 16, 2: 32}


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


# The stores of a host's OSDs: raw disks, file systems and journals, or memory only.

JOURNALS = "/var/lib/ceph/journal"
"""Mount point of the journal disk."""

# BlueStore waits up to bdev_aio_poll_ms whenever a device is closed, and mkfs and start close it a
# dozen times: three seconds at the default. The running OSDs get the default back before anything
# is measured.
FAST_POLL = "--bdev-aio-poll-ms=10"
POLL_MS = "250"

# A separate thread writes Ceph's log: a process that fails at once may otherwise exit before it has
# logged why.
_MKFS = "--no-mon-config --log-flush-on-exit=true"
_BLUESTORE = f"--bluestore-fsck-on-mkfs=false {FAST_POLL}"

# No discards: a disk that is a file on another file system would lose its blocks, and get them back
# during measurements.
_MAKE: Mapping[str, str] = {
    "xfs": "mkfs.xfs -q -f -K",
    "btrfs": "mkfs.btrfs -q -f -K",
    "ext4": "mkfs.ext4 -q -F -E nodiscard,lazy_itable_init=1",
}
# noinit_itable: ext4 would otherwise write empty inode tables for minutes during measurements.
_MOUNT: Mapping[str, str] = {
    "xfs": "noatime,nodiratime,logbufs=8",
    "btrfs": "noatime,nodiratime,nodiscard,user_subvol_rm_allowed",
    "ext4": "noatime,nodiratime,user_xattr,noinit_itable",
}


class _FileSystem(NamedTuple):
    kind: str
    disks: tuple[str, ...]
    folder: str

    @property
    def make(self) -> list[str]:
        striped = "-d raid0 -m raid0 " if len(self.disks) > 1 else ""
        mkfs = f"{_MAKE[self.kind]} {striped}{' '.join(self.disks)}"
        return [mkfs, f"mkdir -p {self.folder}", self.mount]

    @property
    def mount(self) -> str:
        # Without udev nobody tells the kernel which devices belong together.
        devices = "".join(f",device={one}" for one in self.disks if len(self.disks) > 1)
        options = f"{_MOUNT[self.kind]}{devices}"
        return f"mount -t {self.kind} -o {options} {self.disks[0]} {self.folder}"


def _journals(osds: Sequence[Osd]) -> list[_FileSystem]:
    disks = dict.fromkeys(osd.journal_disk for osd in osds if osd.journal_disk)
    return [_FileSystem("xfs", (disk,), JOURNALS) for disk in disks]


def _file_systems(settings: OsdSettings, osds: Sequence[Osd]) -> list[_FileSystem]:
    """The file systems of one host's OSDs, without those of journals."""
    if settings.objectstore != "filestore":
        return []
    return [_FileSystem(settings.filestore.filesystem, osd.data, osd.folder) for osd in osds]


def store_script(settings: OsdSettings, osds: Sequence[Osd]) -> str:
    """A script for `sh -e` that creates the stores of one host's OSDs at once, without a mon."""
    lines = ["mkdir -p /run/ceph"]
    for one in _journals(osds):
        lines += one.make
    lines.append("pids=")
    for osd in osds:
        mkfs = f"ceph-osd --mkfs -i {osd.number} --osd-uuid {osd.uuid} {_MKFS}"
        steps = [f"mkdir -p {osd.folder}"]
        for one in _file_systems(settings, [osd]):
            # ceph-osd takes a non-empty folder for that of another cluster.
            steps = [*one.make, f"rm -rf {osd.folder}/lost+found"]
        if settings.objectstore == "bluestore":
            steps.append(f"ln -s {osd.data[0]} {osd.folder}/block")
            mkfs = f"{mkfs} {_BLUESTORE}"
        lines += [f"( {' && '.join((*steps, mkfs))} ) &", 'pids="$pids $!"']
    lines.append("for pid in $pids; do wait $pid; done")
    return "\n".join(lines)


def mount_script(settings: OsdSettings, osds: Sequence[Osd]) -> str:
    """A script for `sh -e` that mounts the stores of one host's OSDs after it lost power."""
    systems = [*_journals(osds), *_file_systems(settings, osds)]
    return "\n".join(["mkdir -p /run/ceph", *(one.mount for one in systems)])


def remount_script(settings: OsdSettings, osds: Sequence[Osd], disk: str) -> str:
    """A script for `sh -e` that mounts the file systems again that are on a disk which failed."""
    systems = [
        one for one in (*_journals(osds), *_file_systems(settings, osds)) if disk in one.disks
    ]
    return "\n".join(f"umount {one.folder}\n{one.mount}" for one in systems)


def _store_options(settings: OsdSettings) -> dict[str, str | int]:
    """Options of ceph.conf that this kind of store needs for all OSDs."""
    if settings.objectstore == "memstore":
        return {"memstore_device_bytes": settings.memstore.size}
    if settings.objectstore == "bluestore":
        return {}
    found: dict[str, str | int] = {"osd_journal_size": settings.filestore.journal_size // 2**20}
    if settings.filestore.filesystem == "ext4":
        # ext4's extended attributes are too small for the longest names; FileStore does not start
        # without these options.
        found |= {"osd_max_object_name_len": 256, "osd_max_object_namespace_len": 64}
    if settings.filestore.filesystem == "btrfs":
        found["enable_experimental_unrecoverable_data_corrupting_features"] = "btrfs"
    return found


def _journal(settings: OsdSettings, osd: Osd) -> dict[str, str]:
    """Options of ceph.conf for one OSD."""
    if settings.objectstore != "filestore":
        return {}
    return {
        "osd_journal": f"{JOURNALS}/{osd.number}" if osd.journal_disk else f"{osd.folder}/journal"
    }


def store_words(settings: OsdSettings) -> tuple[str, str]:
    """The kind of store in words, and where an acknowledged write is."""
    if settings.objectstore == "bluestore":
        return "BlueStore on raw disks", "in BlueStore's write-ahead log or on disk"
    if settings.objectstore == "memstore":
        return "MemStore: in the OSDs' memory, on no disk", "in memory"
    where = "on a disk of their own (XFS)" if settings.own_journal else "on the same disks"
    names = (
        ", object names of more than about 200 bytes refused"
        if settings.filestore.filesystem == "ext4"
        else ""
    )
    over = " over all disks of a host (RAID 0)" if settings.striped else ""
    return (
        f"FileStore on {settings.filestore.filesystem}{over}, journals {where}{names}",
        "in its journal (and in its file system later)",
    )
