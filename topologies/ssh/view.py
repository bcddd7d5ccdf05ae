"""What a deployment sees of a real host's files: all of them, and what it writes there goes to its
own folder.

A view is a private mount namespace, held by one process. In it, the places that gateways write to
are overlays above the host's own, /run and /tmp are empty, and /var/log/host is the deployment's
folder of logs. Nothing of it is in the host's own table of mounts, and when the last process in it
ends the kernel takes all of it away, with the file systems mounted on the disks too.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Final

from weighbridge.common.errors import UsageError

OVERLAID: Final = ("/etc", "/var/lib", "/var/cache", "/var/log", "/srv", "/usr/local")
"""Where gateways have their configuration, their state and their programs of ours."""
EMPTY: Final = (("/run", "755"), ("/tmp", "1777"))  # noqa: S108 - places in the view, with their modes

# mount(8) says of an upper folder that overlayfs cannot use no more than "wrong fs type".
_MOUNT = """
folder=$1
kind=$(stat -f -c %T "$folder")
for place in {places}; do
  [ -d "$place" ] || {{ echo "this host has no $place, where gateways put files" >&2; exit 1; }}
  mine=$folder/view/$(echo "${{place#/}}" | tr / -)
  mkdir -p "$mine/upper" "$mine/work"
  chmod "$(stat -c %a "$place")" "$mine/upper"
  mount -t overlay weighbridge -o "lowerdir=$place,upperdir=$mine/upper,workdir=$mine/work" "$place" || {{
    echo "no overlay can be put over $place with $folder as its upper: it is on $kind. ext4 and xfs can carry one;" >&2
    echo "put the folder of deployments (ssh: folder) on such a file system" >&2
    exit 1
  }}
done
{empty}
mkdir -p /run/lock /run/weighbridge /var/log/host
chmod 1777 /run/lock
chmod 700 /run/weighbridge
mount --bind "$folder/log" /var/log/host
cat >>/etc/hosts
"""


def script() -> str:
    """Shell lines that make a view of the namespace they run in:

    `$1` is the deployment's folder, stdin more of /etc/hosts.
    """
    empty = "\n".join(f"mount -t tmpfs -o mode={mode} weighbridge {place}" for place, mode in EMPTY)
    return _MOUNT.format(places=shlex.join(OVERLAID), empty=empty)


def names(addresses: Mapping[str, str]) -> str:
    """What all hosts of a deployment add to /etc/hosts: each other's names."""
    return "".join(f"{address} {name}\n" for name, address in addresses.items())


def check_folder(folder: str) -> None:
    """Raise UsageError for a folder of deployments that a view would hide or could not lie
    above.
    """
    path = PurePosixPath(folder)
    if ".." in path.parts or path == PurePosixPath("/"):
        raise UsageError(f"ssh: folder: {folder} cannot be the folder of deployments")
    for place in (*OVERLAID, *(place for place, _ in EMPTY), "/proc", "/sys", "/dev"):
        if path.is_relative_to(place) or PurePosixPath(place).is_relative_to(path):
            raise UsageError(
                f"ssh: folder: {folder} is at or above or below {place}, over which deployments "
                "put a layer of their own",
                advice="choose one that is beside it, such as /opt/weighbridge",
            )


UNMOUNT: Final = """
for round in 1 2; do
  while read -r _ _ device _ point _; do
    for mine in "$@"; do
      if [ "$device" = "$mine" ]; then umount "$point" || true; fi
    done
  done </proc/self/mountinfo
done
"""
"""Unmounts in the namespace it runs in what is on the devices `$@` (`major:minor`), also where one
hides another.
"""
