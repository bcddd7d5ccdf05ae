"""One line compares endpoints that already run: null targets of this machine, by nobody in
particular, from any folder.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from secret_search import find_secrets, secrets_in
from tests.weighbridge.command_line import DELAY_MS, KEY, null_target
from weighbridge.results.record.store import RunStore

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
NOBODY = 65534
# As in tests/system/test_unprivileged.py: only root may be able to read the interpreter's folder.
AS_NOBODY = (
    "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs",
    "--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search",
    "--bounding-set=-all,+dac_read_search",
)  # fmt: skip
SHORT = ("--workers", "2", "--duration", "1s", "--no-charts")


class Nobody:
    """A user without rights, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if os.geteuid() == 0:
            shutil.chown(folder, NOBODY, NOBODY)

    def __call__(self, *words: str | Path, **keys: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "weighbridge", *map(str, words)]
        return subprocess.run(
            [*(AS_NOBODY if os.geteuid() == 0 else ()), *argv],
            capture_output=True,
            text=True,
            cwd=self.folder,
            env={
                "PATH": os.environ["PATH"],
                **({} if "HOME" in keys else {"HOME": str(self.folder)}),
                "PYTHONPATH": str(ROOT),
                "PYTHONDONTWRITEBYTECODE": "1",
                **{name: value for name, value in keys.items() if value},
            },
            timeout=300,
            check=False,
        )


@pytest.fixture(scope="module")
def targets() -> Iterator[tuple[str, str]]:
    with ExitStack() as stack:
        yield (
            stack.enter_context(null_target("--delay-ms", str(DELAY_MS))),
            stack.enter_context(null_target("--delay-ms", str(DELAY_MS * 2))),
        )


@pytest.fixture
def nobody(tmp_path_factory: pytest.TempPathFactory) -> Nobody:
    folder = tmp_path_factory.mktemp("nobody")
    folder.parent.chmod(0o755)
    return Nobody(folder)


def test_two_s3_endpoints_are_compared_by_one_line_without_root_and_without_files(
    nobody: Nobody, targets: tuple[str, str]
) -> None:
    keys = {"AWS_ACCESS_KEY_ID": "weigh:er", "AWS_SECRET_ACCESS_KEY": KEY}
    line = ("compare", "--s3", f"fast={targets[0]}", "--s3", f"slow={targets[1]}")
    done = nobody(*line, *SHORT, **keys)
    assert done.returncode == 0, done.stdout + done.stderr
    (run,) = (nobody.folder / "runs").iterdir()
    steps = RunStore.open(run).steps()
    assert {(step.key.layout, step.key.workload, step.key.workers) for step in steps} == {
        (layout, workload, 2)
        for layout in ("fast", "slow")
        for workload in ("read-64kb", "write-64kb")
    }
    for step in steps:
        assert step.measurement is not None, step.notes
        assert not any(tally.errors for tally in step.measurement.tallies)
    secrets = {"the key": KEY}
    assert secrets_in((done.stdout + done.stderr).encode(), secrets) == []
    assert find_secrets(nobody.folder, secrets) == []

    # The last step is lost: the line is not needed to resume, but its keys are.
    lines = (run / "steps.jsonl").read_text().splitlines(keepends=True)
    (run / "steps.jsonl").write_text("".join(lines[:-1]))
    manifest = (run / "manifest.json").read_text()
    (run / "manifest.json").write_text(manifest.replace('"state": "done"', '"state": "running"'))
    place = run.relative_to(nobody.folder)
    keyless = nobody("resume", "--no-charts", place)
    assert keyless.returncode == 2
    assert "not set: $AWS_ACCESS_KEY_ID, $AWS_SECRET_ACCESS_KEY" in keyless.stderr
    resumed = nobody("resume", "--no-charts", place, **keys)
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    assert len(RunStore.open(run).steps()) == len(steps)


def test_an_endpoint_of_swift_is_measured_over_both_apis_with_keys_from_files_and_environment(
    nobody: Nobody, targets: tuple[str, str]
) -> None:
    aws = nobody.folder / ".aws"
    aws.mkdir()
    text = f"[theirs]\naws_access_key_id = weigh:er\naws_secret_access_key = {KEY}\n"
    (aws / "credentials").write_text(text)
    (aws / "credentials").chmod(0o600)
    if os.geteuid() == 0:
        shutil.chown(aws / "credentials", NOBODY, NOBODY)
    ends = ("--s3", f"one={targets[0]}", "--swift", f"one={targets[0]}/auth/v1.0")
    size = ("--sizes", "4k", "--mix", "read", "--profile", "one=theirs")
    plain = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "TMPDIR": "/nonexistent"}
    keys = {"ST_USER": "weigh:er", "ST_KEY": KEY}
    done = nobody("compare", *ends, *size, *SHORT, "--out", "there", **keys, **plain)
    assert done.returncode == 0, done.stdout + done.stderr
    (run,) = (nobody.folder / "there").iterdir()
    found = {(one.key.api, one.key.workload) for one in RunStore.open(run).steps()}
    assert found == {("s3", "read-4kb"), ("swift", "read-4kb")}


def test_a_dry_run_says_how_long_it_takes_and_what_it_can_claim_and_needs_no_keys(
    nobody: Nobody,
) -> None:
    done = nobody(
        "compare", "--s3", "a=https://a.example", "--s3", "b=https://b.example", "--sizes",
        "64k,8M", "--mix", "read,write", "--workers", "1,16", "--duration", "30s", "--dry-run",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for words in (
        "S3 at https://b.example",
        "write-8mb",
        "1 repeat on this-machine: 2 visits, 16 steps, about 1",
        "n = 1: no difference can be claimed, which needs 5 repeats",
    ):
        assert words in done.stdout
    assert list(nobody.folder.iterdir()) == []


def test_a_profile_without_s3_is_refused_with_the_option_for_stacks(nobody: Nobody) -> None:
    done = nobody("compare", "--profile", "small-read:16")
    assert done.returncode == 2
    assert "--perf WORKLOAD:WORKERS" in done.stderr


@pytest.mark.parametrize(
    "environment",
    [
        {"HOME": ""},
        pytest.param(
            {"HOME": "/nonexistent", "TMPDIR": "/nonexistent"}, marks=pytest.mark.test_all
        ),
        pytest.param(
            {"HOME": "/proc/1/root", "PYTHONIOENCODING": "latin-1"}, marks=pytest.mark.test_all
        ),
        {"HOME": "/nonexistent", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
    ],
)
def test_a_user_without_a_folder_is_told_in_a_sentence_what_to_set(
    nobody: Nobody, environment: dict[str, str]
) -> None:
    done = nobody("compare", "--s3", "a=http://127.0.0.1:1", **environment)
    assert done.returncode == 2
    assert "Set WEIGHBRIDGE_HOME to a folder that this user can write to." in done.stderr
    assert "Traceback" not in done.stderr
