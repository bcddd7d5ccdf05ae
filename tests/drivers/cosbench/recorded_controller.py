"""COSBench's controller as recorded: accepts workloads by HTTP, ends them at once, and archives
recorded results.

A recording is cut to the submitted stages: they get the figures of the recorded ones.
"""

from __future__ import annotations

import gzip
import lzma
import re
import threading
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from http_stub import Request, Response, Server

DATA = Path(__file__).parents[2] / "data" / "cosbench"


@dataclass(frozen=True)
class Take:
    """The recording for a workload; `stages` are the recorded ones in the order of submission."""

    folder: str
    stages: Sequence[str]
    state: str
    looks: int = 2
    """How often it is reported as running before it has ended; -1: it never ends by itself."""


PREPARED = Take("jdk8/w35-mock-stepped", ["s1-init", "s2-prepare"], "FINISHED")
STEPPED = Take("jdk8/w35-mock-stepped", ["s4-main-w2"], "FINISHED")
UNKNOWN_STORAGE = Take("jdk8/w39-unknown-storage", ["s1-m", "s2-m2"], "TERMINATED")


def text_of(path: Path) -> str:
    """A recorded file, packed or not; "" when it does not exist."""
    for packed, opened in (
        (path, Path.open),
        (Path(f"{path}.xz"), lzma.open),
        (Path(f"{path}.gz"), gzip.open),
    ):
        if packed.exists():
            with opened(packed, "rb") as file:
                return bytes(file.read()).decode()
    return ""


def recorded(folder: str, kind: str = "") -> str:
    """A recorded summary, or its log, or another of its CSV files."""
    name = Path(folder).name
    return text_of(DATA / folder / ("workload.log" if kind == "log" else f"{name}{kind}.csv"))


@dataclass
class Workload:
    id: str
    name: str
    text: str
    stages: list[str]
    take: Take
    submitted: datetime
    looks: int
    state: str = "PROCESSING"

    @property
    def line(self) -> str:
        return f"{self.id}\t{self.submitted:%a %b %d %H:%M:%S UTC %Y}\t{self.state}"


@dataclass
class Recorded:
    """A controller and its archive, which a test can change."""

    root: Path
    prepare: Take = PREPARED
    step: Take = STEPPED
    by_workload: Mapping[str, Take] = field(default_factory=dict)
    """Results of steps of workloads with these words in their names."""
    first_id: int = 1
    users: Mapping[str, str] = field(default_factory=dict)
    refusal: str = ""
    """The answer to every submission."""
    archives_after_s: float = 0.3
    """A workload is reported as ended before its archive exists."""
    forgets: bool = False
    """It was restarted: it does not know its workloads any more."""
    url: str = ""
    workloads: dict[str, Workload] = field(default_factory=dict)
    cancelled: list[str] = field(default_factory=list)
    asked: threading.Event = field(default_factory=threading.Event)
    """Set when a workload that never ends by itself was polled."""
    drivers: str = "driver1\thttp://127.0.0.1:18088/driver\n"
    writers: list[threading.Thread] = field(default_factory=list)

    @property
    def archive(self) -> Path:
        return self.root / "archive"

    def submit(self, text: str) -> str:
        number = f"w{self.first_id + len(self.workloads)}"
        root = ET.fromstring(text)
        stages = [
            f"s{index}-{stage.get('name')}" for index, stage in enumerate(root.iter("workstage"), 1)
        ]
        preparing = any(work.get("type") == "init" for work in root.iter("work"))
        named = [
            take for word, take in self.by_workload.items() if f"-{word}-" in root.get("name", "")
        ]
        take = self.prepare if preparing else [*named, self.step][0]
        now = datetime.now(UTC).replace(microsecond=0, tzinfo=None)
        self.workloads[number] = Workload(
            number, root.get("name", ""), text, stages, take, now, take.looks
        )
        return f"Accepted with ID: {number}"

    def index(self) -> str:
        active = []
        for one in self.workloads.values():
            if one.state == "PROCESSING":
                if one.looks == 0:
                    self.end(one, one.take.state)
                    continue
                one.looks -= one.looks > 0
                self.asked.set()
                active.append(f"{one.line}\t{one.stages[-1]}\n")
        count = self.drivers.count("\n")
        drivers = f"Drivers:\n{self.drivers}Total: {count} drivers\n\n"
        return (
            f"{drivers}Active Workloads:\n{''.join(active)}Total: {len(active)} active workloads\n"
        )

    def end(self, one: Workload, state: str) -> None:
        one.state = state
        writer = threading.Thread(target=self._archive, args=(one,))
        self.writers.append(writer)
        writer.start()

    def answer(
        self,
        action: str,
        query: Mapping[str, list[str]],
        form: Mapping[str, list[str]],
        script: str | None,
    ) -> str:
        user = {**query, **({} if action == "submit" else form)}
        if self.users:
            if "username" not in user:
                return ""
            if self.users.get(user["username"][0]) != user.get("password", [""])[0]:
                return "User info [username:password] incorrect !"
        if action == "submit":
            return self.refusal or ("Bad Request" if script is None else self.submit(script))
        if action == "index":
            return self.index()
        one = self.workloads.get({**query, **form}.get("id", [""])[0])
        if one is None or self.forgets:
            return "Not Found"
        if action == "cancel" and one.state == "PROCESSING":
            self.cancelled.append(one.id)
            self.end(one, "CANCELLED")
        return f"{one.line}\n"

    def _archive(self, one: Workload) -> None:
        """In COSBench's order: history, summary, histogram, stages, log, and scripts.log."""
        time.sleep(self.archives_after_s)
        self.archive.mkdir(parents=True, exist_ok=True)
        when = f"{one.submitted:%Y-%m-%d %H:%M:%S}"
        with (self.archive / "run-history.csv").open("a") as history:
            history.write(f"{one.id},{one.name},{when},,,read,{one.state.lower()},queuing @ then\n")
        folder = self.archive / f"{one.id}-{one.name}"
        folder.mkdir()
        name = f"{one.id}-{one.name}"
        renamed = dict(zip(one.take.stages, one.stages, strict=False))
        (folder / f"{name}.csv").write_text(_summary(recorded(one.take.folder), renamed))
        (folder / f"{name}-rt-histogram.csv").write_text(
            _histogram(recorded(one.take.folder, "-rt-histogram"), renamed)
        )
        (folder / "workload-config.xml").write_text(one.text)
        (folder / "workload.log").write_text(_log(recorded(one.take.folder, "log"), renamed))
        self._log(one)
        (folder / "scripts.log").write_text("")

    def _log(self, one: Workload) -> None:
        """The recorded system.log of the recorded workload, with the id of this one."""
        recorded_id = Path(one.take.folder).name.partition("-")[0]
        log = text_of(DATA / Path(one.take.folder).parent / "system.log")
        _, start, rest = log.rpartition(f"begin to process workload {recorded_id}\n")
        part = start + re.split(r".* - begin to process workload ", rest)[0]
        part = re.sub(rf"\b{recorded_id}\b", one.id, part)
        (self.root / "log").mkdir(exist_ok=True)
        with (self.root / "log" / "system.log").open("a") as system_log:
            system_log.write(
                f"2026-11-21 00:00:00,000 [INFO] [WorkloadProcessor] - {part}" if part else ""
            )


