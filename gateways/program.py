"""Small programs of this suite that are put on hosts or run on the client host."""

from __future__ import annotations

import contextlib
import io
import json
import re
import subprocess
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from weighbridge.common.errors import CommandFailed
from weighbridge.common.paths import IMPORTED_FROM

if TYPE_CHECKING:
    # Small programs on hosts import this module, and start without pydantic.
    from weighbridge.common.endpoint import Endpoint
    from weighbridge.common.host import Host, PipedProcess

_FOLDER: Final = "/usr/local/lib/weighbridge"
_IMPORT: Final = re.compile(r"^from (weighbridge\.[a-z_.]+) import ", re.MULTILINE)


def ship(host: Host, module: str) -> tuple[str, ...]:
    """Put `module` on a host with everything it imports from this suite; returns the command to run
    it.

    Runs on the host's own Python, 3.9 or later, with what the host's image has.
    """
    texts = _with_imports(module)
    name = module.rpartition(".")[2]
    if len(texts) == 1:
        path = f"{_FOLDER}/{name}.py"
        host.put(path, texts[module])
    else:
        path = f"{_FOLDER}/{name}.pyz"
        host.put(path, _archive(module, texts))
    return ("python3", "-I", path)


def _with_imports(module: str) -> dict[str, str]:
    """The source of a module and of those that it imports from this suite, by name."""
    texts: dict[str, str] = {}
    wanted = [module]
    while wanted:
        name = wanted.pop()
        texts[name] = (IMPORTED_FROM / (name.replace(".", "/") + ".py")).read_text(encoding="utf-8")
        wanted += [one for one in _IMPORT.findall(texts[name]) if one not in texts]
    return texts


def _archive(module: str, texts: Mapping[str, str]) -> bytes:
    """An archive that Python runs as a program (PEP 441); its packages have only these modules."""
    files = {"__main__.py": texts[module]}
    for name, text in texts.items():
        if name != module:
            parts = name.split(".")
            files |= {
                f"{'/'.join(parts[:depth])}/__init__.py": "" for depth in range(1, len(parts))
            }
            files[f"{'/'.join(parts)}.py"] = text
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for path, text in files.items():
            archive.writestr(
                zipfile.ZipInfo(path), text
            )  # without a date: the same bytes each time
    return made.getvalue()


def end(process: PipedProcess, *, within_s: float = 5.0) -> None:
    """Stop a program by closing its stdin; it is killed if it has not ended within `within_s`.

    It may run behind another program (runc, ssh), so that killing that one would not end it.
    """
    if process.stdin is not None:
        with contextlib.suppress(BrokenPipeError):  # it ended before reading everything
            process.stdin.close()
    try:
        process.wait(within_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    finally:
        if process.stdout is not None:
            process.stdout.close()


# Run a small program of this room on a client host, with endpoints and their credentials.


def run_with_endpoints(
    client: Host,
    program: str,
    endpoints: Sequence[Endpoint],
    order: Mapping[str, Any],
    *,
    timeout_s: float,
) -> str:
    """The output of a program that reads `order` and the endpoints as JSON on stdin.

    Raises CommandFailed, with secrets removed from the output: Python's errors may repeat them.
    """
    given = {
        **order,
        "endpoints": [json.loads(endpoint.model_dump_json()) for endpoint in endpoints],
    }
    command = client.module(program)
    try:
        return client.run(
            command.argv, stdin=json.dumps(given), env=command.env, timeout_s=timeout_s
        ).stdout
    except CommandFailed as error:
        output = without_secrets(error.output, endpoints)
        raise CommandFailed(
            error.host, error.argv, error.code, output, advice=error.advice
        ) from None


def without_secrets(text: str, endpoints: Iterable[Endpoint]) -> str:
    """A text without the secrets of the endpoints."""
    from weighbridge.common.credential import redacted  # noqa: PLC0415 - it needs pydantic

    return redacted(text, (secret for endpoint in endpoints for secret in endpoint.secrets))
