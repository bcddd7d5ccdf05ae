"""An unpacked COSBench run on this host in a separate folder: controller and driver, or a driver.

Nothing is written into the installation. The folder links its jars, has a copy of its
configuration, and takes archive and logs. As shipped, COSBench listens on every address, runs
scripts for anyone, and sets the machine's clock before every stage; here both parts listen on one
address, have no OSGi console, and cannot set the clock: they lack the capability, and `date` does
nothing.
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
from typing import Self

from weighbridge.common.endpoint import host_port
from weighbridge.common.errors import DriverError, MissingPrerequisite, UsageError
from weighbridge.common.record import Record
from weighbridge.drivers.cosbench import installation_start
from weighbridge.drivers.process import how_it_ended, last_lines

# The Java that runs COSBench: found, its version, and the flags that COSBench of 2018 needs.


OPENED = ("java.base/java.net", "java.base/java.lang", "java.base/java.util")
"""Packages that Equinox and Spring of that time access by reflection, closed since Java 9."""

BOOT_CLASSES = "osgi/libs/com.springsource.javax.xml.bind-2.2.0.jar"
"""JAXB, which Java lacks since 11. Without it the s3 storage does nothing, and COSBench reports
FINISHED.
"""


class Java(Record):
    """A java command and its release (8 for 1.8)."""

    path: str
    release: int

    def flags(self, folder: Path, profile: Path) -> tuple[str, ...]:
        """The flags of COSBench in `folder`; `profile` is Equinox's own description of Java 6."""
        if self.release <= 8:
            return ()
        return (
            *(f"--add-opens={package}=ALL-UNNAMED" for package in OPENED),
            # Equinox 3.7 knows Java up to 1.7 and would resolve no bundle on later ones.
            f"-Dosgi.java.profile={profile.as_uri()}",
            "-Dosgi.parentClassloader=ext",
            f"-Xbootclasspath/a:{folder / BOOT_CLASSES}",
        )


