"""Draws charts as PNG, SVG and PDF, and writes them with their data and captions.

The shipped fonts are given to the renderer, so every machine draws the same. A PDF embeds the
glyphs that it shows; an SVG names the font and is drawn with what its reader has.

The library draws in a JavaScript engine, one chart at a time, and blocks its process meanwhile. So
charts are drawn in several processes, up to one per CPU. They start before the first chart is
composed, so that their engines load meanwhile.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any, Final

from weighbridge.common import safe_files
from weighbridge.common.errors import WeighbridgeError, need
from weighbridge.common.escaping import escape_all_controls
from weighbridge.common.host import PYTHON, program_environment
from weighbridge.common.program_lines import NoLine, ProgramLines
from weighbridge.common.record import Record
from weighbridge.results.run.reading import StoreError, make_folder, write_atomically
from weighbridge.results.show.chart import Chart, PictureStyle, Spec
from weighbridge.results.show.scales import LIGHT, Look, font_folder

DRAWING: Final = "vl_convert"
"""The module that draws charts, here and in pages."""
MOST: Final = 4
"""The most processes: each has its own engine, about 150 MB of memory."""
_DRAWN_WITHIN_S: Final = 300.0
"""For one chart: far longer than any takes on a busy machine, and not for ever."""
_LONGEST_ANSWER_BYTES: Final = 256 * 2**20
_CODE: Final = "from weighbridge.results.show.drawing_process import serve; serve()"


class RenderingError(WeighbridgeError):
    """A chart could not be drawn: its spec is wrong, or the process that draws it failed."""


class Picture(Record):
    """A chart in all formats."""

    svg: str
    png: bytes
    pdf: bytes


Jobs = SimpleQueue[tuple[str, Future[Picture]] | None]


def draw(specs: Iterable[Mapping[str, Any]]) -> tuple[Picture, ...]:
    """Draw Vega-Lite specs with the shipped fonts, and return the pictures in order.

    Specs are taken one by one while others are being drawn, by as many processes as there are CPUs,
    up to MOST. All have ended when this returns or raises. Raises RenderingError, and what taking
    the specs raises.
    """
    count = min(MOST, len(os.sched_getaffinity(0)))
    jobs: Jobs = SimpleQueue()
    futures: list[Future[Picture]] = []
    processes: list[subprocess.Popen[bytes]] = []
    with (
        tempfile.TemporaryFile() as log,
        ThreadPoolExecutor(max_workers=count, thread_name_prefix="drawing") as threads,
    ):
        try:
            for _ in range(count):
                _add_process(processes, threads, log, jobs)
            for spec in specs:
                futures.append(Future())
                jobs.put((json.dumps(escape_all_controls(spec)), futures[-1]))
            for _ in processes:
                jobs.put(None)
            return tuple(future.result() for future in futures)
        except _Ended as error:
            raise RenderingError(
                f"a process that draws charts ended early{_last_line(log)}"
            ) from error
        finally:
            for process in processes:
                process.kill()
            for _ in processes:
                jobs.put(None)
            for process in processes:
                process.communicate()


class _Ended(Exception):
    """A drawing process ended early."""


def _add_process(
    processes: list[subprocess.Popen[bytes]],
    threads: ThreadPoolExecutor,
    log: IO[bytes],
    jobs: Jobs,
) -> None:
    """Start a process and the thread that serves it. Raises RenderingError without room."""
    folders = os.pathsep.join(path for path in sys.path if path)
    try:
        process = subprocess.Popen(
            [*PYTHON, "-c", _CODE, font_folder()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env={**program_environment(), "PYTHONPATH": folders},
        )
        processes.append(process)
        threads.submit(_serve, process, jobs)
    except (OSError, RuntimeError) as error:  # what Python raises where no thread can be started
        raise RenderingError(f"no process that draws charts can be started: {error}") from error


def _serve(process: subprocess.Popen[bytes], jobs: Jobs) -> None:
    """Send specs to one process, one at a time, and set each future's picture or error."""
    lines = ProgramLines(process, longest_bytes=_LONGEST_ANSWER_BYTES)
    while (job := jobs.get()) is not None:
        spec, future = job
        try:
            lines.send(spec, _DRAWN_WITHIN_S)
            answer = json.loads(lines.next(_DRAWN_WITHIN_S))
        except (NoLine, ValueError):
            future.set_exception(_Ended())
            continue
        if "error" in answer:
            future.set_exception(RenderingError(f"a chart cannot be drawn: {answer['error']}"))
        else:
            future.set_result(
                Picture(
                    svg=answer["svg"], png=b64decode(answer["png"]), pdf=b64decode(answer["pdf"])
                )
            )


def _last_line(log: IO[bytes]) -> str:
    log.seek(0)
    lines = log.read().decode("utf-8", "replace").strip().splitlines()
    return f": {lines[-1]}" if lines else ""


def write_charts(
    charts: Sequence[Chart], folder: Path, look: Look = LIGHT, style: PictureStyle | None = None
) -> tuple[Path, ...]:
    """Write each chart as PNG, SVG and PDF, with its CSV and TXT, into a folder, which is created.

    Raises RenderingError, StoreError, or MissingPrerequisite without the extra `report`.
    """
    need(DRAWING)
    make_folder(folder.parent)
    try:
        # An error where it is a link to a folder elsewhere.
        safe_files.make_folder(folder.parent, folder.name)
    except OSError as error:
        raise StoreError(folder, error) from error
    names: list[str] = []

    def specs() -> Iterator[Spec]:
        for chart in charts:
            for name, spec in chart.pictures(look, style):
                names.append(name)
                yield spec

    pictures = draw(specs()) if charts else ()
    contents: dict[str, str | bytes] = {}
    for name, picture in zip(names, pictures, strict=True):
        contents |= {
            f"{name}.png": picture.png,
            f"{name}.svg": picture.svg,
            f"{name}.pdf": picture.pdf,
        }
    for chart in charts:
        contents |= {f"{chart.key}.csv": chart.csv, f"{chart.key}.txt": chart.text}
    for name, content in contents.items():
        write_atomically(folder / name, content, folder=folder)
    return tuple(folder / name for name in contents)
