"""What real deployments show while a run weighs them: where they listen, and where the credentials
made for them stand.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from command_lines import CommandLines
from secret_search import find_secrets, secrets_in
from sockets import Socket, held, open_sockets
from suite_command import measured, trial, weighbridge
from weighbridge.environment import place

pytestmark = [pytest.mark.system, pytest.mark.long]

SUITE = trial("[swift]", "{read: 50, write: 50}", "1s", size="64KiB", suite="cache: before-step")
"""Both APIs are used anyway when a deployment is verified."""
LAYOUTS = ("rgw-haproxy", "swift-s3api:background=true")
LISTENERS = {
    "gateway-1": {"radosgw", "haproxy", "memcached", "swift-proxy-ser"},
    "store-1": {
        "ceph-mon",
        "ceph-mgr",
        "ceph-osd",
        "swift-account-s",
        "swift-container",
        "swift-object-se",
        "rsync",
        "iperf3",
    },
    "store-2": {
        "ceph-osd",
        "swift-account-s",
        "swift-container",
        "swift-object-se",
        "rsync",
        "iperf3",
    },
}
"""By host, what must have been seen to listen, by a word of its name or command: a look that saw
nothing proves nothing.
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
        for path in place().deployments.glob("*/bundles/*/pid"):
            host, label, pid = path.parent.name, path.parents[2].name, path.read_text().strip()
            if not pid or host.startswith("_"):
                continue
            namespaces[str(Path(f"/proc/{pid}/ns/net").readlink())] = (label, host)
            with suppress(OSError):
                self.sockets |= {(label, host, one) for one in open_sockets(pid)}
            self._secrets_of(label, host, Path(f"/proc/{pid}/root"))
        for path in place().deployments.glob("*/deployment.json"):
            self._record(path)
        self._holders(namespaces)

    def _holders(self, namespaces: Mapping[str, tuple[str, str]]) -> None:
        own = str(Path("/proc/self/ns/net").readlink())
        listed = {one.inode: one for one in open_sockets("self")}
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                where = str((process / "ns/net").readlink())
                if where in namespaces:
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
                    self.here |= {
                        str(listed[inode]) for inode in held(process.name) if inode in listed
                    }

    @staticmethod
    def _ours(process: Path) -> bool:
        """Whether it belongs to this very place: other runs may be under way."""
        return f"WEIGHBRIDGE_HOME={place().home}".encode() in (process / "environ").read_bytes()

    def _secrets_of(self, label: str, host: str, root: Path) -> None:
        for name in WITH_SECRETS:
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
class Compared:
    run: Path
    said: bytes
    watch: Watch
    listed: set[bytes]


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Compared:
    folder = tmp_path_factory.mktemp("exposure")
    (folder / "suite.yaml").write_text(SUITE)
    words = f"--suite {folder}/suite.yaml --layouts {','.join(LAYOUTS)} --out {folder}/runs"
    watch = Watch()
    with watch.watching(), CommandLines() as lines:
        done = weighbridge(
            f"compare {words} --no-charts",
            env={
                "WEIGHBRIDGE_HOME": str(place().home),
                "WEIGHBRIDGE_STATE": str(place().state),
            },
        )
    run = measured(done, folder / "runs").folder
    assert not watch.faults, watch.faults
    # Hosts that were raised for a check of configuration alone have what their packages bring.
    labels = {label for label, _ in watch.addresses}
    watch.secrets = {
        name: value for name, value in watch.secrets.items() if name.split()[0] in labels
    }
    watch.modes = {name: mode for name, mode in watch.modes.items() if name.split()[0] in labels}
    return Compared(run, (done.stdout + done.stderr).encode(), watch, lines.seen)


def test_everything_listens_on_the_address_of_its_host_in_the_deployments_network_alone(
    compared: Compared,
) -> None:
    watch = compared.watch
    wrong = sorted(
        f"{host}: {one} by "
        f"{watch.names.get((label, host, one.inode), 'one that was gone too soon')}"
        for label, host, one in watch.sockets
        if not one.loopback and one.address != watch.addresses.get((label, host))
    )
    assert wrong == []
    for host, wanted in LISTENERS.items():
        seen = " ".join(
            name
            for (_, one, inode), name in watch.names.items()
            if one == host and inode in _inodes(watch, host)
        )
        assert {name for name in wanted if name not in seen} == set(), seen


def test_nothing_of_a_run_listens_in_the_machines_own_network(compared: Compared) -> None:
    assert compared.watch.here == set()


def test_credentials_are_new_for_each_deployment_and_kept_by_their_owner_alone(
    compared: Compared,
) -> None:
    watch = compared.watch
    labels = {label for label, _ in watch.addresses}
    assert len(labels) == len(LAYOUTS)
    of = {
        label: {value for name, value in watch.secrets.items() if name.startswith(label)}
        for label in labels
    }
    first, second = of.values()
    assert min(len(first), len(second)) >= 3
    assert not first & second
    assert {name: oct(mode) for name, mode in watch.modes.items() if mode & 0o077} == {}


def test_credentials_made_for_a_deployment_are_found_nowhere_in_its_run_nor_in_the_process_list(
    compared: Compared,
) -> None:
    secrets = compared.watch.secrets
    assert len(set(secrets.values())) >= 10
    assert secrets_in(compared.said, secrets) == []
    assert [name for line in compared.listed for name in secrets_in(line, secrets)] == []
    assert any(b"radosgw-admin" in line or b"ceph-mon" in line for line in compared.listed), (
        "the hosts' processes are in the list"
    )
    assert list(compared.run.rglob("*radosgw*")), "the hosts' logs are kept"
    assert find_secrets(compared.run, secrets) == []
    tokens = [
        path
        for path in compared.run.rglob("*")
        if path.is_file() and TOKENS.search(path.read_bytes())
    ]
    assert tokens == []
    assert TOKENS.search(compared.said) is None


def _inodes(watch: Watch, host: str) -> set[int]:
    return {one.inode for _, name, one in watch.sockets if name == host}
