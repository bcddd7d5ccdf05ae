"""A null target in its own process, pinned to a core, for benchmarks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from weighbridge.drivers.engine import _native

SERVE = (
    "import sys; from weighbridge.drivers.engine import _native; _native.null_target(sys.argv[1])"
)
USER, KEY = "test:tester", "testing"


class NullTarget:
    """A running null target; use it with `with`.

    `core` is the CPU it is pinned to (None: not pinned); `first` runs it before other programs
    (SCHED_RR).
    """

    def __init__(
        self,
        *,
        seed: int,
        core: int | None = None,
        delay_ms: float = 0.0,
        delay_spread: float = 0.0,
        first: bool = False,
    ) -> None:
        config = {
            "host": "127.0.0.1",
            "port": 0,
            "threads": 1,
            "delay_ms": delay_ms,
            "delay_spread": delay_spread,
            "seed": seed,
            "user": USER,
            "key": KEY,
        }
        self.seed = seed
        argv = ["chrt", "-r", "10"] if first else []
        if core is not None:
            argv += ["taskset", "-c", str(core)]
        argv += [sys.executable, "-c", SERVE, json.dumps(config)]
        self._process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.url: str = json.loads(self._process.stdout.readline())["listening"]
        self.host, port = self.url.removeprefix("http://").split(":")
        self.port = int(port)

    def __enter__(self) -> Self:
        return self

    def cpu_s(self) -> float:
        """CPU seconds that it has used so far."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.terminate()
        self._process.wait(10)

    def make_bucket(self, name: str) -> None:
        """Create a bucket."""
        self._send_put(name, None)

    def put(self, bucket: str, name: str, seed: int, size_bytes: int) -> None:
        """Store an object with the engine's content."""
        self._send_put(f"{bucket}/{name}", _native.content(seed, size_bytes, 0, size_bytes))

    def _send_put(self, path: str, body: bytes | None) -> None:
        request = urllib.request.Request(f"{self.url}/{path}", data=body, method="PUT")
        with urllib.request.urlopen(request, timeout=30):
            pass

    def config(self, workload: dict[str, Any], *, seed: int, threads: int = 1) -> dict[str, Any]:
        """The config of an engine that loads this target over S3, in buckets `bench-...`."""
        return {
            "api": "s3",
            "host": self.host,
            "port": self.port,
            "tls": False,
            "ca_file": None,
            "base_path": "",
            "access_key": USER,
            "secret_key": KEY,
            "region": "us-east-1",
            "token": "",
            "bucket_prefix": "bench",
            "request_timeout_s": 30.0,
            "threads": threads,
            "verify": False,
            "seed": seed,
            "workload": workload,
        }


def wrk_put_script(folder: str, seed: int, size_bytes: int) -> str:
    """A script that makes wrk PUT the engine's content, from a file in this folder."""
    body = Path(folder, "body")
    body.write_bytes(_native.content(seed, size_bytes, 0, size_bytes))
    return (
        'wrk.method = "PUT"\n'
        f'local file = io.open("{body}", "rb")\nwrk.body = file:read("*a")\nfile:close()\n'
    )


def workload(operation: str, size_bytes: int, objects: int, **more: object) -> dict[str, Any]:
    """A workload of one operation on objects of one size, as the engine takes it."""
    return {
        "name": f"{operation}-{size_bytes}",
        "objects": {"size": size_bytes, "containers": 1, "per_container": objects},
        "operations": {operation: 1.0},
        "pick": "uniform",
        "workers": [1],
        "runtime": 1.0,
        "warmup": 0.0,
        "rate_per_s": None,
        "verify": False,
        **more,
    }
