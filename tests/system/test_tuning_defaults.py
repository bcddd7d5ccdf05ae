"""The spaces of parameters that ship against the daemons themselves: their defaults at each
release, and what they take.
"""

import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from deployed_layouts import LAB_CPU, deployed
from small_lab import sh
from weighbridge.common.host import Host
from weighbridge.common.paths import IMPORTED_FROM
from weighbridge.environment import place
from weighbridge.gateways import program
from weighbridge.suites.tuning import Parameter, Setting, loader
from weighbridge.topologies.deployment import Deployment, hosts_request, preflight_all
from weighbridge.topologies.loader import changed_layout, load_layout, parse, shipped_layouts

pytestmark = pytest.mark.system

SUPPORT = Path(__file__).parents[1] / "support"

WORD = "is a word of rgw_frontends: what holds without it is in radosgw's code alone"
SILENT = "HAProxy tells nobody what it does where its configuration is silent"
NO_DEFAULT = "has no default: it is there or it is not, or is computed"

OTHER_RELEASE = [pytest.mark.releases, pytest.mark.test_all]
CEPH = ["rgw-beast", "rgw-beast-objects", "rgw-civetweb"]
SWIFT = ["swift-proxy", "swift-object"]

NOT_ASKED = {
    "rgw-beast": {
        "radosgw.tcp_nodelay": WORD,
        "radosgw.frontend_options.request_timeout_ms": WORD,
        "radosgw.frontend_options.max_connection_backlog": WORD,
    },
    "rgw-beast-objects": {},
    "rgw-civetweb": {
        "radosgw.tcp_nodelay": WORD,
        "radosgw.frontend_options.enable_keep_alive": WORD,
    },
    "haproxy": {
        "haproxy.http_reuse": SILENT,
        "haproxy.retries": SILENT,
        "haproxy.options.defaults": NO_DEFAULT,
        "haproxy.options.backend": NO_DEFAULT,
        "haproxy.threads": NO_DEFAULT,
        "haproxy.maxconn": NO_DEFAULT,
    },
    "apache-mpm": {
        "apache.mpm.kind": "has no default: Debian's Apache loads none by itself",
        "apache.sendfile": "is reported by no module of Apache",
    },
    "swift-proxy": {
        "proxy.workers": "Debian's own sample has 20 in place of Swift's auto, for a proxy under "
        "uwsgi"
    },
    "swift-object": {},
}
"""Parameters whose default no daemon and no file of its release says, and why: by space and key."""


def at(*releases: str) -> pytest.MarkDecorator:
    """Run a test on a deployment of each release; all but the first of them when releases are
    wanted.
    """
    first, *others = releases
    marked = [first, *(pytest.param(one, marks=OTHER_RELEASE) for one in others)]
    return pytest.mark.parametrize("deployment", marked, indirect=True)


on_ceph = at("ceph-18", "ceph-14", "ceph-16")
on_swift = at("swift-2.35", "swift-2.26", "swift-2.30")
on_nothing = pytest.mark.parametrize("deployment", [None], indirect=True, ids=["nothing"])
"""One deployment runs at a time: a test that starts its own hosts says that none does."""


@dataclass(frozen=True)
class Installed:
    """A host with a release of Swift on it, of which nothing runs."""

    host: Host
    release: str


@pytest.fixture(scope="module")
def deployment(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Deployment | Installed | None]:
    """What there is of a release: HAProxy before radosgw, with Apache on the same host, where it
    can be started; of Swift, whose files are asked and no daemon, a host with it.
    """
    release: str | None = request.param
    if release is None:
        yield None
    elif release.startswith("swift"):
        folder = tmp_path_factory.mktemp("swift")
        with installed(f"swift@{release}", folder) as found:
            yield found
    else:
        folder = tmp_path_factory.mktemp("rgw")
        with deployed(
            "rgw-haproxy", folder, lambda text: text.replace("ceph-18", str(release)), once=True
        ) as deployment:
            assert deployment.layout.release == release
            yield deployment


@contextmanager
def installed(layout: str, folder: Path) -> Iterator[Installed]:
    reference = parse(layout)
    gateway = load_layout(shipped_layouts()[reference.name], LAB_CPU, reference).gateway
    request = hosts_request(gateway, LAB_CPU, place(), ["store-1"], tools=False)
    start = LAB_CPU.of.prepared(request, print)
    with start(f"defaults-{secrets.token_hex(3)}", folder / "hosts") as hosts:
        yield Installed(hosts.hosts["store-1"], gateway.release)


def asked(space: str) -> list[Parameter]:
    """Parameters of a space whose default a daemon can be asked for."""
    _, tuning = loader.load(loader.find(space))
    unknown = set(NOT_ASKED[space]) - {parameter.key for parameter in tuning.parameters}
    assert not unknown, f"{space} has no {unknown}"
    return [parameter for parameter in tuning.parameters if parameter.key not in NOT_ASKED[space]]


def alike(value: Setting | None) -> Setting | None:
    """The same for what is written in several ways:

    `off` and false, `0.50` and 0.5, `0/0` and 0/0.
    """
    words = {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False}
    if isinstance(value, str):
        value = words.get(value.lower(), value)
    try:
        return value if value is None or isinstance(value, bool) else float(value)
    except ValueError:
        return value


