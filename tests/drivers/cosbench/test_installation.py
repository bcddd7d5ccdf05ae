import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from weighbridge.common.errors import DriverError, MissingPrerequisite, UsageError
from weighbridge.drivers.cosbench import installation
from weighbridge.drivers.cosbench.installation import Installation

pytestmark = pytest.mark.long  # starts programs in every test

CONNECTOR = """<Server><Service name="Catalina">
  <Connector port="1" address="0.0.0.0" protocol="HTTP/1.1" redirectPort="8443" />
</Service></Server>
"""

JAVA = f"""#!{sys.executable}
# A fake java: prints its release, or serves what the given Tomcat configuration says.
import http.server, os, re, shutil, subprocess, sys
from pathlib import Path

words = sys.argv[1:]
if words == ["-version"]:
    release = os.environ.get("FAKE_RELEASE", "17.0.15")
    print('openjdk version "' + release + '" 2025-04-15', file=sys.stderr)
    sys.exit(0)
key = "-Dcosbench.tomcat.config="
conf = next(word for word in words if word.startswith(key)).removeprefix(key)
name = Path(conf).name.split("-")[0]
Path(name + ".argv").write_text("\\n".join(words))
Path(name + ".date").write_text(str(shutil.which("date")))
Path(name + ".status").write_text(Path("/proc/self/status").read_text())
Path(name + ".pid").write_text(str(os.getpid()))
if os.environ.get("FAKE_STARTS"):
    Path(name + ".child").write_text(str(subprocess.Popen(["sleep", "1000"]).pid))
if os.environ.get("FAKE_DIES") == name:
    while not Path("driver.pid").exists():  # they start in parallel, and a test expects both
        pass
    print("java.lang.NoClassDefFoundError: made up")
    sys.exit(13)
if os.environ.get("FAKE_STUCK") == name and not Path(name + ".stuck").exists():
    Path(name + ".stuck").write_text("")
    print("java.lang.IllegalStateException: Bundle org.made.up [7] is not active", flush=True)
    import signal
    signal.pause()
tag = re.search("<Connector[^>]*>", Path(conf).read_text())[0]
address, port = (re.search(key + '="([^"]*)"', tag)[1] for key in ("address", r"\\bport"))

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(name.encode())
    def log_message(self, *words):
        pass

http.server.HTTPServer((address, int(port)), Handler).serve_forever()
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with all parts of COSBench that are checked, and a fake java."""
    home = tmp_path / "cosbench"
    for part in ("main", "osgi/libs", "conf/.driver/org.eclipse.osgi", "conf/.controller"):
        (home / part).mkdir(parents=True)
    for name in ("driver", "controller"):
        (home / "conf" / f".{name}" / "config.ini").write_text("osgi.clean=true\n")
        (home / "conf" / f"{name}-tomcat-server.xml").write_text(CONNECTOR)
    (home / "conf" / ".driver" / "org.eclipse.osgi" / "cached").write_text("of an earlier start")
    (home / "conf" / "controller.conf").write_text("[controller]\ndrivers = 7\n")
    with zipfile.ZipFile(home / "osgi" / "org.eclipse.osgi-3.7.0.v20110613.jar", "w") as jar:
        jar.writestr("JavaSE-1.6.profile", "osgi.java.profile.name = JavaSE-1.6")
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(JAVA)
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    return home


ADDRESS = f"127.{os.getpid() >> 8 & 0x7F}.{os.getpid() & 0xFF}.9"
Install = Callable[..., Installation]


@pytest.fixture
def install(home: Path, tmp_path: Path) -> Install:
    """An installation that is not started yet, at a loopback address of no other test."""

    def make(folder: str = "run", said: Callable[[str], None] = print, **more: Any) -> Installation:
        return Installation(home, ADDRESS, tmp_path / folder, said, **more)

    return make


