"""Installing packages on real hosts, so that nothing starts and nothing installed changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from weighbridge.common.errors import CommandFailed, TargetError
from weighbridge.gateways.gateway import Say
from weighbridge.topologies.ssh.connection import SshConnection

_TIMEOUT_S: Final = 1800.0

# invoke-rc.d and deb-systemd-invoke ask policy-rc.d whether to start a service: 101 says no. What a
# package enables at boot is the difference between two lists.
_APT: Final = """
export DEBIAN_FRONTEND=noninteractive LC_ALL=C
policy=/usr/sbin/policy-rc.d
mine=
before=$(mktemp) after=$(mktemp)
done_with() {
  rm -f "$before" "$after"
  if [ -n "$mine" ]; then rm -f "$policy"; fi
}
trap done_with EXIT
enabled() {
  if command -v systemctl >/dev/null; then
    systemctl list-unit-files --state=enabled --no-legend --plain 2>/dev/null | cut -d ' ' -f 1
  fi
  for one in /etc/rc2.d/S*; do if [ -e "$one" ]; then echo "$one"; fi; done
}
get() {
  apt-get -o DPkg::Lock::Timeout=120 -o Dpkg::Options::=--force-confold \\
    --no-install-recommends "$@"
}
plan=$(get --simulate install "$@" 2>&1) || {
  get update >&2
  plan=$(get --simulate install "$@" 2>&1) || { echo "$plan" >&2; exit 1; }
}
if echo "$plan" | grep -Eq '^(Inst [^ ]+ \\[|Remv )'; then
  echo "this would change installed packages, which only the host's administrator may do:" >&2
  echo "$plan" | grep -E '^(Inst [^ ]+ \\[|Remv )' >&2
  exit 1
fi
if [ ! -e "$policy" ]; then
  mine=1
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
fi
enabled | sort >"$before"
get --yes install "$@" >&2
enabled | sort >"$after"
comm -13 "$before" "$after" | while read -r one; do
  case $one in
    /etc/rc2.d/*) update-rc.d "$(echo "${one##*/}" | sed 's/^S[0-9]*//')" disable >&2 ;;
    *) systemctl disable "$one" >&2 ;;
  esac || { echo "$one is now started at boot and could not be disabled" >&2; exit 1; }
  echo "disabled ${one##*/}, which would have been started at boot"
done
echo "installed $# packages"
"""

# dnf starts nothing, but a preset may enable a unit. Asked to assume no, it ends with 1 after the
# plan: its sections say whether anything that is installed would change.
_DNF: Final = """
export LC_ALL=C
before=$(mktemp) after=$(mktemp)
trap 'rm -f "$before" "$after"' EXIT
enabled() {
  systemctl list-unit-files --state=enabled --no-legend --plain 2>/dev/null | cut -d ' ' -f 1
}
get() {
  dnf --setopt=install_weak_deps=False "$@"
}
plan=$(get --assumeno install "$@" 2>&1) || true
changes='^(Upgrading|Downgrading|Removing|Reinstalling|Obsoleting)'
if echo "$plan" | grep -Eq "$changes"; then
  echo "this would change installed packages, which only the host's administrator may do:" >&2
  echo "$plan" | grep -E -A 40 "$changes" >&2
  exit 1
fi
if echo "$plan" | grep -Eq '^(Error|No match for argument)'; then
  echo "$plan" >&2
  exit 1
fi
enabled | sort >"$before"
get --assumeyes install "$@" >&2
enabled | sort >"$after"
comm -13 "$before" "$after" | while read -r one; do
  systemctl disable "$one" >&2 || {
    echo "$one is now started at boot and could not be disabled" >&2; exit 1
  }
  echo "disabled $one, which would have been started at boot"
done
echo "installed $# packages"
"""

_SCRIPTS: Final[Mapping[str, str]] = MappingProxyType({"apt": _APT, "dnf": _DNF})
MANAGERS: Final = frozenset(_SCRIPTS)
"""The package managers that are known."""


def install(shell: SshConnection, manager: str, packages: Sequence[str], say: Say) -> None:
    """Install packages by one of `MANAGERS`.

    Raises TargetError where that failed, or would upgrade or remove something.
    """
    shell.open()
    say(f"{shell.name}: installing {' '.join(packages)}")
    try:
        done = shell.sh(_SCRIPTS[manager], *packages, timeout_s=_TIMEOUT_S)
    except CommandFailed as error:
        tail = "\n".join(error.output.splitlines()[-12:])
        raise TargetError(
            f"{shell.name} ({shell.address}): the packages were not installed:\n{tail}"
        ) from error
    for line in done.stdout.splitlines():
        say(f"{shell.name}: {line}")
