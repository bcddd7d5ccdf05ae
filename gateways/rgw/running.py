"""What the daemons of a standing gateway run with, as far as it is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from weighbridge.common.host import Host
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.probe import Probe
from weighbridge.gateways.rgw.ceph_daemons import CephDaemons
from weighbridge.gateways.rgw.cluster import CephCluster
from weighbridge.gateways.rgw.config import CONF, KEYRING
from weighbridge.gateways.rgw.facts import Media, facts
from weighbridge.gateways.rgw.files import Files, HostFile
from weighbridge.gateways.rgw.monitor import Ceph
from weighbridge.gateways.verify import OperationCheck


@dataclass
class RunningCluster:
    """A gateway's daemons, and the files that they were started with or brought to since.

    It changes with them.
    """

    cluster: CephCluster
    """The last one whose settings all daemons were seen to run with."""
    hosts: Mapping[str, Host]
    client: Host
    fsid: str
    native: bool
    """Whether radosgw speaks FastCGI itself."""
    files: Files
    """All files, as they were when all was well."""
    store: tuple[Daemon, ...]
    """The mon, the mgr and the OSDs, which are left alone."""
    osds: tuple[Ceph, ...]
    media: tuple[Media, ...]
    primaries: Mapping[int, int]
    """How many placement groups of the data pool each OSD answers reads of, by its number."""
    radosgws: Mapping[Ceph, Daemon]
    front: tuple[Daemon, ...]
    confs: dict[Ceph, str | None]
    """The ceph.conf that each radosgw runs with; None when that is in doubt."""
    front_files: Mapping[str, str] | None
    """Those of the front by path, none where there is no front; None when what it runs with is in
    doubt.
    """
    defaults: dict[tuple[str, str], str] = field(default_factory=dict)
    """By radosgw's name and option: what it runs with where no file says anything, which is not
    always what Ceph documents.
    """

    @property
    def daemons(self) -> tuple[Daemon, ...]:
        """All of them."""
        return (*self.store, *self.radosgws.values(), *self.front)

    @property
    def keyrings(self) -> tuple[HostFile, ...]:
        """They stay as they are: other keys would be another cluster's."""
        return tuple(file for file in self.files.files if file.path == KEYRING)

    @property
    def roster(self) -> CephDaemons:
        """Who is where."""
        return CephDaemons(self.cluster.place, self.cluster.settings, self.hosts)

    def facts(self, checks: Sequence[OperationCheck]) -> dict[str, str]:
        """What decides results, in words, as the daemons say it now; `checks` were passed when they
        last came up.
        """
        cluster = self.cluster
        found = facts(
            cluster,
            self.osds,
            tuple(self.radosgws),
            self.hosts[cluster.place.mon],
            native=self.native,
            media=self.media,
            primaries=self.primaries,
        )
        front = cluster.front(native=self.native)
        if front is not None and cluster.place.front is not None:
            found |= front.facts(self.hosts[cluster.place.front])
        return found | {
            "verified": f"{len(checks)} operations over S3 and Swift, reads byte for byte"
        }

    def probes(self) -> tuple[Probe, ...]:
        """The counters of each radosgw, of each OSD and of the front; their programs are put on the
        hosts.
        """
        cluster = self.cluster
        found = tuple(one.probe() for one in (*self.radosgws, *self.osds))
        front = cluster.front(native=self.native)
        if front is None or cluster.place.front is None:
            return found
        return (*found, *front.probes(self.hosts[cluster.place.front]))


def conf_of(files: Files) -> str:
    """The ceph.conf among the files, the same on every host."""
    return next(file.text for file in files.files if file.path == CONF)


def front_files_of(files: Files) -> dict[str, str]:
    """Files of the front by path."""
    return {file.path: file.text for file in files.files if file.path not in {CONF, KEYRING}}
