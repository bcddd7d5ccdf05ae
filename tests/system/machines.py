"""Machines for tests of real hosts: containers with sshd under systemd, and one to
conduct from.

They are started as lab hosts are, except for their first process, which is systemd, and
their root, which has the packages of all gateways, as an administrator would have installed them.
Nothing here is used by the suite itself.
"""

from __future__ import annotations

import secrets
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from weighbridge.common.errors import CommandFailed
from weighbridge.common.host import Host
from weighbridge.environment import place
from weighbridge.gateways.gateway import STORES, RootImage
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.images import ensure
from weighbridge.topologies.lab import LabHosts, start_lab
from weighbridge.topologies.lab import host as lab_host
from weighbridge.topologies.lab.bundle import Bundle
from weighbridge.topologies.ssh.suite import ARCHIVES, Python, packed

CONDUCTOR: Final = "conductor"
"""The machine that the command is run on: this machine's own files, in the others' network."""
ADMIN: Final = "admin"
"""A user of every machine who is not root and has sudo without a password."""
UP_S: Final = 60.0

_PACKAGES = {
    *STORES["rgw"].releases["ceph-16"].packages,
    *STORES["swift"].releases["swift-2.30"].packages,
    *(
        "openssh-server",
        "sudo",
        "systemd-sysv",
        "dbus",
        "python3-venv",
        "util-linux",
        "fio",
        "iperf3",
        "sysbench",
    ),
}
IMAGE: Final = RootImage(
    name="machine",
    suite="bookworm",
    packages=tuple(sorted(_PACKAGES)),
    # What a package would start by itself is left to who wants it: an administrator of such
    # machines has done as much.
    options=(
        '--customize-hook=mkdir -p "$1/etc/systemd/system-preset"',
        (
            '--customize-hook=printf "enable ssh.service\\ndisable *\\n" '
            '>"$1/etc/systemd/system-preset/00-nothing.preset"'
        ),
        '--customize-hook=systemctl --root="$1" preset-all >/dev/null 2>&1',
    ),
)

# It closes the descriptors that it is started with, and disks free themselves with the last of
# those: another keeps them.
_SYSTEMD = ("/bin/sh", "-c", "sleep infinity & exec /lib/systemd/systemd --system")


@dataclass(frozen=True)
class Machine(Bundle):
    def config(self) -> dict[str, Any]:
        """As of a lab host, but for what systemd wants, and /opt, which is a folder of this
        machine's own file system.

        It is like a machine whose administrator may set its network up.
        """
        config = super().config()
        process, linux = config["process"], config["linux"]
        process["capabilities"] = {
            kind: [*given, "CAP_NET_ADMIN"] for kind, given in process["capabilities"].items()
        }
        linux.pop("seccomp", None)
        process["args"] = list(_SYSTEMD)
        process["env"] = [*process["env"], "container=oci"]
        linux["namespaces"].append({"type": "cgroup"})
        linux["maskedPaths"] = linux["readonlyPaths"] = []
        for mount in config["mounts"]:
            if mount["destination"] == "/sys/fs/cgroup":
                mount["options"] = ["nosuid", "noexec", "nodev", "relatime"]
        opt = self.folder / "opt"
        opt.mkdir(exist_ok=True)
        config["mounts"].append(
            {"destination": "/opt", "type": "bind", "source": str(opt), "options": ["rbind", "rw"]}
        )
        return config


@dataclass(frozen=True)
class Machines:
    """What runs: `hosts` to look at machines past sshd, the key that opens them, and the folder
    that the conductor sees too.
    """

    lab: LabHosts
    shared: Path
    """On this machine, what the conductor has at `/var/log/host`."""

    @property
    def hosts(self) -> Mapping[str, Host]:
        return self.lab.hosts

    @property
    def conductor(self) -> Host:
        return self.lab.hosts[CONDUCTOR]

    def write_hardware(
        self, clients: Sequence[str], *more: str, admin: Collection[str] = ()
    ) -> None:
        """Write `real.yaml` of all machines but the conductor, each with its first disk; more lines
        may be before their list. `admin`: those that are logged in to by who is not root.
        """
        lines = ["name: real", "kind: ssh", *more, f"clients: [{', '.join(clients)}]", "hosts:"]
        for name, host in self.hosts.items():
            if name != CONDUCTOR:
                disk = f", disks: [{{id: /dev/disk/by-id/test-{name}-0}}]" if host.disks else ""
                way = f", ssh: {{user: {ADMIN}}}" if name in admin else ""
                lines.append(f"  {name}: {{address: {host.address}{disk}{way}}}")
        (self.shared / "real.yaml").write_text("\n".join(lines) + "\n")

    def weighbridge(self, *words: str, timeout_s: float = 300) -> subprocess.CompletedProcess[str]:
        command = self.conductor.module("weighbridge", *words)
        environment = {
            **command.env,
            "HOME": "/var/log/host/home",
            "COLUMNS": "160",
            "WEIGHBRIDGE_HOME": "/var/log/host/wb",
        }
        environment["WEIGHBRIDGE_STATE"] = "/run/wb"
        try:
            done = self.conductor.run(command.argv, env=environment, timeout_s=timeout_s)
        except CommandFailed as error:
            return subprocess.CompletedProcess(
                words, -1 if error.code is None else error.code, error.output, ""
            )
        return subprocess.CompletedProcess(words, 0, done.stdout, done.stderr)