def written(folder: Path, word: str) -> list[str]:
    return [(folder / f"{name}.{word}").read_text() for name in ("driver", "controller")]


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def wait_until_gone(pids: list[int]) -> None:
    deadline = time.monotonic() + 60
    while not all(is_gone(pid) for pid in pids):
        assert time.monotonic() < deadline, "still running after a minute"
        time.sleep(0.02)


def test_the_controller_also_uses_drivers_that_run_elsewhere(install: Install) -> None:
    other = "http://10.0.0.7:18088/driver"
    with install(others=[other]) as running:
        conf = (running.folder / "conf" / "controller.conf").read_text()
        assert "\ndrivers = 2\n" in conf
        assert f"[driver1]\nname = driver1\nurl = {running.driver}\n" in conf
        assert f"[driver2]\nname = driver2\nurl = {other}\n" in conf


def test_a_driver_alone_has_no_controller_beside_it(install: Install) -> None:
    with install(parts=("driver",)) as running:
        with urllib.request.urlopen(f"{running.driver}/index.html", timeout=10) as answer:
            assert answer.read() == b"driver"
        assert not (running.folder / "controller.pid").exists()


def test_a_controller_uses_its_driver_and_neither_leaves_its_folder_or_address_or_sets_the_clock(
    home: Path, install: Install
) -> None:
    def seen() -> dict[str, tuple[int, bytes]]:
        paths = sorted(home.rglob("*"))
        return {
            str(path): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
            for path in paths
        }

    before = seen()
    with install() as one:
        assert (one.folder / "conf" / ".driver" / "config.ini").exists()
        assert not (one.folder / "conf" / ".driver" / "org.eclipse.osgi").exists()
        for url, name in ((one.controller, b"controller"), (one.driver, b"driver")):
            assert url.startswith(f"http://{ADDRESS}:")
            assert urllib.request.urlopen(url).read() == name
        with pytest.raises(OSError, match="refused"):
            urllib.request.urlopen(one.driver.replace(ADDRESS, "127.0.0.1"))
        assert not any("-console" in argv for argv in written(one.folder, "argv"))
        conf = (one.folder / "conf" / "controller.conf").read_text()
        assert f"url = {one.driver}\n" in conf
        assert "drivers = 1\n" in conf
        assert one.cpu_s() > 0
        cannot_set_the_clock(one)
    assert seen() == before


def cannot_set_the_clock(running: Installation) -> None:
    for status in written(running.folder, "status"):
        capabilities = {
            line.split(":")[0]: line.split()[1]
            for line in status.splitlines()
            if line.startswith("Cap")
        }
        assert not int(capabilities["CapPrm"], 16) >> 25 & 1
        assert not int(capabilities["CapAmb"], 16)
    for date in written(running.folder, "date"):
        assert date == str(running.folder / "shim" / "date")
        argv = [date, "-s", "2001-01-01 00:00:00"]
        assert subprocess.run(argv, capture_output=True, check=True).stdout == b""
    assert time.gmtime().tm_year > 2001


