"""For tests: `rados` and `ceph` of a cluster with one pool, whose objects are files.

As a program it is either of them, by the name that it was installed with; it says and refuses what
the real ones do (Ceph 16.2), as far as this suite asks. `FakeCeph` installs it and looks at its
files.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

POOL = "bench"
STORE = "default.rgw.buckets.data"
HOST = "gateway-1"


def detail(name: str = POOL, **changes: Any) -> dict[str, Any]:
    known: dict[str, Any] = {
        "pool_name": name,
        "type": 1,
        "size": 3,
        "pg_num": 32,
        "crush_rule": 0,
        "erasure_code_profile": "",
        "quota_max_bytes": 0,
        "quota_max_objects": 0,
        "flags_names": "hashpspool",
        "application_metadata": {"rgw": {}} if name == STORE else {"rados": {}},
    }
    return {**known, **changes}


class FakeCeph:
    """The programs in `bin`, and their cluster."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir(parents=True)
        for name in ("rados", "ceph"):
            program = self.bin / name
            program.write_text(f"#!{sys.executable} -IS\n{Path(__file__).read_text()}")
            program.chmod(0o755)
        (folder / "objects").mkdir()
        self.say("pools", [detail(), detail(STORE)])
        self.say("states", {"active+clean": 64, "active+clean+scrubbing": 1})

    def say(self, what: str, value: object) -> None:
        """Change what the cluster says: `pools`, `states`, `denied` (of rados), `no-list` (of its
        `ls`), `stuck` (a namespace in which nothing can be deleted), `no-caps` (of ceph),
        `profiles` (of erasure coding, by name), `hang` (how long a bench takes, in seconds).
        """
        (self.folder / f"{what}.json").write_text(json.dumps(value))

    def put(self, namespace: str, name: str) -> None:
        (self.folder / "objects" / namespace).mkdir(exist_ok=True)
        (self.folder / "objects" / namespace / name).write_text("")

    @property
    def objects(self) -> list[str]:
        found = (self.folder / "objects").rglob("*")
        return sorted(f"{one.parent.name}/{one.name}" for one in found if one.is_file())

    @property
    def calls(self) -> list[str]:
        path = self.folder / "calls"
        return path.read_text().splitlines() if path.exists() else []


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _known(folder: Path, what: str) -> Any:
    path = folder / f"{what}.json"
    return json.loads(path.read_text()) if path.exists() else None


def _ceph(folder: Path, words: list[str]) -> int:
    refused = _known(folder, "no-caps")
    if refused:
        sys.stderr.write(f"{refused}\n")
        return 13
    if words[:4] == ["osd", "pool", "ls", "detail"]:
        answer: Any = _known(folder, "pools")
    elif words[:1] == ["status"]:
        states = _known(folder, "states").items()
        answer = {"pgmap": {"pgs_by_state": [{"state_name": s, "count": n} for s, n in states]}}
    elif words[:3] == ["osd", "erasure-code-profile", "get"]:
        profiles = _known(folder, "profiles") or {"p": {"k": "2", "m": "1", "plugin": "jerasure"}}
        if words[3] not in profiles:
            sys.stderr.write(f"Error ENOENT: unknown erasure code profile '{words[3]}'\n")
            return 2
        answer = profiles[words[3]]
    else:
        sys.stderr.write("no valid command found\n")
        return 22
    _say(f"\n{json.dumps(answer)}")
    return 0


