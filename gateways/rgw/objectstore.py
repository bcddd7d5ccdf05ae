"""Creating the stores of a host's OSDs: raw disks, file systems and journals, or memory only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weighbridge.gateways.rgw.ceph_roster import Osd
from weighbridge.gateways.rgw.settings import OsdSettings

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


def script(settings: OsdSettings, osds: Sequence[Osd]) -> str:
    """A script for `sh -e` that creates the stores of one host's OSDs at once, without a mon."""
    lines = ["mkdir -p /run/ceph"]
    for disk in dict.fromkeys(osd.journal_disk for osd in osds if osd.journal_disk):
        lines += _file_system("xfs", disk, JOURNALS)
    lines.append("pids=")
    for osd in osds:
        lines += [f"( {' && '.join(_make(settings, osd))} ) &", 'pids="$pids $!"']
    lines.append("for pid in $pids; do wait $pid; done")
    return "\n".join(lines)


def mounts(settings: OsdSettings, osds: Sequence[Osd]) -> str:
    """A script for `sh -e` that mounts the stores of one host's OSDs after it lost power."""
    lines = ["mkdir -p /run/ceph"]
    journals = dict.fromkeys(osd.journal_disk for osd in osds if osd.journal_disk)
    lines += [_mounted("xfs", disk, JOURNALS) for disk in journals]
    if settings.objectstore == "filestore":
        kind = settings.filestore.filesystem
        lines += [_mounted(kind, str(osd.device), _folder(osd), osd.more) for osd in osds]
    return "\n".join(lines)


def remounts(settings: OsdSettings, osds: Sequence[Osd], disk: str) -> str:
    """A script for `sh -e` that mounts the file systems again that are on a disk which failed."""
    on_it = {JOURNALS: _mounted("xfs", disk, JOURNALS)}
    if not any(osd.journal_disk == disk for osd in osds):
        on_it = {}
    if settings.objectstore == "filestore":
        kind = settings.filestore.filesystem
        for osd in osds:
            if disk in {osd.device, *osd.more}:
                on_it[_folder(osd)] = _mounted(kind, str(osd.device), _folder(osd), osd.more)
    return "\n".join(f"umount {folder}\n{mount}" for folder, mount in on_it.items())


def _folder(osd: Osd) -> str:
    return f"/var/lib/ceph/osd/{osd.number}"


def _make(settings: OsdSettings, osd: Osd) -> list[str]:
    folder = _folder(osd)
    mkfs = f"ceph-osd --mkfs -i {osd.number} --osd-uuid {osd.uuid} {_MKFS}"
    if settings.objectstore == "bluestore":
        return [f"mkdir -p {folder}", f"ln -s {osd.device} {folder}/block", f"{mkfs} {_BLUESTORE}"]
    if settings.objectstore == "memstore":
        return [f"mkdir -p {folder}", mkfs]
    kind = settings.filestore.filesystem
    # ceph-osd takes a non-empty folder for that of another cluster.
    return [
        *_file_system(kind, str(osd.device), folder, osd.more),
        f"rm -rf {folder}/lost+found",
        mkfs,
    ]


def _file_system(kind: str, disk: str, folder: str, more: Sequence[str] = ()) -> list[str]:
    striped = f" -d raid0 -m raid0 {disk} {' '.join(more)}" if more else f" {disk}"
    return [f"{_MAKE[kind]}{striped}", f"mkdir -p {folder}", _mounted(kind, disk, folder, more)]


def _mounted(kind: str, disk: str, folder: str, more: Sequence[str] = ()) -> str:
    # Without udev nobody tells the kernel which devices belong together.
    devices = "".join(f",device={one}" for one in (disk, *more) if more)
    return f"mount -t {kind} -o {_MOUNT[kind]}{devices} {disk} {folder}"


def options(settings: OsdSettings) -> dict[str, str | int]:
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


def own_options(settings: OsdSettings, osd: Osd) -> dict[str, str]:
    """Options of ceph.conf for one OSD."""
    if settings.objectstore != "filestore":
        return {}
    return {
        "osd_journal": f"{JOURNALS}/{osd.number}"
        if osd.journal_disk
        else f"/var/lib/ceph/osd/{osd.number}/journal"
    }


def words(settings: OsdSettings) -> tuple[str, str]:
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
