#!/bin/bash
# Run a command in a fresh clone of this checkout in a bare root of another release of Debian or Ubuntu.
#
#   scripts/bare_root.sh trixie 'make compare ARGS="--layouts rgw-beast"'   exits with the command's exit code
#   KEEP=1 scripts/bare_root.sh noble 'true'                                continues in the root of the run before
#
# The clone has what is committed. The root has a base system, make and git, and the archive's packages, as somebody has
# who follows README; it shares this machine's kernel, network, cgroups, and built images of lab hosts. It is the root of
# a mount namespace of its own (pivot_root, not chroot, above which runc would end), and ends with all its processes.
# As root; base systems and the last run's root stay in build/roots (ROOTS).
set -eu
suite=$1 line=$2
top=$(cd "$(dirname "$0")/.." && pwd)
roots=${ROOTS:-$top/build/roots}
images=${WEIGHBRIDGE_HOME:-/var/lib/weighbridge}/images
mkdir -p "$roots" "$images"
cd "$roots"

# mmdebstrap verifies Ubuntu with keys that Debian packages from 13 on; nothing of it is installed here.
options=()
if grep -q ",$suite," /usr/share/distro-info/ubuntu.csv; then
  options=(--components=main,universe)
  keyring=/usr/share/keyrings/ubuntu-archive-keyring.gpg
  if ! [ -e "$keyring" ]; then
    keyring=$roots/keys$keyring
    [ -e "$keyring" ] || mmdebstrap --quiet --variant=extract --include=ubuntu-keyring trixie keys
  fi
  options+=(--keyring="$keyring")
fi
if ! [ -d "$suite" ]; then
  rm -rf "$suite.partial"
  mmdebstrap --quiet --variant=minbase --format=directory --dpkgopt=force-unsafe-io "${options[@]}" \
    --include=apt,ca-certificates,git,make "$suite" "$suite.partial"
  # The network and its certificates are this machine's.
  cp -L /etc/resolv.conf /etc/hosts "$suite.partial/etc/"
  cp -L /etc/ssl/certs/ca-certificates.crt "$suite.partial/etc/ssl/certs/"
  mv "$suite.partial" "$suite"
fi
root=$roots/$suite.run
if [ -z "${KEEP:-}" ]; then
  rm -rf "$root"
  cp -a "$suite" "$root"
  git clone --quiet --no-hardlinks "file://$top" "$root/root/weighbridge"
fi

cat >"$root/enter" <<'ENTER'
set -eu
root=$1 images=$2 line=$3
mount --bind "$root" "$root"
cd "$root"
mkdir -p before var/lib/weighbridge/images
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs -o mode=755 run run
mount --bind "$images" var/lib/weighbridge/images
pivot_root . before
cd /root/weighbridge
umount -l /before
# Process 1 of a namespace dies of no signal that it does not handle; all others die with it.
trap 'exit 143' TERM INT
bash -c "$line" &
wait $!
ENTER
exec env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TERM="${TERM:-dumb}" LC_ALL=C.UTF-8 \
  ${PIP_CERT:+PIP_CERT="$PIP_CERT"} ${PIP_INDEX_URL:+PIP_INDEX_URL="$PIP_INDEX_URL"} \
  unshare --mount --propagation private --pid --fork --kill-child --ipc --uts bash "$root/enter" "$root" "$images" "$line"