def find_java() -> Java:
    """The java of $JAVA_HOME, or of PATH. Raises MissingPrerequisite without a known release."""
    home = os.environ.get("JAVA_HOME")
    path = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    if path is None:
        where = f"below JAVA_HOME ({home})" if home else "in PATH"
        raise MissingPrerequisite(
            f"COSBench needs Java, and there is no java {where}",
            advice="apt-get install default-jre-headless",
        )
    try:
        done = subprocess.run(
            [path, "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingPrerequisite(
            f"{path} -version: {error}", advice="Set JAVA_HOME to another one."
        ) from error
    output = done.stderr + done.stdout
    found = re.search(r'version "(?:1\.)?(\d+)', output)
    if done.returncode or found is None:
        raise MissingPrerequisite(
            f"{path} -version does not print its release: {output[:300].strip()}",
            advice="Set JAVA_HOME to another one.",
        )
    return Java(path=path, release=int(found[1]))


STUCK = re.compile(rb"Bundle \S+ .{0,80}is not active")
"""Equinox's message when bundles start in the wrong order, as on a busy machine."""

START_S = 180.0
"""Time for both to answer: 3 s on an idle machine, a minute on a host with a fraction of a CPU."""

END_S = 10.0
"""Time for both to end after SIGTERM."""
PORTS = {"driver": 18088, "controller": 19088}
"""COSBench's own; if one is not free, another is used."""

PARTS = (
    "main",
    "osgi",
    "conf/.driver/config.ini",
    "conf/.controller/config.ini",
    "conf/driver-tomcat-server.xml",
    "conf/controller-tomcat-server.xml",
)
"""The parts of an unpacked COSBench that are used here."""

WANTED = (
    "Give the folder of COSBench 0.4.2 that contains main/, osgi/ and conf/. For hosts of a lab it "
    "must not be below /tmp, /run or /var/log: client hosts have their own."
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

Log = Callable[[str], None]
"""Called with a line for people on what is being done."""


def check(home: Path) -> Java:
    """A Java for the unpacked COSBench in `home`. Raises UsageError or MissingPrerequisite."""
    missing = [part for part in PARTS if not (home / part).exists()]
    if missing:
        raise UsageError(
            f"{home} is not an unpacked COSBench: there is no {', no '.join(missing)}",
            advice=WANTED,
        )
    _framework(home)
    return find_java()


class Installation:
    """A COSBench that runs while entered, for one thread: it ends with the thread that entered it.

    `parts` are run; the controller uses the driver beside it and `others`, the URLs of further
    drivers. `home` is the unpacked COSBench, `address` the only one it listens on, `folder` where
    it writes (missing or empty), `log` is called with lines for people. Heaps are bounded by
    `heap_mib` (driver) and `controller_heap_mib`. Entering raises UsageError, MissingPrerequisite,
    or DriverError with the last lines of a JVM that did not start.
    """

    def __init__(
        self,
        home: Path,
        address: str,
        folder: Path,
        log: Log,
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
        return self._url("controller")

    @property
    def driver(self) -> str:
        return self._url("driver")

    @property
    def archive(self) -> Path:
        return self.folder / "archive"

    @property
    def system_log(self) -> Path:
        """The log of controller and driver, with the reasons why workloads were terminated."""
        return self.folder / "log" / "system.log"

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def check(self) -> None:
        """Raise DriverError with the last lines of a part that has ended."""
        for name, jvm in self._jvms.items():
            if jvm.poll() is not None:
                raise self._error(name, how_it_ended(jvm.returncode))

    def cpu_s(self) -> float:
        """CPU seconds of all JVMs and children (`date`). Raises DriverError when one has ended."""
        self.check()
        ticks = 0
        for name, jvm in self._jvms.items():
            try:
                stat = Path(f"/proc/{jvm.pid}/stat").read_text()
            except OSError as error:
                raise self._error(name, "ended") from error
            # utime, stime, cutime and cstime are fields 14 to 17; the name before them may contain
            # spaces and parentheses.
            ticks += sum(int(field) for field in stat.rpartition(")")[2].split()[11:15])
        return ticks / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        """End all process groups by SIGTERM, then SIGKILL. May be called twice."""
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
        self._make_folder()
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
            # It answers whatever the credentials are: its clients check them.
            self._await(
                java,
                "controller",
                f"{self.controller}/cli/index.action?username=anonymous&password=cosbench",
                since,
            )
        for name, jvm in self._jvms.items():
            if _may_set_clock(jvm.pid):
                raise DriverError(
                    f"COSBench's {name} may set this machine's clock, and would do so before every "
                    "stage",
                    advice="Start it without CAP_SYS_TIME among the inheritable capabilities, or "
                    "as a user other than root.",
                )
        self.log(f"COSBench answers after {time.monotonic() - since:.1f} s")

    def _make_folder(self) -> None:
        if self.folder.exists() and any(self.folder.iterdir()):
            raise UsageError(f"{self.folder} is not empty: a run of COSBench needs an empty folder")
        for name in ("archive", "log", "tmp", "shim"):
            (self.folder / name).mkdir(parents=True)
        # The archive has every workload as submitted, with the store's credentials.
        self.folder.chmod(0o700)
        for name in ("main", "osgi"):
            (self.folder / name).symlink_to(self.home / name)
        # org.eclipse.osgi and the like are caches of an earlier start, with its paths.
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
            "#!/bin/sh\n"
            "# COSBench's driver would set the clock by `date -s` before every stage.\n"
            "exit 0\n"
        )
        date.chmod(0o755)

    def _bind(self, path: Path, port: int) -> None:
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
                advice="Use the file as shipped with COSBench.",
            )
        path.write_text(bound, encoding="utf-8")

    def _launch(self, java: Java, name: str) -> subprocess.Popen[bytes]:
        ipv4 = str(ipaddress.ip_address(self.address).version == 4).lower()
        command = (
            java.path,
            f"-Xmx{self.heaps_mib[name]}m",
            *java.flags(self.folder, self._profile),
            # The archive's numbers are written in the JVM's locale.
            "-Duser.language=en",
            "-Duser.country=US",
            f"-Djava.net.preferIPv4Stack={ipv4}",
            # All temporary files go to the folder.
            f"-Djava.io.tmpdir={self.folder / 'tmp'}",
            f"-Duser.home={self.folder}",
            "-XX:-UsePerfData",
            f"-XX:ErrorFile={self.folder / 'log' / f'{name}-crash.log'}",
            # The launcher writes a file to test whether it may write where it is installed.
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
        """Wait until it answers; restart it once if its bundles started in the wrong order."""
        again = False
        # A proxy from the environment must not be used for a local process.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        while True:
            self.check()
            left_s = self.start_s - (time.monotonic() - since)
            if left_s <= 0:
                raise self._error(
                    name, f"does not answer at {url.partition('?')[0]} after {self.start_s:g} s"
                )
            # 404 until its web application has started.
            with (
                contextlib.suppress(OSError, urllib.error.HTTPError),
                opener.open(url, timeout=min(left_s, 10)) as answer,
            ):
                if answer.status == 200:
                    return
            if not again and self._stuck(name):
                again = True
                self.log(f"COSBench's {name} started without all of its bundles; restarting it")
                self._end([self._jvms[name]], signal.SIGKILL)
                self._jvms[name] = self._launch(java, name)
            time.sleep(0.2)

    def _stuck(self, name: str) -> bool:
        logs = [self._out(name), *(self.folder / "conf" / f".{name}").glob("*.log")]
        return any(STUCK.search(log.read_bytes()) is not None for log in logs if log.exists())

    def _url(self, name: str) -> str:
        return f"http://{host_port(self.address, self.ports[name])}/{name}"

    @property
    def _profile(self) -> Path:
        return self.folder / "JavaSE-1.6.profile"

    def _out(self, name: str) -> Path:
        return self.folder / "log" / f"{name}.out"

    def _error(self, name: str, what: str) -> DriverError:
        # Equinox logs about bundles in a file named by the time, beside its configuration.
        logs = [self._out(name), *sorted((self.folder / "conf" / f".{name}").glob("*.log"))]
        tails = [line for log in logs for line in last_lines(log)]
        return DriverError("\n".join([f"COSBench's {name} {what}", *tails]))


def _framework(home: Path) -> Path:
    found = sorted((home / "osgi").glob("org.eclipse.osgi-3.*.jar"))
    if not found:
        raise UsageError(
            f"{home} is not an unpacked COSBench: there is no osgi/org.eclipse.osgi-3.*.jar",
            advice=WANTED,
        )
    return found[0]


def _free(address: str, wanted: int) -> int:
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
