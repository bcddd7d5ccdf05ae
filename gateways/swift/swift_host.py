"""What runs beside Swift on its hosts: `swift_host.py COMMAND`, for Python 3.9 without this suite.

`syslog`, `memcached` and `storage` run until they are killed or their stdin closes. The others take
an order as JSON from stdin and print their answer as JSON.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import importlib.util
import json
import os
import re
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weighbridge.gateways.counter_loop import print_every_second

if TYPE_CHECKING:
    import io
    from collections.abc import Callable, Iterator, Sequence

# Swift's servers log to syslog, which hosts lack.

DEVICE = "/dev/log"


def syslog(log_file: str) -> None:
    """Append lines of /dev/log to a file, until killed."""
    wire = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    # Bound under another name first, so that /dev/log is writable by every user as soon as it
    # exists.
    wire.bind(f"{DEVICE}.new")
    Path(f"{DEVICE}.new").chmod(0o666)
    Path(f"{DEVICE}.new").rename(DEVICE)
    log = os.open(log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    while True:
        message = wire.recv(65536).rstrip(b"\0\n")
        os.write(log, re.sub(rb"^<[0-9]+>", b"", message) + b"\n")


# memcached


@contextlib.contextmanager
def connected(address: str, port: int, timeout_s: float = 30) -> Iterator[Memcached]:
    """A connection to a memcached."""
    with (
        socket.create_connection((address, port), timeout=timeout_s) as wire,
        wire.makefile("rwb") as talk,
    ):
        yield Memcached(talk)


class Memcached:
    """What is asked of one."""

    def __init__(self, wire: io.BufferedRWPair) -> None:
        self._wire = wire

    def stats(self) -> dict[str, str]:
        """Its own statistics. Raises OSError or ValueError."""
        self._send(b"stats\r\n")
        values: dict[str, str] = {}
        for line in self._wire:
            words = line.decode().split()
            if words == ["END"]:
                return values
            if words[:1] != ["STAT"] or len(words) < 3:
                raise ValueError(f"memcached answered {line!r}")
            values[words[1]] = " ".join(words[2:])
        raise ValueError("memcached closed the connection in the middle of its answer")

    def entry(self, key: str) -> tuple[bytes, bytes] | None:
        """What `set` must be given to make an entry again, and its value; None without one."""
        self._send(f"mg {key} f t v\r\n".encode())
        head = self._wire.readline().decode().split()
        if head[0] == "EN":
            return None
        if head[0] != "VA":
            raise ValueError(f"memcached answered {' '.join(head)} for {key}")
        value = self._wire.read(int(head[1]))
        self._wire.readline()
        fields = {word[0]: int(word[1:]) for word in head[2:]}
        left_s = max(fields["t"], 0)  # -1: it stays
        return f"set {key} {fields['f']} {left_s} {len(value)}\r\n".encode(), value

    def flush(self, keep: Sequence[tuple[bytes, bytes]]) -> None:
        """Drop everything and restore some entries, in one message that no other can split."""
        self._send(b"flush_all\r\n" + b"".join(b"%s%s\r\n" % entry for entry in keep))
        answers = [self._wire.readline() for _ in range(1 + len(keep))]
        if answers != [b"OK\r\n", *[b"STORED\r\n"] * len(keep)]:
            raise ValueError(f"memcached answered {answers}")

    def _send(self, message: bytes) -> None:
        self._wire.write(message)
        self._wire.flush()


def stored(key: str) -> str:
    """The key under which Swift's memcache client stores `key`: its MD5."""
    return hashlib.md5(key.encode(), usedforsecurity=False).hexdigest()


def drop(order: dict[str, Any]) -> dict[str, int]:
    """Empty all memcacheds of `servers` except for tempauth's token of `user`.

    Proxies choose which memcached holds an entry: every one is searched. Without the token every
    client's next request would fail with 401.
    """
    dropped = kept = 0
    prefix = order["prefix"]
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(connected(*place)) for place in order["servers"]]
        names = [stored(f"{prefix}/user/{order['user']}")]
        users = [server.entry(names[0]) for server in servers]
        names += [stored(f"{prefix}/token/{json.loads(user[1])}") for user in users if user]
        for server in servers:
            entries = [entry for name in names if (entry := server.entry(name)) is not None]
            dropped += int(server.stats()["curr_items"]) - len(entries)
            kept += len(entries)
            server.flush(entries)
    return {"dropped": dropped, "kept": kept}


OF_MEMCACHED = frozenset(
    {
        *("curr_connections", "curr_items", "bytes", "evictions", "bytes_read", "bytes_written"),
        *("cmd_get", "cmd_set", "get_hits", "get_misses", "get_expired"),
    }
)


