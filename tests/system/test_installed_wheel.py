"""The suite as a package has it: one wheel in a fresh environment, from another folder, without a
checkout or a compiler, by a user who is not root.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from suite_command import trial
from weighbridge.results.run.store import RunStore

# One core is enough for it: company for those that want no more beside them.
pytestmark = [pytest.mark.system, pytest.mark.pair]

ROOT = Path(__file__).parents[2]
NOBODY = 65534
CLIENT_BYTES = 150_000_000
"""What a client may take on disk, without pip and setuptools, which only some installers add."""
SUITE = trial("[s3]", "{read: 100}", "2s", per_container=10, workers=1)
COMPARE = (
    *("compare", "--layouts", "null:delay_ms=5", "--hardware", "loopback", "--suite", "tiny.yaml"),
    *("--no-attest", "--out", "runs"),
)


def apart(folder: Path) -> dict[str, str]:
    """The environment for a build that writes its metadata here. In the checkout it would replace
    the entry points of programs that other tests start there at that moment.
    """
    bases = {name: folder / name for name in ("metadata", "build")}
    bases["metadata"].mkdir()
    config = folder / "setup.cfg"
    config.write_text(
        f"[egg_info]\negg_base = {bases['metadata']}\n[build]\nbuild_base = {bases['build']}\n"
    )
    return {**os.environ, "DIST_EXTRA_CONFIG": str(config)}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built as `make wheel` builds it, with the Rust parts that are built already."""
    folder = tmp_path_factory.mktemp("built")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "wheel", "--no-index", "--no-deps", "--no-build-isolation", "-w", folder, ROOT],
        env=apart(tmp_path_factory.mktemp("apart")),
        check=True,
        timeout=600,
    )
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment that anyone may read, with a client and nothing else, as locked."""
    folder = tmp_path_factory.mktemp("client") / "venv"
    python = Path(sys.base_prefix) / "bin" / "python3"
    subprocess.run([python, "-m", "venv", folder], check=True, timeout=120)
    locked = ROOT / "requirements.lock"
    versions = "\n".join(re.findall(r"^\S+==\S+(?: ;[^\\\n]*)?", locked.read_text(), re.MULTILINE))
    (folder / "versions").write_text(versions)
    # Isolated: in a checkout that is on Python's path, the suite would count as installed.
    isolated = (str(folder / "bin" / "python"), "-I", "-m", "pip", "--disable-pip-version-check")
    subprocess.run(
        [*isolated, "install", "--quiet", "--constraint", folder / "versions", wheel],
        check=True,
        timeout=300,
    )
    return folder


def test_a_wheel_is_for_every_python_and_adds_one_name(wheel: Path) -> None:
    assert "-cp311-abi3-linux" in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"weighbridge"}
    sources = (".rs", ".toml", ".lock", ".c")
    assert not [name for name in names if name.endswith(sources) or "/tests/" in name]
    assert {
        "weighbridge/drivers/engine/_native.abi3.so",
        "weighbridge/gateways/apache/fastcgi_responder",
        "weighbridge/topologies/lab/vdisk_server",
    } <= {*names}
    assert [name for name in names if name.endswith("data/share/man/man1/weighbridge.1")]


@pytest.mark.test_all
def test_a_client_is_small(environment: Path) -> None:
    (site,) = (environment / "lib").glob("python3*/site-packages")
    kept = [one for one in site.iterdir() if one.name.split("-")[0] not in {"pip", "setuptools"}]
    files = [file for one in kept for file in (one, *one.rglob("*"))]
    assert sum(file.lstat().st_blocks * 512 for file in files) < CLIENT_BYTES
    assert (site / "weighbridge").is_dir()
    assert not (site / "scipy").exists()


@pytest.mark.test_all
def test_an_installed_suite_compares_and_draws_from_anywhere(
    environment: Path, tmp_path: Path
) -> None:
    (tmp_path / "tiny.yaml").write_text(SUITE)
    os.chown(tmp_path, NOBODY, NOBODY)
    out = as_nobody(environment, tmp_path, *COMPARE)
    assert 'pip install "$(echo dist/weighbridge-*.whl)[report]"' in " ".join(out.split())
    (run,) = (tmp_path / "runs").iterdir()
    assert any(step.valid for step in RunStore.open(run).latest().values()), out
    named = str(run.relative_to(tmp_path))  # its parents are root's
    assert (run / "derived" / "summary.csv").read_text().count("\n") > 1
    as_nobody(environment, tmp_path, "export", named, "--to", "json")
    assert not (run / "derived" / "report.html").exists()
    # With the extra `report`, as this Python has it.
    extra = tmp_path / "extra"
    extra.mkdir()
    for name in {file.parts[0] for file in metadata.files("vl-convert-python") or ()} - {".."}:
        (extra / name).symlink_to(str(metadata.distribution("vl-convert-python").locate_file(name)))
    as_nobody(environment, tmp_path, "report", named, PYTHONPATH=str(extra))
    assert (run / "derived" / "report.html").stat().st_size > 0
    assert list((run / "derived" / "charts").glob("*.svg"))


def as_nobody(environment: Path, folder: Path, *line: str, **variables: str) -> str:
    """Run a verb in a folder as a user without rights, but to read what this machine's Python has
    in root's folders. Returns its output.
    """
    rights = ("--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search")
    nobody = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *rights)
    done = subprocess.run(
        [*nobody, "--no-new-privs", str(environment / "bin" / "weighbridge"), *line],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder), **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode in {0, 4}, done.stdout + done.stderr
    return done.stdout


@pytest.mark.test_all
def test_an_sdist_has_all_that_a_wheel_is_built_of(tmp_path: Path) -> None:
    code = "import sys; from setuptools.build_meta import build_sdist; build_sdist(sys.argv[1])"
    (tmp_path / "apart").mkdir()
    subprocess.run(
        [sys.executable, "-c", code, tmp_path],
        cwd=ROOT,
        env=apart(tmp_path / "apart"),
        capture_output=True,
        check=True,
        timeout=120,
    )
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as unpacked:
        unpacked.extractall(tmp_path, filter="data")
    (source,) = tmp_path.glob("weighbridge-*/")
    project = tomllib.loads((source / "pyproject.toml").read_text())
    crates = [one["path"] for one in project["tool"]["setuptools-rust"]["ext-modules"]]
    assert len(crates) == 3
    for crate in crates:
        mine = (ROOT / crate).parent
        for path in [mine / "Cargo.toml", *(mine / "src").rglob("*.rs")]:
            assert (source / path.relative_to(ROOT)).read_bytes() == path.read_bytes()
    rooms = [path.name for path in (ROOT / "weighbridge").iterdir() if path.is_symlink()]
    assert all((source / "weighbridge" / name / "__init__.py").is_file() for name in rooms)
    if shutil.which("cargo"):
        line = ["cargo", "metadata", "--offline", "--locked", "--no-deps", "--format-version", "1"]
        seen = subprocess.run(line, cwd=source, capture_output=True, check=True, timeout=60)
        assert len(json.loads(seen.stdout)["packages"]) == 3
