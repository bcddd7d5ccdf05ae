"""TLS of each front, and of the gateways themselves, with real daemons: openssl, curl, boto3 and
python-swiftclient verify it by the deployment's own CA.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from behind_front import driving, measured, past
from daemon_counters import counters
from deployed_layouts import check_witness, deployed, endpoint, left_over, unlimited
from suite_command import trial_suite
from weighbridge.common.errors import CommandFailed
from weighbridge.drivers.protocol import Cleanup, Prepare
from weighbridge.gateways.certificates import CA_FILE, SERVER_FILE, issued
from weighbridge.results.run.step import Pass
from weighbridge.suites import Suite
from weighbridge.topologies.deployment import Deployment

pytestmark = [pytest.mark.system, pytest.mark.long]

LAYOUTS = {
    "rgw-beast": ("  radosgw:\n    frontend", "  radosgw:\n    tls: true\n    frontend"),
    "swift-haproxy": ("    http_reuse", "    tls: true\n    http_reuse"),
    "rgw-apache-proxy": ("    mpm:", "    tls: true\n    mpm:"),
    "rgw-haproxy": ("    http_reuse", "    tls: true\n    http_reuse"),
    "swift-s3api": ("  proxy:\n", "  proxy:\n    tls: true\n"),
    "rgw-apache-fastcgi": ("    mpm:", "    tls: true\n    mpm:"),
}
"""What a layout's file has for TLS, as it is and as it is tested."""
MADE = 2
"""How many of them `make test` tries: a gateway's own TLS, and that of a front."""


def suite(api: str, users: str = "engine") -> Suite:
    return trial_suite(
        *(f"[{api}]", "{read: 60, write: 40}", "300ms"),
        size="64KiB",
        containers=2,
        workers=3,
        verify="true",
        suite=f"users: {users}",
    )


@pytest.fixture(
    scope="module",
    params=[
        one if number < MADE else pytest.param(one, marks=pytest.mark.test_all)
        for number, one in enumerate(LAYOUTS)
    ],
)
def secured(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Deployment]:
    plain, tls = LAYOUTS[request.param]

    def change(layout: str) -> str:
        assert layout.count(plain) == 1
        text = layout.replace(plain, tls)
        return text.replace("settings:\n", "settings:\n  s3api: true\n") if s3api else text

    s3api = request.param == "swift-haproxy"
    folder = tmp_path_factory.mktemp("tls")
    with deployed(
        request.param, folder, change, change_hardware=unlimited, once=True
    ) as deployment:
        yield deployment
    assert left_over() == []


def place(deployment: Deployment) -> tuple[str, int]:
    parts = urlsplit(deployment.endpoints[0].url)
    return str(parts.hostname), parts.port or 443


def on_client(deployment: Deployment, *argv: str, stdin: str = "") -> str:
    return deployment.client.run(argv, stdin=stdin).stdout


def s_client(deployment: Deployment, *words: str, ca: str = CA_FILE) -> str:
    """What openssl's client saw of a handshake, whether it went well or not."""
    address, port = place(deployment)
    trusted = f"-no-CApath -no-CAstore -CAfile {ca} -verify_ip {address}"
    line = f"openssl s_client -connect {address}:{port} {trusted} {' '.join(words)} </dev/null 2>&1"
    return on_client(deployment, "sh", "-c", f"{line} || true")


def test_openssl_verifies_the_certificate_with_the_ca_of_the_deployment(
    secured: Deployment,
) -> None:
    shown = s_client(secured, "-x509_strict")
    assert "Verify return code: 0 (ok)" in shown
    assert "TLSv1.3" in shown


def test_openssl_refuses_it_with_the_ca_of_another_deployment(secured: Deployment) -> None:
    other = issued(secured.hosts["gateway-1"])
    secured.client.put("/run/other-ca.pem", other.ca)
    shown = s_client(secured, ca="/run/other-ca.pem")
    assert "Verify return code: 0 (ok)" not in shown
    assert re.search(r"verify error:num=\d+:", shown)


def test_tls_1_2_is_spoken_and_older_versions_are_not(secured: Deployment) -> None:
    assert "Verify return code: 0 (ok)" in s_client(secured, "-tls1_2")
    old = s_client(secured, "-tls1_1", "-cipher", "'DEFAULT:@SECLEVEL=0'")
    assert re.search(r"Cipher is \(NONE\)|alert protocol version", old)