def counters(address: str, port: int) -> dict[str, int]:
    """A memcached's numbers by their names in `stats`. Raises OSError or ValueError."""
    with connected(address, port, timeout_s=5) as server:
        values = server.stats()
    return {name: int(value) for name, value in values.items() if name in OF_MEMCACHED}


def memcached(address: str, port: str) -> None:
    """Print its counters every second."""
    print_every_second(lambda: counters(address, int(port)), f"{address}:{port}")


# A storage host's counters are read where recon has them: the object server, which serves recon, is
# itself being measured, and a request every second would add load.


def storage(devices: str, recon: str) -> None:
    """Print every second the host's TCP sockets as in /recon/sockstat, the folders of deferred
    updates, and the numbers of the file `recon`, which background daemons write.
    """
    print_every_second(lambda: of_storage(Path(devices), Path(recon)), recon)


def of_storage(devices: Path, recon: Path) -> dict[str, float]:
    """One line of them."""
    found: dict[str, float] = {}
    for line in Path("/proc/net/sockstat").read_text(encoding="utf-8").splitlines():
        kind, *words = line.split()
        if kind == "TCP:":
            # The line's other numbers are for the whole machine, even in a container.
            for name in ("inuse", "tw"):
                found[f"tcp_{name}"] = int(words[words.index(name) + 1])
    # A folder has two links, and one more for each folder in it. There are up to 4096 a disk: few
    # folders mean few updates, and counting these would need a walk over all of them.
    links = [path.stat().st_nlink - 2 for path in devices.glob("*/async_pending*")]
    found["async_folders"] = sum(links)
    # It is missing at first, and empty while it is replaced.
    numbers = json.loads((recon.read_text(encoding="utf-8") if recon.exists() else "") or "{}")
    kept = {name: value for name, value in numbers.items() if type(value) in {int, float}}
    return {**found, **kept}


# Rings


def rings(order: dict[str, Any]) -> dict[str, str]:
    """Ring files by type, in base64, by Swift's own builder: one process instead of a dozen."""
    return {name: _ring(order, own) for name, own in order["rings"].items()}


def _ring(order: dict[str, Any], own: dict[str, Any]) -> str:
    from swift.common.ring import RingBuilder  # type: ignore[import-not-found]  # noqa: PLC0415 - installed only on the hosts where this runs

    builder = RingBuilder(order["part_power"], own["replicas"], 0)
    for device in own["devices"]:
        again = {"replication_ip": device["ip"], "replication_port": device["port"]}
        builder.add_dev({"region": 1, "weight": 100.0, "meta": "", **device, **again})
    builder.rebalance(seed=order["seed"])
    builder.validate()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ring.gz"
        builder.get_ring().save(str(path))
        return base64.b64encode(path.read_bytes()).decode()


def ring(path: str) -> dict[str, Any]:
    """A ring file, read by Swift's own code, whatever its format."""
    from swift.common.ring.ring import RingData  # type: ignore[import-not-found]  # noqa: PLC0415

    return described(RingData.load(path))


def described(data: Any) -> dict[str, Any]:
    """Its disks, and a row for each replica with a disk's index for each partition."""
    # A removed device leaves a hole in the list: disks are renumbered without holes.
    there = [device for device in data.devs if device is not None]
    number = {device["id"]: index for index, device in enumerate(there)}
    # RingData has no public access to its table; these two names are the same from 2.26 to 2.38.
    return {
        "part_power": 32 - data._part_shift,  # noqa: SLF001
        "disks": [
            {"address": device["ip"], "port": device["port"], "device": device["device"]}
            for device in there
        ],
        "table": [[number[disk] for disk in row] for row in data._replica2part2dev_id],  # noqa: SLF001
    }


# Erasure coding


def code(order: dict[str, Any]) -> dict[str, Any]:
    """The codes that PyECLib knows, and why it cannot do one of `type`, `k` and `m`."""
    from pyeclib import ec_iface  # type: ignore[import-not-found]  # noqa: PLC0415

    known, why = sorted(ec_iface.VALID_EC_TYPES), ""
    if order["type"] in known:
        try:
            ec_iface.ECDriver(k=order["k"], m=order["m"], ec_type=order["type"])
        except Exception as error:  # noqa: BLE001 - a library's own, which is passed on
            why = f"{type(error).__name__}: {error}"
    return {"known": known, "why": why}


def policy(_: object) -> dict[str, Any]:
    """What Swift has read of the policy of new containers."""
    from swift.common.storage_policy import POLICIES  # type: ignore[import-not-found]  # noqa: PLC0415

    names = ("name", "ec_type", "ec_ndata", "ec_nparity", "ec_segment_size", "quorum")
    return {name: getattr(POLICIES.default, name) for name in names}


# The options that a release of Swift knows. Swift is not imported: that takes a second.