def _bench(space: Path, words: list[str], options: dict[str, str], folder: Path) -> int:
    seconds, mode = int(words[1]), words[2]
    prefix = f"benchmark_data_{HOST}_{os.getpid()}_object"
    run = space / options["--run-name"]
    count = int(options.get("--max-objects", 4))
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if mode == "write":
        for number in range(count):
            (space / f"{prefix}{number}").write_text("")
    elif not run.exists():
        sys.stderr.write("Must write data before running a read benchmark!\n")
        return 1
    if "--max-objects" not in options:
        time.sleep(0.3 + (_known(folder, "hang") or 0))
    if mode == "write":
        run.write_text(prefix)
    kind, size = ("write", options["-b"]) if mode == "write" else ("read", "4096")
    _say("hints = 1")
    found = {"total_time_run": str(max(seconds, 1)), f"total_{kind}s_made": str(count * 100)}
    if "--max-objects" in options:
        found = {"total_time_run": "0.1", f"total_{kind}s_made": str(count)}
    times = {"average_latency": "0.004", "min_latency": "0.001", "max_latency": "0.02"}
    _say(json.dumps({**found, f"{kind}_size": size, **times}))
    return 0


def _cleanup(space: Path, options: dict[str, str]) -> int:
    run = space / options.get("--run-name", "benchmark_last_metadata")
    prefix = options.get("--prefix", f"benchmark_data_{HOST}")
    if run.exists():
        prefix = run.read_text()
        run.unlink()
    found = [one for one in space.iterdir() if one.name.startswith(prefix)]
    for one in found:
        one.unlink()
    _say(f"Removed {len(found)} objects")
    return 0


def _rados(folder: Path, words: list[str], options: dict[str, str]) -> int:
    denied = _known(folder, "denied")
    if denied:
        sys.stderr.write(f"{denied}\n")
        return 1
    if options.get("--pool") not in {one["pool_name"] for one in _known(folder, "pools")}:
        sys.stderr.write(f"error opening pool {options.get('--pool')}: (2) No such file\n")
        return 1
    if "--all" in options:
        for one in (folder / "objects").rglob("*"):
            if one.is_file():
                _say(f"{one.parent.name}\t{one.name}")
        return 0
    space = folder / "objects" / options.get("--namespace", "")
    space.mkdir(exist_ok=True)
    refused = _known(folder, "no-list") if words[0] == "ls" else None
    if words[0] in ("rm", "cleanup") and _known(folder, "stuck") == space.name:
        refused = "error: (110) Connection timed out"
    if refused:
        sys.stderr.write(f"{refused}\n")
        return 1
    if words[0] == "bench":
        return _bench(space, words, options, folder)
    if words[0] == "cleanup":
        return _cleanup(space, options)
    if words[0] == "ls":
        for one in sorted(space.iterdir()):
            _say(one.name)
        return 0
    for name in words[1:]:
        path = space / name
        if words[0] == "create":
            path.write_text("")
        elif not path.exists():
            sys.stderr.write(f"error: {name}: (2) No such file or directory\n")
            return 1
        elif words[0] == "stat":
            when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(path.stat().st_mtime))
            _say(f"{POOL}/{name} mtime {when}.000000+0000, size 0")
        elif words[0] == "rm":
            path.unlink()
    return 0


def main(program: Path, argv: list[str]) -> int:
    folder = program.parent.parent
    with (folder / "calls").open("a") as log:
        log.write(f"{program.name} {' '.join(argv)}\n")
    flags = {"--no-cleanup", "--all"}
    options: dict[str, str] = {}
    words: list[str] = []
    left = iter(argv)
    for one in left:
        if one in flags:
            options[one] = ""
        elif one.startswith("-") and one != "--version":
            options[one] = next(left)
        else:
            words.append(one)
    if words == ["--version"]:
        _say("ceph version 16.2.15 (6184) pacific (stable)")
        return 0
    # The keyring of another user is not there.
    if options.get("--name") == "client.nobody":
        sys.stderr.write("auth: unable to find a keyring on /etc/ceph: (2) No such file\n")
        return 1
    return _ceph(folder, words) if program.name == "ceph" else _rados(folder, words, options)


if __name__ == "__main__" and Path(sys.argv[0]).name in ("rados", "ceph"):
    sys.exit(main(Path(shutil.which(sys.argv[0]) or sys.argv[0]).resolve(), sys.argv[1:]))