def test_plain_http_is_not_served_on_its_port(secured: Deployment) -> None:
    address, port = place(secured)
    line = f"curl -s -o /dev/null -w '%{{http_code}}' http://{address}:{port}/ || true"
    # Apache says in plain words that it wants TLS; others close the connection.
    assert on_client(secured, "sh", "-c", line) in {"000", "400"}


def test_curl_trusts_it_by_the_ca_alone(secured: Deployment) -> None:
    own = endpoint(secured, "swift")
    config = f'header "X-Auth-User: {own.user}"\nheader "X-Auth-Key: {own.key.get_secret_value()}"'
    argv = ("curl", "-sSi", "-K", "-")
    answer = on_client(secured, *argv, "--cacert", CA_FILE, own.url, stdin=config)
    (url,) = re.findall(r"(?mi)^x-storage-url: (\S+)", answer)
    # Swift's clients stay on https and on the port they came to.
    assert url.startswith(own.url.removesuffix("/auth/v1.0") + "/")
    with pytest.raises(CommandFailed) as error:
        on_client(secured, *argv, own.url, stdin=config)
    assert error.value.code == 60


@pytest.mark.parametrize("api", ["s3", "swift"])
def test_an_independent_client_reads_what_it_wrote(secured: Deployment, api: str) -> None:
    check_witness(secured, api)


@pytest.mark.parametrize(
    ("users", "api"),
    [
        ("engine", "s3"),
        ("sdk", "swift"),
        pytest.param("engine", "swift", marks=pytest.mark.test_all),
        pytest.param("sdk", "s3", marks=pytest.mark.test_all),
    ],
)
def test_load_is_made_over_tls_and_every_byte_is_verified(
    secured: Deployment, users: str, api: str, tmp_path: Path
) -> None:
    given = suite(api, users)
    (workload,) = given.workloads
    one = Pass.model_validate({"api": api, "workloads": ()})
    with driving(secured, given, tmp_path, one) as driver:
        driver.prepare(Prepare(workload=workload))
        measurement = measured(driver, workload)
        driver.cleanup(Cleanup(workload=workload, what="all"))
    assert sum(tally.count for tally in measurement.tallies) > 0
    assert not any(tally.errors for tally in measurement.tallies)


def test_facts_say_what_openssl_negotiates_too(secured: Deployment) -> None:
    fact = secured.facts()["tls"]
    shown = s_client(secured)
    (version, cipher) = re.findall(r"New, (\S+), Cipher is (\S+)", shown)[0]
    assert fact.startswith(f"{version}, {cipher}; sessions are ")
    reused = s_client(secured, "-tls1_2", "-reconnect")
    assert ("sessions are resumed" in fact) == ("Reused, " in reused)


def test_the_private_key_is_on_the_server_alone_and_for_its_daemon_alone(
    secured: Deployment,
) -> None:
    found = "grep -lr 'PRIVATE KEY' /etc/weighbridge /etc/swift /run 2>/dev/null || true"
    for name, host in secured.hosts.items():
        files = host.run(["sh", "-c", found]).stdout.split()
        if name != "gateway-1":
            assert files == []
            continue
        assert files in ([SERVER_FILE], ["/etc/swift/server.pem"])
        shown = host.run(["stat", "-c", "%a %U", *files]).stdout.strip()
        assert shown == ("600 root" if files == [SERVER_FILE] else "600 swift")
    assert not [one for one in secured.running_gateway.rendered if "PRIVATE" in one.text]


def test_fronts_still_report_what_they_count_and_pass_it_on(
    secured: Deployment, tmp_path: Path
) -> None:
    names = [probe.name for probe in secured.running_gateway.probes()]
    fronts = [name for name in names if name.startswith(("haproxy.", "apache."))]
    for name in fronts:
        assert counters(secured, name)
    if fronts == ["haproxy.gateway-1"]:
        seen = past(secured, suite("s3"), tmp_path)
        assert seen[None] > 0
        # The layer behind the front is measured past it, and without TLS.
        assert seen["gateway"] == 0
        assert all(one.url.startswith("http:") for one in secured.running_gateway.below().gateway)
