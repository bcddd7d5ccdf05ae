"""An unpacked COSBench, run by us: controller and driver, or a driver alone, in a folder of their
own and ended on every path.

Nothing is written into the installation. The folder links its jars, has a copy of its
configuration, and takes archive and logs. COSBench as it ships listens on every address, lets
whoever asks run scripts, and sets the machine's clock before every stage; here both listen on one
address, have no OSGi console, and cannot set a clock: they lack the right, and find a `date` that
does nothing.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from weighbridge.common.errors import DriverError, UsageError
from weighbridge.drivers.cosbench import installation_java, installation_start
from weighbridge.drivers.cosbench.installation_java import Java

STUCK = re.compile(rb"Bundle \S+ .{0,80}is not active")
"""What Equinox says when the starts of bundles overtook one another, as on a machine with much else
to do.
"""

START_S = 180.0
"""How long both may take until they answer: 3 s on an idle machine, a minute on a host with a share
of one CPU.
"""

END_S = 10.0
"""How long they may take to end by SIGTERM."""

TAIL_LINES = 15

PORTS = {"driver": 18088, "controller": 19088}
"""COSBench's own; others are taken where these are not free."""

PARTS = (
    "main",
    "osgi",
    "conf/.driver/config.ini",
    "conf/.controller/config.ini",
    "conf/driver-tomcat-server.xml",
    "conf/controller-tomcat-server.xml",
)
"""What an unpacked COSBench has, as far as it is used here."""

WANTED = (
    "Name the folder of COSBench 0.4.2 that holds main/, osgi/ and conf/. It must not be below "
    "/tmp, /run or /var/log where the "
    "hosts are a lab's: client hosts have their own."
)

CONTROLLER_CONF = """[controller]
drivers = {count}
log_level = INFO
log_file = log/system.log
archive_dir = archive
"""
CONTROLLERS_DRIVER = """
[driver{number}]
name = driver{number}
url = {url}
"""

Told = Callable[[str], None]
"""Told in a line what is being done, for people."""


def check(home: Path) -> Java:
    """See that `home` is an unpacked COSBench and that there is a Java for it.

    Raises UsageError or MissingMeans.
    """
    missing = [part for part in PARTS if not (home / part).exists()]
    if missing:
        raise UsageError(
            f"{home} is no unpacked COSBench: there is no {', no '.join(missing)}",
            advice=WANTED,
        )
    _framework(home)
    return installation_java.find()