def test_leaving_ends_both_with_their_children(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_STARTS", "sleep")
    with install() as one:
        pids = [int(pid) for word in ("pid", "child") for pid in written(one.folder, word)]
        assert not any(is_gone(pid) for pid in pids)
    wait_until_gone(pids)


def test_both_end_when_their_parent_is_killed(home: Path, tmp_path: Path) -> None:
    program = (
        "import sys, pathlib\n"
        "from weighbridge.drivers.cosbench.installation import Installation\n"
        "home, folder = map(pathlib.Path, sys.argv[1:3])\n"
        "with Installation(home, sys.argv[3], folder, lambda line: None):\n"
        "    print('up', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    argv = [sys.executable, "-c", program, str(home), str(tmp_path / "run"), ADDRESS]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as starter:
        assert starter.stdout is not None
        assert starter.stdout.readline() == "up\n"
        pids = [int(pid) for pid in written(tmp_path / "run", "pid")]
        starter.kill()
    wait_until_gone(pids)


def test_a_jvm_that_dies_before_it_answers_is_reported_with_its_last_lines(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_DIES", "controller")
    one = install()
    with pytest.raises(
        DriverError,
        match=r"(?s)controller ended with exit status 13\n.*\| java\.lang\.NoClassDefFoundError",
    ):
        one.__enter__()
    wait_until_gone([int(pid) for pid in written(one.folder, "pid")])


def test_a_jvm_that_dies_later_is_noticed(install: Install) -> None:
    with install() as running:
        running.check()
        pid = int(written(running.folder, "pid")[0])
        os.kill(pid, signal.SIGKILL)
        wait_until_gone([pid])
        for ask in (running.check, running.cpu_s):
            with pytest.raises(DriverError, match="driver was ended by SIGKILL"):
                ask()


def test_a_jvm_that_does_not_answer_in_time_is_reported_and_ended(install: Install) -> None:
    place = rf"http://{ADDRESS}:\d+/driver/index.html"
    with pytest.raises(DriverError, match=rf"driver does not answer at {place} after 0 s"):
        install(start_s=0).__enter__()


def test_a_jvm_whose_bundles_started_in_the_wrong_order_is_restarted_once(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_STUCK", "driver")
    lines: list[str] = []
    with install(said=lines.append) as one:
        assert urllib.request.urlopen(one.driver).read() == b"driver"
    assert sum("restarting it" in line for line in lines) == 1


def test_another_port_is_used_if_cosbenchs_own_is_not_free(install: Install) -> None:
    with install("one") as one, install("two") as two:
        assert one.ports == installation.PORTS
        assert not set(one.ports.values()) & set(two.ports.values())
        assert urllib.request.urlopen(two.controller).read() == b"controller"


@pytest.mark.parametrize(
    "part",
    [
        "main",
        "osgi",
        "osgi/org.eclipse.osgi-3.7.0.v20110613.jar",
        "conf/.driver/config.ini",
        "conf/controller-tomcat-server.xml",
    ],
)
def test_a_missing_part_of_an_installation_is_named(home: Path, part: str) -> None:
    (home / part).rename(home.parent / "elsewhere")
    named = re.escape(part.partition("-3.7")[0])
    with pytest.raises(UsageError, match=f"there is no {named}"):
        installation.check(home)


def test_a_folder_that_is_not_empty_is_left_alone(tmp_path: Path, install: Install) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine").write_text("precious")
    with pytest.raises(UsageError, match="is not empty"):
        install().__enter__()
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["mine"]


def test_web_servers_with_several_connectors_are_refused(home: Path, install: Install) -> None:
    (home / "conf" / "driver-tomcat-server.xml").write_text(
        CONNECTOR.replace("</Service>", '<Connector port="2"/></Service>')
    )
    with pytest.raises(UsageError, match="has 2 <Connector>, not one"):
        install().__enter__()


def test_an_address_of_another_machine_is_refused(home: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot listen on 192\.0\.2\.1"):
        Installation(home, "192.0.2.1", tmp_path / "run", print).__enter__()


def test_java_8_needs_no_flags_and_newer_releases_need_several(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = home / "a profile"
    monkeypatch.setenv("FAKE_RELEASE", "1.8.0_402")
    assert installation.find_java().release == 8
    assert installation.find_java().flags(home, profile) == ()
    monkeypatch.setenv("FAKE_RELEASE", "25")
    java = installation.find_java()
    assert java.release == 25
    flags = java.flags(home, profile)
    assert "--add-opens=java.base/java.lang=ALL-UNNAMED" in flags
    assert f"-Dosgi.java.profile=file://{home}/a%20profile" in flags
    assert f"-Xbootclasspath/a:{home}/osgi/libs/com.springsource.javax.xml.bind-2.2.0.jar" in flags


def test_without_java_the_error_says_where_it_was_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(MissingPrerequisite, match=r"no java below JAVA_HOME"):
        installation.find_java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingPrerequisite, match="no java in PATH"):
        installation.find_java()


def test_a_java_that_does_not_print_its_release_is_refused(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_RELEASE", "unknown")
    with pytest.raises(MissingPrerequisite, match="does not print its release"):
        installation.find_java()
