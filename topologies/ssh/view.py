"""A deployment's view of a real host's files: all of them, but what it writes goes to its own
folder.

A view is a private mount namespace, held by one process. In it the folders that gateways write to
are overlays over the host's own, /run and /tmp are empty, and /var/log/host is the deployment's log
folder. The host's own mount table has nothing of it, and when the last process in it ends the
kernel removes it all, with file systems mounted from disks.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Final

from weighbridge.common.errors import UsageError

OVERLAID: Final = ("/etc", "/var/lib", "/var/cache", "/var/log", "/srv", "/usr/local")
"""Folders of gateways' configuration, state and of this suite's programs."""
EMPTY: Final = (("/run", "755"), ("/tmp", "1777"))  # noqa: S108 - places in the view, with their modes

# mount(8) only says "wrong fs type" of an upper folder that overlayfs cannot use.
_MOUNT = """
folder=$1
kind=$(stat -f -c %T "$folder")
for place in {places}; do
  [ -d "$place" ] || {{ echo "this host has no $place, where gateways put files" >&2; exit 1; }}
  own=$folder/view/$(echo "${{place#/}}" | tr / -)
  mkdir -p "$own/upper" "$own/work"
  chmod "$(stat -c %a "$place")" "$own/upper"
  layers=lowerdir=$place,upperdir=$own/upper,workdir=$own/work
  mount -t overlay weighbridge -o "$layers" "$place" || {{
    echo "overlays cannot keep changes of $place in $folder, a file system of type $kind." >&2
    echo "Put the folder of deployments (ssh: folder) on ext4 or xfs." >&2
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
    """Shell lines that make a view of the namespace they run in: `$1` is the deployment's folder,
    stdin is added to /etc/hosts.
    """
    empty = "\n".join(f"mount -t tmpfs -o mode={mode} weighbridge {place}" for place, mode in EMPTY)
    return _MOUNT.format(places=shlex.join(OVERLAID), empty=empty)


def names(addresses: Mapping[str, str]) -> str:
    """Lines of /etc/hosts with the names of all hosts of a deployment."""
    return "".join(f"{address} {name}\n" for name, address in addresses.items())


def check_folder(folder: str) -> None:
    """Raise UsageError for a folder of deployments in, at or above one that a view replaces."""
    path = PurePosixPath(folder)
    if ".." in path.parts or path == PurePosixPath("/"):
        raise UsageError(f"ssh: folder: {folder} cannot hold deployments")
    for place in (*OVERLAID, *(place for place, _ in EMPTY), "/proc", "/sys", "/dev"):
        if path.is_relative_to(place) or PurePosixPath(place).is_relative_to(path):
            raise UsageError(
                f"ssh: folder: {folder} is at, above or below {place}, where deployments have "
                "their own layer",
                advice="choose another, such as /opt/weighbridge",
            )


UNMOUNT: Final = """
for round in 1 2; do
  while read -r _ _ device _ point _; do
    for own in "$@"; do
      if [ "$device" = "$own" ]; then umount "$point" || true; fi
    done
  done </proc/self/mountinfo
done
"""
"""Unmounts the devices `$@` (`major:minor`) in its namespace, also mounts below others."""
