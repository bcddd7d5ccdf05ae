#!/bin/bash
# Run a command of this checkout under a kernel of its own that has cgroup version 2 alone: User-Mode Linux, one CPU.
#
#   scripts/cgroup2.sh 'COMMAND'            exits with COMMAND's exit code, or 124 after LIMIT_S (600) seconds
#   SYSTEMD=1 scripts/cgroup2.sh 'COMMAND'  the same, with systemd as process 1
#
# COMMAND sees this machine's root below an overlay, and writes none of it; what it writes to /run/out is in build/uml/out.
# It has root, but no network. MEM (11000M) is the memory it may use. The kernel is Debian's newest: 38 MB, the first time.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
uml=${UML:-$top/build/uml}
mkdir -p "$uml/out"
cd "$uml"

# The kernel, with the C library it wants: all unpacked here, nothing installed.
if ! [ -x linux ]; then
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Origin: Debian' | head -n 1)
  mkdir -p apt/lists/partial apt/cache/archives/partial debs
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror sid main" >apt/list
  own=(-qq -o APT::Sandbox::User=root -o Dir::Etc::SourceList="$PWD/apt/list" -o Dir::Etc::SourceParts=/dev/null
    -o Dir::State::Lists="$PWD/apt/lists" -o Dir::Cache="$PWD/apt/cache" -o Acquire::Check-Valid-Until=false
    -o Acquire::Languages=none)
  apt-get "${own[@]}" update
  (
    cd debs
    apt-get "${own[@]}" download user-mode-linux libc6 busybox-static
    apt-get -qq -o APT::Sandbox::User=root download patchelf
  )
  for deb in debs/*.deb; do dpkg-deb -x "$deb" root; done
  lib=$PWD/root/usr/lib/x86_64-linux-gnu
  root/usr/bin/patchelf --set-interpreter "$lib/ld-linux-x86-64.so.2" --set-rpath "$lib" --output linux.new root/usr/bin/linux.uml
  mv linux.new linux
fi
[ -e disk ] || { truncate -s 40G disk.new; mkfs.ext4 -q -F -E lazy_itable_init=1 disk.new; mv disk.new disk; }

# Process 1, in this machine's root read only: modules, the overlay, and what a root needs to be mounted.
cat >init <<INIT
#!$PWD/root/usr/bin/busybox sh
b() { "$PWD/root/usr/bin/busybox" "\$@"; }
b mount -t proc proc /proc
b mount -t tmpfs tmpfs /mnt
modules=$PWD/root/usr/lib/uml/modules/\$(b uname -r)/kernel
for one in overlay loop veth llc stp bridge sch_tbf tun; do b insmod \$(b find \$modules -name \$one.ko); done
b mkdir /mnt/disk /mnt/root
b mount -t ext4 /dev/ubda /mnt/disk
b mkdir -p /mnt/disk/upper /mnt/disk/work
b mount -t overlay -o lowerdir=/,upperdir=/mnt/disk/upper,workdir=/mnt/disk/work overlay /mnt/root
cd /mnt/root
b mkdir -p disk
b mount --bind /mnt/disk disk
b mount -t proc proc proc
b mount -t sysfs sys sys
b mount -t cgroup2 cgroup2 sys/fs/cgroup
b mount -t devtmpfs dev dev
b mkdir -p dev/pts dev/shm
b mount -t devpts -o ptmxmode=666 devpts dev/pts
b mount -t tmpfs shm dev/shm
b mount -t tmpfs run run
b mkdir -p run/out
b mount -t hostfs -o $PWD/out none run/out
b pivot_root . mnt # chroot is not enough: runc's own pivot_root would land above it
exec $PWD/root/usr/bin/busybox chroot . /bin/bash $PWD/first </dev/console >/dev/console 2>&1
INIT
chmod +x init

# What follows in the overlay: the job itself, or systemd with the job as its only unit.
cat >first <<FIRST
umount -l /mnt
ip link set lo up
hostname uml
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 WEIGHBRIDGE_HOME=/disk/home
mkdir -p /disk/home
ln -sfn /var/lib/weighbridge/images /disk/home/images
case \$(cat /proc/cmdline) in *under=systemd*) ;; *) exec bash $PWD/job ;; esac
at=/etc/systemd/system
mkdir -p \$at
# Its rules for temporary files empty their folders at boot: an overlay loses a checkout that is in one.
for one in systemd-tmpfiles-{setup,clean,setup-dev} systemd-timesyncd systemd-update-utmp; do
  ln -sfn /dev/null \$at/\$one.service
done
ln -sfn /dev/null \$at/tmp.mount
printf '%s\n' '[Unit]' AllowIsolate=yes Requires=job.service >\$at/job.target
printf '%s\n' '[Unit]' After=basic.target Wants=dbus.socket '[Service]' Type=oneshot TimeoutStartSec=infinity \
  StandardOutput=tty StandardError=tty TTYPath=/dev/console Environment=HOME=/root \
  Environment=WEIGHBRIDGE_HOME=/disk/home "ExecStart=/bin/bash $PWD/job" >\$at/job.service
exec /lib/systemd/systemd --unit=job.target --show-status=no --log-level=err
FIRST
printf 'cd %q\n( %s )\necho $? >/run/out/code\nsync\necho o >/proc/sysrq-trigger\nsleep 9\n' "$top" "$*" >job

rm -f out/code
timeout -k 5 "${LIMIT_S:-600}" ./linux uml_dir="$PWD/run" mem="${MEM:-11000M}" ubda="$PWD/disk" rootfstype=hostfs rootflags=/ ro init="$PWD/init" \
  con0=null,fd:1 con=null seccomp=on loglevel=3 quiet "${SYSTEMD:+under=systemd}" </dev/null || true
exit "$(cat out/code 2>/dev/null || echo 124)"
