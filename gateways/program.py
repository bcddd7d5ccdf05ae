"""Small programs of this suite that are put on hosts or run on the client host."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from weighbridge.common.credential import redacted
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import CommandFailed
from weighbridge.common.host import Host
from weighbridge.common.paths import IMPORTED_FROM

_FOLDER: Final = "/usr/local/lib/weighbridge"
_IMPORT: Final = re.compile(r"^from (weighbridge\.[a-z_.]+) import ", re.MULTILINE)


def ship(host: Host, module: str) -> tuple[str, ...]:
    """Put `module` on a host with what it imports from here; the command for Python 3.9."""
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
    env = {**client.variables(endpoints), **command.env}
    try:
        return client.run(
            command.argv, stdin=json.dumps(given), env=env, timeout_s=timeout_s
        ).stdout
    except CommandFailed as error:
        output = without_secrets(error.output, endpoints)
        raise CommandFailed(
            error.host, error.argv, error.code, output, advice=error.advice
        ) from None


def without_secrets(text: str, endpoints: Iterable[Endpoint]) -> str:
    """A text without the secrets of the endpoints."""
    return redacted(text, (secret for endpoint in endpoints for secret in endpoint.secrets))
