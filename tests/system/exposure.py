"""Where real deployments listen while a run weighs them, and where their credentials stand."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from command_lines import CommandLines
from secret_search import find_secrets, secrets_in
from sockets import Socket, held, open_sockets
from suite_command import measured, weighbridge
from weighbridge.environment import place
from weighbridge.results.run.store import RunStore

LISTENERS = {
    "gateway-1": {"radosgw", "memcached", "swift-proxy-ser"},
    "store-1": {
        "ceph-mon",
        "ceph-mgr",
        "ceph-osd",
        "swift-account-s",
        "swift-container",
        "swift-object-se",
    },
    "store-2": {"ceph-osd", "swift-account-s", "swift-container", "swift-object-se"},
}
"""By host, what must have been seen to listen in a run of RGW and Swift, by a word of its name or
command: a look that saw nothing proves nothing.
"""
KEYS = re.compile(
    r"^\s*(?:key|swift_hash_path_prefix|swift_hash_path_suffix) = (\S+)$", re.MULTILINE
)
TOKENS = re.compile(rb"AUTH_tk[0-9a-f]{32}|AUTH_rgwtk[0-9a-f]{32,}|X-Amz-Signature=[0-9a-f]{64}")
WITH_SECRETS = ("etc/ceph/keyring", "etc/swift/swift.conf", "etc/swift/proxy-server.conf")


@dataclass
class Watch:
    """Looks again and again at the hosts of all deployments of this test's place; what it saw
    outlives them.
    """

    sockets: set[tuple[str, str, Socket]] = field(default_factory=set)
    """Label of the deployment, host, socket."""
    names: dict[tuple[str, str, int], str] = field(default_factory=dict)
    """Who holds a socket, by label, host and inode."""
    here: set[str] = field(default_factory=set)
    """What processes of the run have open in this machine's own network."""
    addresses: dict[tuple[str, str], str] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    modes: dict[str, int] = field(default_factory=dict)
    faults: list[Exception] = field(default_factory=list)

    @contextmanager
    def watching(self) -> Iterator[None]:
        over = threading.Event()
        thread = threading.Thread(target=self._watch, args=(over,))
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _watch(self, over: threading.Event) -> None:
        while not over.wait(0.5):
            try:
                self._look()
            except OSError:
                continue  # a host went while it was looked at
            except (ValueError, KeyError) as error:
                self.faults.append(error)
                return

    def _look(self) -> None:
        namespaces: dict[str, tuple[str, str]] = {}
        now: set[tuple[str, str, int]] = set()
        for path in place().deployments.glob("*/bundles/*/pid"):
            host, label, pid = path.parent.name, path.parents[2].name, path.read_text().strip()
            if not pid or host.startswith("_"):
                continue
            namespaces[str(Path(f"/proc/{pid}/ns/net").readlink())] = (label, host)
            with suppress(OSError):
                sockets = {(label, host, one) for one in open_sockets(pid)}
                self.sockets |= sockets
                now |= {(label, host, one.inode) for _, _, one in sockets}
            self._secrets_of(label, host, Path(f"/proc/{pid}/root"))
        for path in place().deployments.glob("*/deployment.json"):
            self._record(path)
        self._holders(namespaces, {(label, host) for label, host, _ in now - self.names.keys()})

    def _holders(
        self, namespaces: Mapping[str, tuple[str, str]], unnamed: set[tuple[str, str]]
    ) -> None:
        """Who holds the sockets of hosts with a socket that has no name yet, and of this machine:
        what a daemon has open is some hundred files.
        """
        own = str(Path("/proc/self/ns/net").readlink())
        listed = {one.inode: one for one in open_sockets("self")}
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                where = str((process / "ns/net").readlink())
                if namespaces.get(where) in unnamed:
                    # Some are started by a loader or an interpreter, and radosgw renames itself:
                    # both names and words count.
                    line = (process / "cmdline").read_bytes().replace(b"\0", b" ")
                    words = line.decode(errors="replace")
                    name = f"{(process / 'comm').read_text().strip()} ({words.strip()})"
                    label, host = namespaces[where]
                    self.names |= {(label, host, inode): name for inode in held(process.name)}
                elif (
                    where == own
                    and b"weighbridge" in (process / "cmdline").read_bytes()
                    and self._ours(process)
                ):
                    words = (process / "cmdline").read_text(errors="replace")
                    here = (listed[one] for one in held(process.name) if one in listed)
                    self.here |= {f"{one} by {words}" for one in here}

    @staticmethod
    def _ours(process: Path) -> bool:
        """Whether it belongs to this very place: other runs may be under way."""
        return f"WEIGHBRIDGE_HOME={place().home}".encode() in (process / "environ").read_bytes()

    def _secrets_of(self, label: str, host: str, root: Path) -> None:
        # Hosts have the packages of both stores: files of the other one are its samples.
        store = "ceph" if label.startswith("rgw") else "swift"
        for name in (name for name in WITH_SECRETS if store in name):
            path = root / name
            with suppress(FileNotFoundError, ProcessLookupError):
                texts = KEYS.findall(path.read_text())
                if texts:
                    self.modes[f"{label} {host} {name}"] = path.stat().st_mode & 0o777
                for number, text in enumerate(texts):
                    self.secrets[f"{label} {host} {name} {number}"] = text

    def _record(self, path: Path) -> None:
        text = path.read_text()
        if not text:
            return  # it is just being written
        record: dict[str, Any] = json.loads(text)
        label = path.parent.name
        self.modes[f"{label} deployment.json"] = path.stat().st_mode & 0o777
        self.addresses |= {(label, host): address for host, address in record["hosts"].items()}
        for one in record["endpoints"]:
            self.secrets[f"{label} key of {one['api']}"] = one["key"]


