"""Every verb by a user who is not root: most do their work, the others say in a sentence that they
want root, and start nothing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from fake_run import WORKLOADS, fake_run

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]
NOBODY = 65534
# The interpreter and the suite may stand where only root can read; nothing else is left of root's
# rights.
AS_NOBODY = (
    "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs",
    "--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search",
    "--bounding-set=-all,+dac_read_search",
)  # fmt: skip
WORKLOAD = """<workload name="w"><storage type="swift"/><workflow>
<workstage name="main"><work name="main" workers="2" runtime="30">
<operation type="read" ratio="100" config="cprefix=c;containers=c(1);objects=u(1,10)"/></work>
</workstage></workflow></workload>"""
# Each starts the command, which takes a second: `make test` tries some of each kind.
FINE = (
    "--help", "render rgw-haproxy", "status", "report A --no-charts",
    "charts A --only throughput-bars", "slides A --out t.pptx", "down --all",
    "topologies", "render swift", "export A --to json --out j", "sql SELECT+1 A",
    "compare-runs A A", "import-cosbench w.xml --size 64KB", "study --list",
)  # fmt: skip
WANT_ROOT = ("compare", "up swift", "baseline", "tune rgw-beast", "study swift-vs-rgw-read-2014")


def first(count: int, words: Sequence[str]) -> pytest.MarkDecorator:
    later = [pytest.param(one, marks=pytest.mark.test_all) for one in words[count:]]
    return pytest.mark.parametrize("words", [*words[:count], *later])


@pytest.fixture(scope="module")
def weighbridge(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """The command in a folder of nobody's own, with a run `A` and a workload file of COSBench."""
    folder = tmp_path_factory.mktemp("nobody")
    workload = WORKLOADS[0].model_copy(update={"workers": (1,), "runtime": 1.0})
    fake_run(folder, workloads=[workload], repeats=1).folder.rename(folder / "A")
    (folder / "w.xml").write_text(WORKLOAD)
    for path in (folder, *folder.rglob("*")):
        shutil.chown(path, NOBODY, NOBODY)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
    }

    def run(words: str) -> subprocess.CompletedProcess[str]:
        given = [word.replace("+", " ") for word in words.split()]
        argv = [*AS_NOBODY, sys.executable, "-m", "weighbridge", *given]
        return subprocess.run(
            argv,
            capture_output=True,
            text=True,
            cwd=folder,
            env=environment,
            timeout=600,
            check=False,
        )

    return run


@first(7, FINE)
def test_what_needs_no_root_is_done_without(
    weighbridge: Callable[..., subprocess.CompletedProcess[str]], words: str
) -> None:
    done = weighbridge(words)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_is_missing_is_said_to_be_root(
    weighbridge: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = weighbridge("doctor")
    assert done.returncode == 2, done.stdout + done.stderr
    assert "1 of" in done.stdout + done.stderr


@first(2, WANT_ROOT)
def test_what_needs_root_says_so_in_a_sentence_and_starts_nothing(
    weighbridge: Callable[..., subprocess.CompletedProcess[str]], words: str
) -> None:
    done = weighbridge(words)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "run it as root, or through sudo" in done.stderr
    assert "Traceback" not in done.stderr
