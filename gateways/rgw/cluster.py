"""A Ceph deployment: release, placement and settings, and its configuration files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from weighbridge.common.host import Host
from weighbridge.common.record import Record
from weighbridge.gateways.certificates import SERVER_FILE, Certificates, issued
from weighbridge.gateways.front import Backend, Behind, Front, front_of, tls_host
from weighbridge.gateways.gateway import Site
from weighbridge.gateways.rgw import config
from weighbridge.gateways.rgw.ceph_roster import CephRoster
from weighbridge.gateways.rgw.config import CONF, KEYRING, Files, HostFile, ceph_conf, keyring
from weighbridge.gateways.rgw.releases import RELEASES
from weighbridge.gateways.rgw.settings import RgwPlacement, RgwSettings

_HEALTH_PATH = "/swift/healthcheck"

# A radosgw with the FastCGI front end calls libfcgi: its symbols are in the program or Ceph's
# library.
_FASTCGI = (
    "grep -qa FCGX_ $(command -v radosgw) /usr/lib/*/libradosgw.so* 2>/dev/null && echo "
    "yes || echo no"
)


class CephCluster(Record):
    """A Ceph cluster with its gateways, as a layout plans it."""

    release: str
    place: RgwPlacement
    settings: RgwSettings

    def front(self, *, native: bool = False) -> Front | None:
        """The layout's front; `native`: the radosgw behind it speak FastCGI themselves."""
        return front_of(self.place, self.settings, Behind(health_path=_HEALTH_PATH, fastcgi=native))

    def speaks_fastcgi(self, hosts: Mapping[str, Host]) -> bool:
        """Whether a front should speak FastCGI to radosgw that can. Raises CommandFailed."""
        front = self.front()
        if front is None or not front.wants_fastcgi:
            return False
        return hosts[self.place.radosgw[0]].run(["sh", "-c", _FASTCGI]).stdout.strip() == "yes"

    def knows(self, host: Host) -> Callable[[str], bool]:
        """Whether its daemons know an option of this suite; the release on the host is asked if it
        has the settings of another. Raises CommandFailed.
        """
        release = RELEASES[self.release]
        if not release.settings_of:
            return lambda name: name not in release.lacks
        known = config.known_options(host) - release.lacks
        return lambda name: name in known

    @property
    def tls_host(self) -> str | None:
        """The host whose server speaks TLS to clients; None: they use plain HTTP."""
        unfronted = self.place.radosgw[0] if self.settings.radosgw.tls else None
        return tls_host(self.place, self.settings, unfronted)

    def certificates(self, sites: Mapping[str, Site]) -> Certificates | None:
        """New certificates, where clients speak TLS."""
        return None if self.tls_host is None else issued(sites[self.tls_host])

    def files(
        self,
        roster: CephRoster,
        *,
        fsid: str,
        native: bool,
        certificates: Certificates | None,
        keyrings: Sequence[HostFile] | None = None,
    ) -> Files:
        """All configuration files, with new keys where no keyrings are given."""
        conf = ceph_conf(
            self.settings, roster, fsid=fsid, lacks=RELEASES[self.release].lacks, native=native
        )
        if keyrings is None:
            keys = keyring(
                RELEASES[self.release].key_type,
                len(roster.osds),
                [one.name for one in roster.radosgws],
                mgrs=[one.id for one in roster.mons],
            )
            secret = tuple(
                line.removeprefix("key = ")
                for line in keys.splitlines()
                if line.startswith("key = ")
            )
            keyrings = [HostFile(name, KEYRING, keys, secrets=secret) for name in roster.sites]
        files = [
            file
            for name, ring in zip(roster.sites, keyrings, strict=True)
            for file in (HostFile(name, CONF, conf), ring)
        ]
        front = self.front(native=native)
        if front is not None and roster.front is not None:
            backends = [
                Backend(f"{one.host}-{one.port}", one.address, one.port) for one in roster.radosgws
            ]
            texts = front.files(roster.front.address, backends)
            files += [HostFile(roster.front.name, path, text) for path, text in texts.items()]
        if self.tls_host is not None and certificates is not None:
            own = (certificates.secret,)
            files.append(HostFile(self.tls_host, SERVER_FILE, certificates.server, secrets=own))
        return Files(files)