@contextmanager
def machines(
    folder: Path, disks: Mapping[str, Sequence[str]], *, memory: str = "3GiB"
) -> Iterator[Machines]:
    """Machines by name with the sizes of their disks, until the block ends.

    The conductor's home has a key that opens all of them and knows their keys: `ssh` and the suite
    work from it as they are.
    """
    names = [CONDUCTOR, *disks]
    hardware = Hardware.model_validate(
        {
            "name": "machines",
            "kind": "lab",
            "clients": [CONDUCTOR],
            "hosts": {
                CONDUCTOR: {},
                **{
                    name: {"memory": memory, "disks": [{"size": size} for size in sizes]}
                    for name, sizes in disks.items()
                },
            },
        }
    )
    image = ensure(IMAGE, print, store=place().images)
    label = f"machines-{secrets.token_hex(3)}"
    folder.mkdir(parents=True, exist_ok=True)

    def bundle(**parts: Any) -> Bundle:
        return Bundle(**parts) if parts["image"] is None else Machine(**parts)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lab_host, "Bundle", bundle)
        hosts = start_lab(
            label,
            hardware,
            dict.fromkeys(disks, image),
            print,
            folder=folder,
            names=names,
            state=folder / "state",
        )
    with hosts:
        shared = folder / "logs" / CONDUCTOR
        _pack(hosts.hosts[names[-1]], shared / "wb")
        _open(hosts, disks, shared)
        yield Machines(hosts, shared)


def _pack(host: Host, home: Path) -> None:
    """Pack the suite for the machines' Python, if it is not this one's: packages for another are
    downloaded, and the conductor's network has no package index.
    """
    ask = (
        "import platform, sysconfig as s; "
        "print(s.get_python_version(), s.get_config_var('SOABI'), platform.machine())"
    )
    version, soabi, machine = host.run(["python3", "-c", ask]).stdout.split()
    python = Python(version=version, soabi=soabi, machine=machine)
    if python != Python.here():
        packed(python, home / ARCHIVES)


def _open(hosts: LabHosts, disks: Mapping[str, Sequence[str]], shared: Path) -> None:
    """Give the conductor a key, put it on all machines, give their disks names by id, and wait for
    their sshd.
    """
    ssh = shared / "home" / ".ssh"
    ssh.mkdir(parents=True, mode=0o700)
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(ssh / "id_ed25519")], check=True
    )
    public = (ssh / "id_ed25519.pub").read_text()
    known = []
    for name in disks:
        host = hosts.hosts[name]
        host.put("/root/.ssh/authorized_keys", public, mode=0o600)
        host.run(["useradd", "--create-home", "--shell", "/bin/sh", ADMIN])
        host.put(f"/home/{ADMIN}/.ssh/authorized_keys", public, mode=0o600, owner=ADMIN)
        host.put(f"/etc/sudoers.d/{ADMIN}", f"{ADMIN} ALL=(ALL) NOPASSWD: ALL\n", mode=0o440)
        # Their sshd may have started already, with the keys that the image came with: those stay.
        script = "chmod 700 /root/.ssh; mkdir -p /dev/disk/by-id"
        script += "".join(
            f"; ln -sf {path} /dev/disk/by-id/test-{name}-{index}"
            for index, path in enumerate(host.disks)
        )
        host.run(["sh", "-ec", script])
        key = host.run(["cat", "/etc/ssh/ssh_host_ed25519_key.pub"]).stdout.split()
        known.append(f"{host.address} {key[0]} {key[1]}\n")
    (ssh / "known_hosts").write_text("".join(known))
    deadline = time.monotonic() + UP_S
    probe = "import socket,sys; socket.create_connection((sys.argv[1], 22), 1).recv(3)"
    for name in disks:
        while True:
            try:
                hosts.hosts[CONDUCTOR].run([sys.executable, "-c", probe, hosts.hosts[name].address])
                break
            except CommandFailed:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
