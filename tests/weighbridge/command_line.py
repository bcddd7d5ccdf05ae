"""For tests: the command as its own process, and a null target."""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from weighbridge import run as _run  # noqa: F401 - most verbs need it: imported once, not in each fork
from weighbridge.cli import compare, deployments, stores  # noqa: F401
from weighbridge.command import main
from weighbridge.results import derivation  # noqa: F401
from weighbridge.results.show import page

KEY = "a-planted-secret"
"""Of the user `weigh:er` of null targets."""
DELAY_MS = 40
"""What a null target may take, so that a client's own time is little beside it, on a busy machine
too: a step is judged invalid where it is not.
"""


def existing(name: str, **settings: str) -> str:
    """A layout of a gateway that already runs, with these settings as YAML."""
    head = f"name: {name}\nabout: Runs already\ngateway: existing\nrelease: any\nplace: {{}}\n"
    return head + "".join(["settings:\n", *(f"  {key}: {of}\n" for key, of in settings.items())])


def s3_at(url: str, more: str = "") -> str:
    return f'{{url: "{url}", credentials: environment{more}}}'


def swift_at(url: str, more: str = "") -> str:
    """With the storage URL, which a tool that does not authenticate by itself needs."""
    return f'{{auth_url: "{url}/auth/v1.0", storage_url: "{url}/v1/AUTH_test"{more}}}'


def trial(api: str, operations: str = "{read: 1}", *, more: str = "", **workload: object) -> str:
    """A suite of one workload, as short as it can be; `more`: other keys of the suite."""
    wanted = {
        "name": "small",
        "objects": "{size: 4KiB, containers: 1, per_container: 8}",
        "operations": operations,
        "workers": "[2]",
        "runtime": "1s",
        "warmup": "0s",
        **workload,
    }
    lines = "\n    ".join(f"{key}: {of}" for key, of in wanted.items())
    return f"name: trial\nabout: A trial\napi: [{api}]\n{more}workloads:\n  - {lines}\n"


def command(*words: str | Path) -> list[str]:
    return [sys.executable, "-m", "weighbridge", *map(str, words)]


def environment(folder: Path, **more: str) -> dict[str, str]:
    """This process's environment, with the command's folders below `folder`."""
    home, state = str(folder / "home"), str(folder / "state")
    return {**os.environ, "WEIGHBRIDGE_HOME": home, "WEIGHBRIDGE_STATE": state, **more}


def keys(key: str = KEY) -> dict[str, str]:
    return {
        "AWS_ACCESS_KEY_ID": "weigh:er",
        "AWS_SECRET_ACCESS_KEY": key,
        "ST_USER": "weigh:er",
        "ST_KEY": key,
    }


@functools.cache
def compile_templates() -> None:
    """Compile those of pages, which most verbs write, once, and not in each fork."""
    templates = page.environment()
    for name in templates.list_templates():
        templates.get_template(name)


def encoding_of(env: Mapping[str, str]) -> str:
    return env.get("PYTHONIOENCODING", "utf-8")


def _forked(
    words: tuple[str | Path, ...],
    env: Mapping[str, str],
    stdout: IO[bytes],
    stderr: IO[bytes],
    cwd: Path | None,
) -> int:
    """The pid of the command in a fork of this process: it has imported everything already."""
    compile_templates()
    if child := os.fork():
        return child
    code = 70
    try:
        signal.alarm(600)
        for one in (signal.SIGINT, signal.SIGTERM):
            signal.signal(
                one, signal.default_int_handler if one == signal.SIGINT else signal.SIG_DFL
            )
        nothing = os.open(os.devnull, os.O_RDONLY)
        for number, file in enumerate((nothing, stdout.fileno(), stderr.fileno())):
            os.dup2(file, number)
        sys.stdout, sys.stderr = (
            os.fdopen(number, "w", encoding=encoding_of(env), closefd=False) for number in (1, 2)
        )
        if cwd is not None:
            os.chdir(cwd)
        variables = dict(env)
        os.environ.clear()
        os.environ.update(variables)
        sys.argv = ["weighbridge", *map(str, words)]
        main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 70
    except BaseException:  # noqa: BLE001 - nothing of the test may run in the fork
        traceback.print_exc()
    finally:
        for printed in (sys.stdout, sys.stderr):
            if printed is not None:
                printed.flush()
        os._exit(code)


def run(
    *words: str | Path, env: Mapping[str, str], cwd: Path | None = None, code: int | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own, with this process's modules and patches; `code`: it
    has to end with this one.
    """
    with TemporaryFile() as out, TemporaryFile() as err:
        status = os.waitpid(_forked(words, env, out, err, cwd), 0)[1]
        printed = []
        for file in (out, err):
            file.seek(0)
            printed.append(file.read().decode(encoding_of(env)))
    ended = os.waitstatus_to_exitcode(status)
    assert code in (None, ended), (ended, *printed)
    return subprocess.CompletedProcess(words, ended, *printed)


def weighbridge(
    *words: str | Path, folder: Path, code: int | None = None, **more: str
) -> subprocess.CompletedProcess[str]:
    return run(*words, env=environment(folder, **more), code=code)


@contextmanager
def started(*words: str | Path, env: Mapping[str, str]) -> Iterator[subprocess.Popen[str]]:
    """The command as a program, which is killed at the end."""
    argv = command(*words)
    pipe = subprocess.PIPE
    with subprocess.Popen(
        argv, stdout=pipe, stderr=subprocess.STDOUT, text=True, env=env
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def null_target(*words: str, key: str = KEY) -> Iterator[str]:
    """The URL of a null target of the user `weigh:er`."""
    own = ("null-target", "--port", "0", "--user", "weigh:er", *words)
    reading, writing = os.pipe()
    with os.fdopen(reading) as said, os.fdopen(writing, "wb") as out, TemporaryFile() as err:
        child = _forked(own, {**os.environ, "WEIGHBRIDGE_NULL_KEY": key}, out, err, None)
        out.close()
        try:
            yield json.loads(said.readline())["listening"]
        finally:
            os.kill(child, signal.SIGTERM)
            os.waitpid(child, 0)


def read_until(stdout: IO[str] | None, words: str) -> str:
    """What a command printed until it printed `words`."""
    assert stdout is not None
    said = ""
    while words not in said:
        said += (line := stdout.readline())
        assert line, said
    return said
