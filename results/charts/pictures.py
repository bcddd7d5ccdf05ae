"""Pictures: a chart of any kind as PNG, SVG and PDF, beside it what it was drawn from and what it
says.

The fonts that ship are given to the renderer, so that a machine without them draws the same. A PDF
holds the letters that it shows; an SVG names the font and is drawn with what its reader has.

The library draws in a JavaScript engine, one chart at a time, and lets nothing else of its process
run meanwhile. So many charts are drawn in processes of their own, as many as there are CPUs. They
begin before the first chart is made, so that their engines start while charts are still being put
together.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any, Final

from weighbridge.common import inside
from weighbridge.common.errors import WeighbridgeError
from weighbridge.common.inert import inert_all
from weighbridge.common.record import Record
from weighbridge.results.charts.chart_theme import LIGHT, Look, font_folder
from weighbridge.results.charts.composer import compose
from weighbridge.results.charts.panels import Figure
from weighbridge.results.record.store import StoreError, make_folder, write_whole

MOST: Final = 4
"""Processes at most: each has an engine of its own in memory, about 150 MB."""
_CODE: Final = "from weighbridge.results.charts.drawing_process import serve; serve()"


class RenderingError(WeighbridgeError):
    """A chart could not be drawn: the fault is in its spec, or in the process that was to draw
    it.
    """


class Picture(Record):
    """A chart in all its formats."""

    svg: str
    png: bytes
    pdf: bytes


def draw(
    specs: Iterable[Mapping[str, Any]], fonts: str, *, at_most: int | None = None
) -> tuple[Picture, ...]:
    """Pictures of Vega-Lite specs, in their order, with these fonts. Specs are taken one by one
    while others are being drawn.

    `at_most` so many processes are used; by itself, as many as there are CPUs, up to MOST. None of
    them is left, however it ends. Raises RenderingError, and what taking the specs raises.
    """
    count = at_most or min(MOST, len(os.sched_getaffinity(0)))
    waiting: SimpleQueue[tuple[str, Future[Picture]] | None] = SimpleQueue()
    made: list[Future[Picture]] = []
    processes: list[subprocess.Popen[str]] = []
    with (
        tempfile.TemporaryFile() as told,
        ThreadPoolExecutor(max_workers=count, thread_name_prefix="drawing") as threads,
    ):
        try:
            for _ in range(count):
                _begin(processes, threads, fonts, told, waiting)
            for spec in specs:
                made.append(Future())
                waiting.put((json.dumps(inert_all(spec)), made[-1]))
            for _ in processes:
                waiting.put(None)
            return tuple(one.result() for one in made)
        except _Ended as error:
            raise RenderingError(
                f"a process that draws charts ended by itself{_last_words(told)}"
            ) from error
        finally:
            for process in processes:
                process.kill()
            for _ in processes:
                waiting.put(None)
            for process in processes:
                process.communicate()


class _Ended(Exception):
    """A process is no more."""


def _begin(
    processes: list[subprocess.Popen[str]],
    threads: ThreadPoolExecutor,
    fonts: str,
    told: IO[bytes],
    waiting: SimpleQueue[tuple[str, Future[Picture]] | None],
) -> None:
    """Start one more process and the thread that serves it.

    Raises RenderingError where this machine has no room for them.
    """
    try:
        processes.append(_start(fonts, told))
        threads.submit(_serve, processes[-1], waiting)
    except (OSError, RuntimeError) as error:  # what Python raises where no thread can be started
        raise RenderingError(f"no process that draws charts can be started: {error}") from error


def _start(fonts: str, told: IO[bytes]) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.Popen(
        [sys.executable, "-c", _CODE, fonts],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=told,
        text=True,
        encoding="utf-8",
        env=environment,
    )


def _serve(
    process: subprocess.Popen[str], waiting: SimpleQueue[tuple[str, Future[Picture]] | None]
) -> None:
    """Give one process a spec after the other, and each future its picture or what went wrong."""
    assert process.stdin is not None  # noqa: S101 - both are pipes
    assert process.stdout is not None  # noqa: S101
    while (job := waiting.get()) is not None:
        spec, future = job
        try:
            process.stdin.write(spec + "\n")
            process.stdin.flush()
            found = json.loads(process.stdout.readline())
        except (OSError, ValueError):
            future.set_exception(_Ended())
            continue
        if "error" in found:
            future.set_exception(RenderingError(f"a chart cannot be drawn: {found['error']}"))
        else:
            future.set_result(
                Picture(svg=found["svg"], png=b64decode(found["png"]), pdf=b64decode(found["pdf"]))
            )


def _last_words(told: IO[bytes]) -> str:
    """What the processes said last, if anything."""
    told.seek(0)
    lines = told.read().decode("utf-8", "replace").strip().splitlines()
    return f": {lines[-1]}" if lines else ""


def write_charts(figures: Sequence[Figure], folder: Path, look: Look = LIGHT) -> tuple[Path, ...]:
    """Write each figure as PNG (2x), SVG, PDF and CSV into a folder, which is made.

    Raises RenderingError or StoreError.
    """
    make_folder(folder.parent)
    try:
        inside.make_folder(
            folder.parent, folder.name
        )  # which is an error where it is a link to somebody's folder
    except OSError as error:
        raise StoreError(folder, error) from error
    pictures = draw((compose(figure, look) for figure in figures), font_folder()) if figures else ()
    written = []
    for figure, picture in zip(figures, pictures, strict=True):
        contents: dict[str, str | bytes] = {
            "png": picture.png,
            "svg": picture.svg,
            "pdf": picture.pdf,
            "csv": figure.csv,
            "txt": f"{figure.finding}\n{figure.caption}\n",
        }
        for ending, content in contents.items():
            path = folder / f"{figure.name}.{ending}"
            write_whole(path, content, folder=folder)
            written.append(path)
    return tuple(written)