class Installation:
    """A COSBench that runs from entering to leaving. For one thread: when the thread that entered
    it ends, so does COSBench.

    `parts` are what of it runs; the controller has work done by the driver beside it and by
    `others`, drivers by their URLs. `home` is the unpacked COSBench, `address` all that it listens
    on, `folder` where it writes (it must not be there or be empty), `log` is told in lines what is
    done. Heaps are bounded by `heap_mib` (driver) and `controller_heap_mib`. Entering raises
    UsageError, MissingMeans, or DriverError with the last lines of a JVM that did not come up.
    """

    def __init__(
        self,
        home: Path,
        address: str,
        folder: Path,
        log: Told,
        *,
        parts: Sequence[str] = tuple(PORTS),
        others: Sequence[str] = (),
        heap_mib: int = 384,
        controller_heap_mib: int = 192,
        start_s: float = START_S,
    ) -> None:
        self.home = home.absolute()
        self.address = address
        self.folder = folder.absolute()
        self.log = log
        self.heaps_mib = {"driver": heap_mib, "controller": controller_heap_mib}
        self.start_s = start_s
        self.parts = tuple(parts)
        self.others = tuple(others)
        self.ports: dict[str, int] = {}
        self._jvms: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def controller(self) -> str:
        """Where the controller answers."""
        return self._url("controller")

    @property
    def driver(self) -> str:
        """Where the driver answers."""
        return self._url("driver")

    @property
    def archive(self) -> Path:
        """Where results are put."""
        return self.folder / "archive"

    @property
    def system_log(self) -> Path:
        """The one log of the controller, with the reasons of what was terminated; the driver writes
        there as well.
        """
        return self.folder / "log" / "system.log"

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def check(self) -> None:
        """See that both still run. Raises DriverError with the last lines of one that does not."""
        for name, jvm in self._jvms.items():
            if jvm.poll() is not None:
                raise self._error(name, _how_it_ended(jvm.returncode))

    def cpu_s(self) -> float:
        """CPU seconds that both JVMs have used so far, and what they ran (`date`).

        Raises DriverError when one has ended.
        """
        self.check()
        ticks = 0
        for name, jvm in self._jvms.items():
            try:
                stat = Path(f"/proc/{jvm.pid}/stat").read_text()
            except OSError as error:
                raise self._error(name, "ended") from error
            # utime, stime, cutime and cstime are fields 14 to 17; the name before them may hold
            # blanks and parentheses.
            ticks += sum(int(field) for field in stat.rpartition(")")[2].split()[11:15])
        return ticks / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        """End both, with all that they started:

        SIGTERM, then SIGKILL, to their process groups. May be called twice.
        """
        for number, patience_s in ((signal.SIGTERM, END_S), (signal.SIGKILL, END_S)):
            self._end(list(self._jvms.values()), number, patience_s)

    @staticmethod
    def _end(
        jvms: list[subprocess.Popen[bytes]], number: signal.Signals, patience_s: float = END_S
    ) -> None:
        running = [jvm for jvm in jvms if jvm.poll() is None]
        for jvm in running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(jvm.pid, number)
        deadline = time.monotonic() + patience_s
        for jvm in running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                jvm.wait(max(0.0, deadline - time.monotonic()))

    def _start(self) -> None:
        java = check(self.home)
        self._lay()
        self.ports = {
            name: _free(self.address, port) for name, port in PORTS.items() if name in self.parts
        }
        drivers = (self.driver, *self.others)
        named = [
            CONTROLLERS_DRIVER.format(number=number, url=url)
            for number, url in enumerate(drivers, start=1)
        ]
        (self.folder / "conf" / "controller.conf").write_text(
            CONTROLLER_CONF.format(count=len(drivers)) + "".join(named)
        )
        for name, port in self.ports.items():
            self._bind(self.folder / "conf" / f"{name}-tomcat-server.xml", port)
        for name in self.ports:
            self._jvms[name] = self._launch(java, name)
        where = ", ".join(f"{name} {self._url(name)}" for name in self.ports)
        self.log(f"COSBench of {self.home} starts by Java {java.release}: {where}")
        since = time.monotonic()
        self._await(java, "driver", f"{self.driver}/index.html", since)
        if "controller" in self.ports:
            # Whoever it asks for, it answers: credentials are looked at by what talks to it.
            self._await(
                java,
                "controller",
                f"{self.controller}/cli/index.action?username=anonymous&password=cosbench",
                since,
            )
        for name, jvm in self._jvms.items():
            if _may_set_clock(jvm.pid):
                raise DriverError(
                    f"COSBench's {name} has the right to set this machine's clock, and would use "
                    "it before every stage",
                    advice="Start it without CAP_SYS_TIME among the inheritable rights, or as a "
                    "user who is not root.",
                )
        self.log(f"COSBench answers after {time.monotonic() - since:.1f} s")

    def _lay(self) -> None:
        """The folder that COSBench runs in: links to its jars, and all that it writes."""
        if self.folder.exists() and any(self.folder.iterdir()):
            raise UsageError(f"{self.folder} is to hold a run of COSBench and has something in it")
        for name in ("archive", "log", "tmp", "shim"):
            (self.folder / name).mkdir(parents=True)
        # Its archive has every workload as it was handed in, with what opens the store.
        self.folder.chmod(0o700)
        for name in ("main", "osgi"):
            (self.folder / name).symlink_to(self.home / name)
        # org.eclipse.osgi and the like are what a former start has cached, with paths of its own.
        shutil.copytree(
            self.home / "conf",
            self.folder / "conf",
            ignore=shutil.ignore_patterns("org.eclipse.*", ".manager", "*.log"),
        )
        for path in (self.folder / "conf").rglob("*"):
            path.chmod(0o700 if path.is_dir() else 0o600)
        with zipfile.ZipFile(_framework(self.home)) as framework:
            self._profile.write_bytes(framework.read("JavaSE-1.6.profile"))
        date = self.folder / "shim" / "date"
        date.write_text(
            "#!/bin/sh\n# COSBench's driver would set the clock by `date -s` before every "
            "stage.\nexit 0\n"
        )
        date.chmod(0o755)

    def _bind(self, path: Path, port: int) -> None:
        """Have the web server of one of them listen on our address and port alone."""
        text = path.read_text(encoding="utf-8")
        bare = re.sub(
            r"<Connector\b[^>]*>", lambda tag: re.sub(r'\s(port|address)="[^"]*"', "", tag[0]), text
        )
        bound, connectors = re.subn(
            r"<Connector\b", f'<Connector port="{port}" address="{self.address}"', bare
        )
        if connectors != 1:
            raise UsageError(
                f"{self.home / 'conf' / path.name}: has {connectors} <Connector>, not one: it "
                f"cannot be bound to {self.address}",
                advice="Take the file as COSBench ships it.",
            )
        path.write_text(bound, encoding="utf-8")

    def _launch(self, java: Java, name: str) -> subprocess.Popen[bytes]:
        command = (
            java.path,
            f"-Xmx{self.heaps_mib[name]}m",
            *java.flags(self.folder, self._profile),
            # The numbers of the archive are written in the locale of the JVM.
            "-Duser.language=en",
            "-Duser.country=US",
            f"-Djava.net.preferIPv4Stack={str(ipaddress.ip_address(self.address).version == 4).lower()}",
            # All that it leaves is left in the folder.
            f"-Djava.io.tmpdir={self.folder / 'tmp'}",
            f"-Duser.home={self.folder}",
            "-XX:-UsePerfData",
            f"-XX:ErrorFile={self.folder / 'log' / f'{name}-crash.log'}",
            # The launcher tries by a file whether it may write where it is installed.
            f"-Dosgi.install.area={self.folder.as_uri()}/",
            f"-Dcosbench.tomcat.config=conf/{name}-tomcat-server.xml",
            "-server",
            "-cp",
            "main/*",
            "org.eclipse.equinox.launcher.Main",
            "-configuration",
            f"conf/.{name}",
        )
        path = f"{self.folder / 'shim'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        with self._out(name).open("wb") as out:
            return subprocess.Popen(
                [sys.executable, "-I", installation_start.__file__, str(os.getpid()), *command],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env={**os.environ, "LC_ALL": "C", "PATH": path},
                start_new_session=True,
            )

    def _await(self, java: Java, name: str, url: str, since: float) -> None:
        """Until it answers; one whose bundles have started in an order that they cannot is started
        once more.
        """
        again = False
        # No proxy of the environment stands between us and what we have just started.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        while True:
            self.check()
            left_s = self.start_s - (time.monotonic() - since)
            if left_s <= 0:
                raise self._error(
                    name, f"does not answer at {url.partition('?')[0]} after {self.start_s:g} s"
                )
            # 404 until its web application is there.
            with (
                contextlib.suppress(OSError, urllib.error.HTTPError),
                opener.open(url, timeout=min(left_s, 10)) as answer,
            ):
                if answer.status == 200:
                    return
            if not again and self._stuck(name):
                again = True
                self.log(
                    f"COSBench's {name} has come up without all of its bundles; starting it again"
                )
                self._end([self._jvms[name]], signal.SIGKILL)
                self._jvms[name] = self._launch(java, name)
            time.sleep(0.2)

    def _stuck(self, name: str) -> bool:
        """Whether its framework has given up on a bundle: it would run on without ever
        answering.
        """
        logs = [self._out(name), *(self.folder / "conf" / f".{name}").glob("*.log")]
        return any(STUCK.search(log.read_bytes()) is not None for log in logs if log.exists())

    def _url(self, name: str) -> str:
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"http://{host}:{self.ports[name]}/{name}"

    @property
    def _profile(self) -> Path:
        return self.folder / "JavaSE-1.6.profile"

    def _out(self, name: str) -> Path:
        return self.folder / "log" / f"{name}.out"

    def _error(self, name: str, what: str) -> DriverError:
        # What Equinox has to say about bundles goes to a log named by the time, beside its
        # configuration.
        logs = [self._out(name), *sorted((self.folder / "conf" / f".{name}").glob("*.log"))]
        lines = [f"COSBench's {name} {what}"]
        for log in logs:
            lines += [f"last lines of {log}:", *_tail(log)]
        return DriverError("\n".join(lines))