def _summary(text: str, renamed: Mapping[str, str]) -> str:
    """Rows of the submitted stages. A stage without figures is listed without its number."""
    bare = {old.partition("-")[2]: new.partition("-")[2] for old, new in renamed.items()}
    head, *lines = text.splitlines()
    kept = [head]
    for line in lines:
        stage, rest = line.split(",", 1)
        names = renamed if stage in renamed else bare if rest.startswith("N/A") else {}
        kept += [f"{names[stage]},{rest}"] if stage in names else []
    return "".join(f"{line}\n" for line in kept)


def _histogram(text: str, renamed: Mapping[str, str]) -> str:
    rows = [line.split(",") for line in text.splitlines()] or [["ResTime"]]
    columns, head = [0], ["ResTime"]
    for number, name in enumerate(rows[0]):
        for old, new in renamed.items():
            if name.startswith(f"{old}-w1-"):
                columns += [number, number + 1]
                head += [f"{new}-w1-main-{name.rsplit('-', 1)[1]}", "(%)"]
    return "".join(
        f"{','.join(row)}\n"
        for row in [head, *([row[number] for number in columns] for row in rows[1:])]
    )


def _log(text: str, renamed: Mapping[str, str]) -> str:
    for old, new in renamed.items():
        text = text.replace(f" stage: {old} ", f" stage: {new} ")
    return text


def _answered(controller: Recorded, request: Request) -> Response:
    action = re.fullmatch(r"/controller/cli/(\w+)\.action", request.path)
    if action is None:
        page = b"<html><head><title>Apache Tomcat/6.0.16 - Error report</title></head></html>"
        return Response(404, page)
    script, form = None, {}
    if request.headers.get("content-type", "").startswith("multipart/form-data"):
        script = request.form["config"].decode()
    else:
        form = parse_qs(request.body.decode(), keep_blank_values=True)
    query = parse_qs(urlsplit(request.target).query, keep_blank_values=True)
    return Response(200, controller.answer(action[1], query, form, script).encode())


@contextmanager
def recorded_controller(root: Path) -> Iterator[Recorded]:
    """A controller on loopback with an archive below `root`."""
    controller = Recorded(root)
    controller.archive.mkdir(parents=True)
    with Server(partial(_answered, controller)).serving() as server:
        controller.url = f"{server.url}/controller"
        try:
            yield controller
        finally:
            for writer in controller.writers:
                writer.join()
