"""The Dockerfile, built and run by a real Docker daemon.

By hand, as it compiles all Rust parts without a cache of Cargo's:

    pytest -q tests/system/test_docker_images.py -m by_hand
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import psutil
import pytest

from weighbridge.environment import place
from weighbridge.gateways.gateway import RootImage
from weighbridge.topologies.images import ALWAYS, ensure

pytestmark = [pytest.mark.system, pytest.mark.by_hand, pytest.mark.test_all]

PROGRAMS: Final = RootImage(
    name="docker",
    suite="bookworm",
    packages=("containerd", "docker.io"),
    options=("--variant=extract",),
)
BASE: Final = RootImage(
    name="trixie",
    suite="trixie",
    packages=(),
    # As bare as Docker's own: what every image of hosts has would hide what the Dockerfile lacks.
    options=(f'--customize-hook=chroot "$1" apt-get -qy --autoremove purge {" ".join(ALWAYS)}',),
)
BASE_NAME: Final = "debian:trixie-slim"
AUTHORITIES: Final = "/opt/authorities.crt"
READ_BY: Final = ("PIP_CERT", "SSL_CERT_FILE", "CARGO_HTTP_CAINFO")
"""Programs of the build trust whom this machine trusts: it may have a mirror of its own."""
START_S: Final = 30.0


class Docker:
    """A daemon that runs; `folder` has its socket."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._environment = {
            "PATH": f"{programs}/usr/sbin:{programs}/usr/bin:{os.environ['PATH']}",
            "HOME": str(folder),
            "DOCKER_HOST": f"unix://{folder}/socket",
            "DOCKER_BUILDKIT": "1",
        }
        self._folder = folder

    def __call__(self, *line: str | Path, timeout_s: float = 120.0) -> str:
        done = subprocess.run(
            ["docker", *map(str, line)],
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=timeout_s,
        )
        assert done.returncode == 0, f"docker {line[0]}: {done.stdout[-5000:]}"
        return done.stdout

    def daemon(self, data: Path) -> subprocess.Popen[bytes]:
        """Start the daemon, in namespaces that end with it. It has no network of its own."""
        alone = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
        options = (
            f"--data-root={data}",
            f"--exec-root={self._folder}/exec",
            f"--pidfile={self._folder}/pid",
            f"--host={self._environment['DOCKER_HOST']}",
            *("--iptables=false", "--bridge=none"),
        )
        log = (self._folder / "log").open("wb")
        with log:
            return subprocess.Popen(
                [*alone, "dockerd", *options],
                env=self._environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )


@contextmanager
def docker_daemon(folder: Path) -> Iterator[Docker]:
    store = place().images
    programs = ensure(PROGRAMS, print, store=store)
    data = store.resolve().parent / "docker"
    docker = Docker(programs, folder)
    running = docker.daemon(data)
    try:
        _await(docker, running, folder)
        if BASE_NAME not in docker("images", "--format", "{{.Repository}}:{{.Tag}}"):
            _import_base(docker, ensure(BASE, print, store=store), folder)
        yield docker
    finally:
        for daemon in psutil.Process(running.pid).children():
            daemon.terminate()  # unshare itself ignores it
        running.wait(30)


def _await(docker: Docker, running: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + START_S
    while True:
        try:
            docker("info")
        except AssertionError:
            said = (folder / "log").read_text(errors="replace")[-2000:]
            assert running.poll() is None, said
            assert time.monotonic() < deadline, said
            time.sleep(0.1)
        else:
            return


def _import_base(docker: Docker, root: Path, folder: Path) -> None:
    archive = folder / "base.tar"
    subprocess.run(["tar", "--create", "--file", archive, "--directory", root, "."], check=True)
    trusted = folder / AUTHORITIES.strip("/")
    trusted.parent.mkdir()
    shutil.copy("/etc/ssl/certs/ca-certificates.crt", trusted)
    member = f".{AUTHORITIES}"
    subprocess.run(
        ["tar", "--append", "--file", archive, "--directory", folder, member], check=True
    )
    variables = " ".join(f"{name}={AUTHORITIES}" for name in READ_BY)
    docker("import", "--change", f"ENV {variables}", archive, BASE_NAME)
    archive.unlink()


ROOT = Path(__file__).parents[2]
BUILD_S = 1200.0
NOBODY = 65534
COMPARE = (
    *("compare", "--layouts", "null", "--hardware", "loopback", "--suite", "endpoints"),
    *("--duration", "2s", "--no-attest"),
)


@pytest.fixture(scope="module")
def docker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Docker]:
    with docker_daemon(tmp_path_factory.mktemp("docker")) as found:
        yield found


def built(docker: Docker, *options: str) -> str:
    version = ("--build-arg", "VERSION=7.8.9")
    said = docker("build", "-q", "--network=host", *version, *options, ROOT, timeout_s=BUILD_S)
    return said.splitlines()[-1]


def test_the_client_compares_and_reports_as_nobody(docker: Docker, tmp_path: Path) -> None:
    image = built(docker)
    run = ("run", "--rm", "--network=none", "--volume", f"{tmp_path}:/runs", image)
    assert docker(*run, "--version").split()[-1] == "7.8.9"
    os.chown(tmp_path, NOBODY, NOBODY)
    docker(*run, *COMPARE)
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.stat().st_uid == NOBODY
    report = folder / "derived" / "report.html"
    assert report.stat().st_size > 0
    report.unlink()
    docker(*run, "report", f"runs/{folder.name}")
    assert report.stat().st_size > 0
    assert list((folder / "derived" / "charts").glob("*.svg"))


def test_the_lab_has_all_that_lab_hosts_need(docker: Docker) -> None:
    if not re.search(r"(?m)^CapBnd:\t0*1?[37]?f+$", Path("/proc/self/status").read_text()):
        pytest.skip("--privileged is for machines where root may do everything")
    image = built(docker, "--target", "lab")
    said = docker("run", "--rm", "--privileged", "--network=none", image, "doctor")
    assert "missing" not in said.lower(), said