def _framework(home: Path) -> Path:
    """The jar of Equinox. Raises UsageError."""
    found = sorted((home / "osgi").glob("org.eclipse.osgi-3.*.jar"))
    if not found:
        raise UsageError(
            f"{home} is no unpacked COSBench: there is no osgi/org.eclipse.osgi-3.*.jar",
            advice=WANTED,
        )
    return found[0]


def _free(address: str, wanted: int) -> int:
    """A port of the address that nobody listens on: the wanted one where that can be had.

    Raises UsageError.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as Tomcat does
        try:
            try:
                probe.bind((address, wanted))
            except OSError:
                probe.bind((address, 0))
        except OSError as error:
            raise UsageError(f"COSBench cannot listen on {address}: {error.strerror}") from error
        return int(probe.getsockname()[1])


def _may_set_clock(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"^CapPrm:\s*([0-9a-f]+)$", status, re.MULTILINE)
    return found is None or bool(int(found[1], 16) >> installation_start.CAP_SYS_TIME & 1)


def _how_it_ended(code: int) -> str:
    return (
        f"was ended by {signal.Signals(-code).name}"
        if code < 0
        else f"ended with exit status {code}"
    )


def _tail(log: Path) -> list[str]:
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-TAIL_LINES:]
    except OSError as error:
        return [f"  | (cannot be read: {error.strerror})"]
    return [f"  | {line}" for line in lines] or ["  | (the log is empty)"]