FOLDERS = {"proxy": "proxy", "account": "account", "container": "container", "object": "obj"}
"""Folder of each server's own code; every server also reads the common code's options."""
PLACES = (
    "/usr/share/doc/swift/examples/{0}-server.conf",
    "/usr/share/doc/swift-{0}/{0}-server.conf-sample",
)
"""Where Debian's and Ubuntu's packages have the sample file of a server."""

_SECTION = re.compile(r"^#?\s*\[([^\]]+)\]\s*$")
_OPTION = re.compile(r"^[#\s]*(?:set\s+)?([A-Za-z_][\w.-]*)\s*=\s*(\S*)")
_READ = re.compile(
    r"""\b\w*(?:conf|options|config)\w*(?:\.(?:get|pop|setdefault)\(|\[)\s*['"]([a-z][a-z0-9_]*)['"]"""
)


def known(_: object) -> dict[str, Any]:
    """By server: `samples`, names by section from the package's sample files; `uses`, the `use` of
    each section; and `read`, names that its code reads from its configuration.
    """
    spec = importlib.util.find_spec("swift")
    if spec is None or spec.origin is None:
        sys.exit("Swift is not installed on this host")
    root = Path(spec.origin).parent
    common = read(root / "common")
    samples = {server: sample(sample_of(server)) for server in FOLDERS}
    return {
        "samples": {server: names for server, (names, _) in samples.items()},
        "uses": {server: uses for server, (_, uses) in samples.items()},
        "read": {
            server: sorted(common | read(root / folder)) for server, folder in FOLDERS.items()
        },
    }


def sample_of(server: str, places: Sequence[str] = PLACES) -> str:
    """The text of a server's sample file. Exits if there is none."""
    paths = [Path(place.format(server)) for place in places]
    there = next((path for path in paths if path.is_file()), None)
    if there is None:
        sys.exit(f"no sample file of Swift's {server} server: {' or '.join(map(str, paths))}")
    return there.read_text(encoding="utf-8")


def sample(text: str) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Option names by section, and the `use` of each section."""
    names: dict[str, list[str]] = {}
    uses: dict[str, str] = {}
    section = "DEFAULT"
    for line in text.splitlines():
        head = _SECTION.match(line)
        option = _OPTION.match(line)
        if head:
            section = head.group(1)
            names.setdefault(section, [])
        elif option:
            names.setdefault(section, []).append(option.group(1))
            if option.group(1) == "use":
                uses.setdefault(section, option.group(2))
    return names, uses


def read(folder: Path) -> set[str]:
    """Names that the code in a folder reads from a configuration."""
    texts = [path.read_text(encoding="utf-8") for path in folder.rglob("*.py")]
    return {name for text in texts for name in _READ.findall(text)}


# Whether servers run with their files: they cannot be asked for their options.

_CLOCK_ERROR_S = 0.1
"""Ages come in kernel ticks of ten milliseconds, file times in jiffies."""


def faults(digests: dict[str, str], proc: str = "/proc") -> dict[str, str]:
    """By path of a configuration file what is wrong: it has not the content of this SHA-256, or no
    process runs with it, or one that is older.
    """
    found = {}
    for path, digest in digests.items():
        with Path(path).open("rb") as file:
            content, written = file.read(), os.fstat(file.fileno()).st_mtime
        most_s = time.time() - written + _CLOCK_ERROR_S
        ages = _ages(path, Path(proc))
        old = [pid for pid, age_s in ages.items() if age_s > most_s]
        if hashlib.sha256(content).hexdigest() != digest:
            found[path] = f"{path} is not what was written to it"
        elif not ages:
            found[path] = f"no process runs with {path}"
        elif old:
            found[path] = f"process {old[0]} is older than {path}, which it should have read"
    return found


def _ages(path: str, proc: Path) -> dict[int, float]:
    """Seconds since the start of each process that has the path among its arguments, by pid."""
    # proc(5), starttime: in kernel ticks since the machine's start.
    uptime_s, ticks = time.clock_gettime(time.CLOCK_BOOTTIME), os.sysconf("SC_CLK_TCK")
    found = {}
    for folder in proc.glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            # The program's name, in brackets, may contain spaces and brackets.
            stat = (folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended
        if path.encode() in words:
            found[int(folder.name)] = uptime_s - int(stat[19]) / ticks
    return found


UNTIL_KILLED: dict[str, Callable[..., None]] = {
    "syslog": syslog,
    "memcached": memcached,
    "storage": storage,
}
BY_ORDER = {one.__name__: one for one in (drop, rings, ring, code, policy, known, faults)}


def main() -> None:
    """Run the command."""
    command, *words = sys.argv[1:]
    if command in UNTIL_KILLED:
        UNTIL_KILLED[command](*words)
    else:
        json.dump(BY_ORDER[command](json.load(sys.stdin)), sys.stdout)


if __name__ == "__main__":
    main()