@dataclass(frozen=True)
class Shown:
    """What a run of two layouts showed."""

    run: RunStore
    said: bytes
    watch: Watch
    listed: set[bytes]


def shown_by(words: str, out: Path) -> Shown:
    """Run a comparison of two layouts into this folder, and watch it."""
    watch = Watch()
    with watch.watching(), CommandLines() as lines:
        done = weighbridge(
            f"compare {words} --out {out}",
            env={"WEIGHBRIDGE_HOME": str(place().home), "WEIGHBRIDGE_STATE": str(place().state)},
        )
    run = measured(done, out)
    assert not watch.faults, watch.faults
    # Hosts that were raised for a check of configuration alone have what their packages bring.
    labels = {label for label, _ in watch.addresses}
    assert len(labels) == 2
    watch.secrets = {
        name: value for name, value in watch.secrets.items() if name.split()[0] in labels
    }
    watch.modes = {name: mode for name, mode in watch.modes.items() if name.split()[0] in labels}
    return Shown(run, (done.stdout + done.stderr).encode(), watch, lines.seen)


def check_listeners(shown: Shown, wanted: Mapping[str, set[str]] = LISTENERS) -> None:
    """All listen on the address of their host in the deployment's network alone."""
    watch = shown.watch
    wrong = sorted(
        f"{host}: {socket} by "
        f"{watch.names.get((label, host, socket.inode), 'a process that was gone too soon')}"
        for label, host, socket in watch.sockets
        if not socket.loopback and socket.address != watch.addresses.get((label, host))
    )
    assert wrong == []
    for host, listeners in wanted.items():
        inodes = {socket.inode for _, name, socket in watch.sockets if name == host}
        seen = " ".join(
            name for (_, at, inode), name in watch.names.items() if at == host and inode in inodes
        )
        assert {name for name in listeners if name not in seen} == set(), seen
    # Nothing of the run listens in the machine's own network.
    assert watch.here == set(), watch.here


def check_credentials(shown: Shown) -> None:
    """Credentials are new for each deployment and kept by their owner alone."""
    watch = shown.watch
    labels = {label for label, _ in watch.addresses}
    first, second = (
        {value for name, value in watch.secrets.items() if name.startswith(label)}
        for label in labels
    )
    assert min(len(first), len(second)) >= 3
    assert not first & second
    assert {name: oct(mode) for name, mode in watch.modes.items() if mode & 0o077} == {}


def check_secrets(shown: Shown) -> None:
    """Credentials made for a deployment are nowhere in its run, nor in the process list."""
    secrets = shown.watch.secrets
    assert len(set(secrets.values())) >= 10
    assert secrets_in(shown.said, secrets) == []
    assert [name for line in shown.listed for name in secrets_in(line, secrets)] == []
    assert any(b"radosgw-admin" in line or b"ceph-mon" in line for line in shown.listed), (
        "the hosts' processes are in the list"
    )
    folder = shown.run.folder
    assert list(folder.rglob("*radosgw*")), "the hosts' logs are kept"
    assert find_secrets(folder, secrets) == []
    tokens = [
        path for path in folder.rglob("*") if path.is_file() and TOKENS.search(path.read_bytes())
    ]
    assert tokens == []
    assert TOKENS.search(shown.said) is None