def said(parameters: list[Parameter], release: str) -> dict[str, Setting | None]:
    return {parameter.option: alike(parameter.default_at(release)) for parameter in parameters}


def ran(host: Host, module: str, *arguments: str, stdin: str = "") -> str:
    """What a program of the suite, or of tests/support, prints on a host."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        if (own := SUPPORT / f"{module}.py").exists():
            Path(folder, own.name).symlink_to(own)
            Path(folder, "weighbridge").symlink_to(IMPORTED_FROM / "weighbridge")
            patch.setattr(program, "IMPORTED_FROM", Path(folder))
        command = program.ship(host, module)
    return host.run((*command, *arguments), stdin=stdin).stdout


def of_radosgw(deployment: Deployment, options: list[str]) -> dict[str, Setting | None]:
    """Defaults as a running radosgw tells them through its admin socket (`config help`); None of
    what it does not know.
    """
    host = deployment.hosts["gateway-1"]
    path = host.run(["sh", "-ec", "ls /run/ceph/client.rgw.*.asok | head -1"]).stdout.strip()
    questions = [[path, {"prefix": "config help", "var": option}] for option in options]
    known: dict[str, Setting | None] = {}
    for option, text in zip(
        options,
        json.loads(ran(host, "weighbridge.gateways.rgw.ask_daemon", stdin=json.dumps(questions))),
        strict=True,
    ):
        if "Setting not found" in text:
            known[option] = None
            continue
        help_ = json.loads(text)["option"]
        # A daemon may have another default than a client's program; that of daemons then holds for
        # radosgw.
        known[option] = alike(
            help_["default"] if help_["daemon_default"] in {"", None} else help_["daemon_default"]
        )
    return known


@on_ceph
@pytest.mark.parametrize("space", CEPH)
def test_radosgw_itself_has_the_defaults_that_its_spaces_give(
    deployment: Deployment, space: str
) -> None:
    wanted = said(asked(space), deployment.layout.release)
    assert of_radosgw(deployment, list(wanted)) == wanted


@on_ceph
def test_words_of_rgw_frontends_are_known_to_the_web_servers_of_the_release(
    deployment: Deployment,
) -> None:
    radosgw = "cat $(command -v radosgw) /usr/lib/*/libradosgw.so*"
    words = f"{radosgw} | grep -aoE '[a-z]+(_[a-z]+)+' | sort -u"
    known = set(sh(deployment.hosts["gateway-1"], words).split())
    # ceph-14's beast has no request_timeout_ms, but its civetweb has one.
    assert {"tcp_nodelay", "request_timeout_ms", "max_connection_backlog"} <= known
    assert ("enable_keep_alive" in known) == (deployment.layout.release != "ceph-18")


@on_ceph
def test_haproxy_itself_has_the_defaults_that_its_space_gives(deployment: Deployment) -> None:
    parameters = [one for one in asked("haproxy") if not one.option.startswith("rgw_")]
    known = json.loads(ran(deployment.hosts["gateway-1"], "haproxy_defaults"))
    wanted = said(parameters, deployment.layout.release)
    assert {name: alike(known.get(name)) for name in wanted} == wanted


@on_ceph
@pytest.mark.parametrize("kind", ["worker", "event"])
def test_apache_itself_has_the_defaults_that_its_space_gives(
    deployment: Deployment, kind: str
) -> None:
    known = json.loads(ran(deployment.hosts["gateway-1"], "apache_defaults", kind))
    wanted = said(asked("apache-mpm"), deployment.layout.release)
    assert {name: alike(known.get(name)) for name in wanted} == wanted


@on_swift
@pytest.mark.parametrize("space", SWIFT)
def test_swifts_own_sample_files_have_the_defaults_that_its_spaces_give(
    deployment: Installed, space: str
) -> None:
    samples = json.loads(ran(deployment.host, "swift_defaults"))
    known = {}
    for parameter in asked(space):
        server = (
            "container" if parameter.key.startswith("container.") else space.removeprefix("swift-")
        )
        section, option = parameter.option.split(" ")
        known[parameter.key] = alike(samples[server].get(section, {}).get(option))
    assert known == {
        parameter.key: alike(parameter.default_at(deployment.release)) for parameter in asked(space)
    }


@pytest.mark.test_all
@on_nothing
@pytest.mark.parametrize("space", list(NOT_ASKED))
@pytest.mark.usefixtures("deployment")
def test_every_setting_of_a_space_is_taken_by_the_programs_of_its_release(space: str) -> None:
    document, tuning = loader.load(loader.find(space))
    baseline = load_layout(shipped_layouts()[tuning.layout], LAB_CPU)
    variants = [
        changed_layout(
            baseline, LAB_CPU, {parameter.key: level.value, **level.also}, document.fault_at((), "")
        )
        for parameter in tuning.parameters
        for level in parameter.levels
    ]
    assert preflight_all(variants, LAB_CPU, place(), print) == {}
    # And they are really asked: a value that none of them takes is refused.
    wrong: dict[str, dict[str, object]] = {
        "rgw": {"options.client.ms_async_op_threads": "many"},
        "swift": {"options.proxy.app:proxy-server.node_timeot": 3},
    }
    refused = changed_layout(
        baseline, LAB_CPU, wrong[baseline.layout.gateway], document.fault_at((), ""), name="wrong"
    )
    assert list(preflight_all([refused], LAB_CPU, place(), print)) == ["wrong"]
