"""The engine's null target as a process on loopback: cheaper than `weighbridge null-target`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3
from botocore.config import Config

from weighbridge.drivers.engine import _native

KEY = "a-planted-secret"

# Without what `site` imports, most of which is for editable installs: a start costs half as much.
_PROGRAM = (
    "import importlib.util, sys; spec = importlib.util.spec_from_file_location('_native', "
    "sys.argv[1]); native = importlib.util.module_from_spec(spec); "
    "spec.loader.exec_module(native); native.null_target(sys.argv[2])"
)


def null_command(**config: float | str | None) -> list[str]:
    """What starts a null target with these entries of its configuration."""
    return [sys.executable, "-I", "-S", "-c", _PROGRAM, _native.__file__, json.dumps(config)]


@contextmanager
def null_process(**config: float | str | None) -> Iterator[tuple[subprocess.Popen[str], str]]:
    argv = null_command(**config)
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, "the null target ended"
            yield process, json.loads(line)["listening"]
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def s3_client(url: str, user: str = "a", key: str = "b") -> Any:
    """An independent client, which does not try again."""
    return boto3.client(
        "s3",
        endpoint_url=url,
        aws_access_key_id=user,
        aws_secret_access_key=key,
        region_name="us-east-1",
        config=Config(
            s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}, proxies={}
        ),
    )
