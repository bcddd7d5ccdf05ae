"""Apache before a real radosgw, by mod_proxy_http and by FastCGI, and before an origin that does
what a script says.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deployed_layouts import check_witness, deployed, endpoint, status_of, witness
from front_cases import FIELDS, ODD, STATUSES
from weighbridge.common.host import Host, Service
from weighbridge.common.program_lines import end
from weighbridge.gateways.apache.front import STATS_PORT
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.ports import await_ports
from weighbridge.topologies.deployment import Deployment

pytestmark = pytest.mark.system

WITNESS = Path(__file__).with_name("front_witness.py")
ORIGIN = Path(__file__).with_name("scripted_origin.py")
RADOSGW_PORT = 8000


@pytest.fixture(
    scope="module", params=[pytest.param("http", marks=pytest.mark.test_all), "fastcgi"]
)
def path(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def apache(path: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    def changed(layout: str) -> str:
        more = layout.replace("    mpm:", "    options: {server: {ListenBacklog: 1024}}\n    mpm:")
        # A FastCGI answer that broke off is ended only when this is over.
        return re.sub("keep_alive_timeout: [0-9]+s", "keep_alive_timeout: 8s", more)

    name = "rgw-apache-proxy" if path == "http" else "rgw-apache-fastcgi"
    with deployed(name, tmp_path_factory.mktemp("apache"), changed, once=True) as deployment:
        yield deployment


def endpoints(deployment: Deployment) -> str:
    return json.dumps({one.api: json.loads(one.model_dump_json()) for one in deployment.endpoints})


def look(deployment: Deployment, what: str) -> dict[str, Any]:
    done = deployment.client.run(
        [sys.executable, str(WITNESS), what], stdin=endpoints(deployment), timeout_s=120
    )
    seen: dict[str, Any] = json.loads(done.stdout)
    return seen


@pytest.fixture(scope="module")
def real(apache: Deployment) -> dict[str, Any]:
    return look(apache, "real")


def radosgw(deployment: Deployment) -> Daemon:
    daemons = deployment.running_gateway.daemons()
    return next(daemon for daemon in daemons if daemon.service.argv[0] == "radosgw")


@pytest.fixture(scope="module")
def scripted(apache: Deployment, real: dict[str, Any]) -> dict[str, Any]:
    """What was seen while the scripted origin had radosgw's place.

    What is asked of radosgw itself comes before.
    """
    daemon = radosgw(apache)
    host = daemon.host
    host.put("/root/scripted_origin.py", ORIGIN.read_text())
    origin = Daemon(
        host,
        Service("origin", ("python3", "/root/scripted_origin.py", host.address, str(RADOSGW_PORT))),
        RADOSGW_PORT,
    )
    host.stop(daemon.service.name)
    host.start([origin.service])
    await_ports(apache.client, [origin], print)
    try:
        seen = look(apache, "scripted")
    finally:
        host.stop("origin")
        host.start([daemon.service])
        await_ports(apache.client, [daemon], print)
    return seen


# a real radosgw
# ----------------------------------------------------------------------


@pytest.mark.parametrize("api", ["s3", "swift"])
def test_an_independent_client_reads_what_it_wrote(apache: Deployment, api: str) -> None:
    check_witness(apache, api)


def test_signatures_over_odd_keys_hold_so_targets_pass_byte_for_byte(real: dict[str, Any]) -> None:
    assert real["odd"] == {name: [200, 200, 200] for name in ODD}
    assert real["unlisted"] == []


def test_lengths_digests_ranges_and_fields_of_objects_pass(real: dict[str, Any]) -> None:
    assert real["etag"]
    assert real["head"] == [200, str(1 << 20), 'cod; "q"', "a/b"]
    assert real["bad digest"] == 400
    assert real["range"] == [206, True, "bytes 1000-1999/1048576"]
    assert (real["not modified"], real["deleted"]) == (304, [204, 404])
    # Apache 2.4 leaves a length of 0 out of answers to HEAD, whatever is behind it.
    assert real["empty"] == [200, None]


def test_refusals_pass_with_their_bodies(real: dict[str, Any]) -> None:
    assert real["refused"] == [
        [404, "NoSuchKey"],
        [403, "AccessDenied"],
        [403, "SignatureDoesNotMatch"],
    ]


def test_chunked_uploads_and_100_continue_work_and_uploads_that_were_given_up_are_not_stored(
    real: dict[str, Any],
) -> None:
    assert (real["chunked small"], real["chunked large"]) == ([201, True], [201, True])
    assert real["continue"] == [True, 201, True]
    assert (real["given up length"], real["given up chunked"]) == ([404], [404])
    assert real["storage url"]


def test_connections_are_kept_and_many_at_once_get_what_is_theirs(real: dict[str, Any]) -> None:
    assert real["one connection"]
    assert real["concurrent"] == 320


def test_facts_name_the_path_and_the_figures(apache: Deployment, path: str) -> None:
    facts = apache.facts()
    via = "mod_proxy_http" if path == "http" else "FastCGI responder of Weighbridge"
    assert via in facts["path"]
    assert re.match(r"Apache/2\.4\.\d+ \(Debian\), MPM worker", facts["apache"])
    assert "MaxRequestWorkers 4096" in facts["apache mpm"]
    assert facts["option apache.conf [server] ListenBacklog"] == "1024"


def test_the_probe_counts_requests_and_workers(apache: Deployment, path: str) -> None:
    probe = next(one for one in apache.running_gateway.probes() if one.name == "apache.gateway-1")
    process = probe.host.spawn(probe.argv, stderr=apache.client.log("probe.err"), env=probe.env)
    try:
        assert process.stdout is not None
        first = json.loads(process.stdout.readline())
        witness(apache, "s3")
        counted = ["requests", *(["responder_requests"] if path == "fastcgi" else [])]
        # A second's line may have been told, or waited in the pipe, before the last of the
        # witness's requests.
        for _ in range(30):
            later = json.loads(process.stdout.readline())
            if all(later[name] >= first[name] + 20 for name in counted):
                break
    finally:
        end(process)
    assert process.returncode == 0
    assert later["workers_busy"] >= 1
    assert all(later[name] >= first[name] + 20 for name in counted)
    assert ("responder_requests" in later) == (path == "fastcgi")
    if path == "fastcgi":
        assert later["responder_origin_failed"] == first["responder_origin_failed"]


def test_counters_are_not_for_clients(apache: Deployment) -> None:
    url = f"{endpoint(apache, 's3').url}/server-status?auto"
    assert status_of(apache, url, "Host: status.weighbridge.invalid") == "403"


# an origin that does what a script says
# ----------------------------------------------------------------------


def test_targets_and_fields_reach_the_origin_as_they_were_sent(
    scripted: dict[str, Any], path: str
) -> None:
    # Apache refuses a zero byte whatever is behind it, and mod_proxy_http makes one slash of two
    # that lead.
    changed: dict[str, object] = {"/b/k%00nul": 404}
    assert scripted["targets"] == (changed | {"//lead": "/lead"} if path == "http" else changed)
    # Names with `_` are dropped by Apache for what is like a CGI program.
    assert scripted["fields changed"] == ({} if path == "http" else {"x_under_score": None})
    assert scripted["host"] == "h:1"
    assert scripted["version"] == "HTTP/1.1"
    assert set(scripted["fields added"]) <= {"host", "content-length", "connection"}
    assert set(scripted["bare"]) <= {"host", "connection"}
    assert scripted["methods"] == ["GET", "PUT", "POST", "DELETE", "OPTIONS", "COPY"]
    assert len(FIELDS) == 20


def test_statuses_bodies_and_fields_of_answers_reach_the_client_as_they_were_sent(
    scripted: dict[str, Any],
) -> None:
    assert scripted["statuses"] == STATUSES
    assert scripted["bodies"]
    assert scripted["location"] == "http://other.example:1234/x%2Fy?a=b"
    answer = {name.lower(): value for name, value in scripted["answer"]}
    assert answer["etag"] == '"d41d8cd98f00b204e9800998ecf8427e"'
    assert (answer["x-amz-meta-foo"], answer["x-amz-meta-utf8"], answer["x-amz-empty"]) == (
        'bar; baz="q"',
        "caf\xc3\xa9",
        "",
    )
    assert (answer["x-long"], answer["server"], answer["content-length"]) == (
        "y" * 3000,
        "scripted",
        "5",
    )
    assert [value for name, value in scripted["answer"] if name.lower() == "set-cookie"] == [
        "a=1",
        "b=2",
    ]


def test_bodies_of_every_framing_arrive_and_stream_both_ways(scripted: dict[str, Any]) -> None:
    assert all(scripted[f"chunked {name}"] for name in ("empty", "small", "large"))
    assert scripted["zero"] == ["0"]
    assert scripted["continue"] == [200, 5]
    assert (scripted["held"], scripted["counted"], scripted["count"]) == (True, True, [200, True])


def test_an_answer_that_breaks_off_and_an_upload_that_is_given_up_are_seen_as_such(
    scripted: dict[str, Any],
) -> None:
    for way in ("length", "chunked"):
        whole, length = scripted[f"broken {way}"]
        assert not whole
        assert length <= 50000
        assert scripted[f"given up {way}"] == "cut"


def test_a_rejection_before_the_body_has_come_reaches_the_client(
    scripted: dict[str, Any], path: str
) -> None:
    # Apache answers 100 itself before a FastCGI program is asked; mod_proxy_http asks first. A body
    # that nobody reads makes mod_proxy_http answer 502 in the place of what the origin said.
    if path == "fastcgi":
        assert scripted["rejected"] == [403, True]
        assert scripted["rejected, 100 expected"] == ["100", "403"]
    else:
        assert scripted["rejected"][0] in {403, 502}
        assert scripted["rejected, 100 expected"] == ["403"]


# failures of radosgw, which come last: they leave it another one
# ----------------------------------------------------------------------


def kill(host: Host, daemon: Daemon) -> None:
    host.run(["sh", "-c", "kill -KILL $(pidof radosgw)"])
    host.stop(daemon.service.name)


def test_a_radosgw_that_dies_within_a_download_is_seen_and_another_one_is_found(
    apache: Deployment, path: str, scripted: dict[str, Any]
) -> None:
    daemon = radosgw(apache)
    s3 = endpoint(apache, "s3")
    process = apache.client.spawn(
        [sys.executable, str(WITNESS), "interrupted"], stderr=apache.client.log("interrupted.err")
    )
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(s3.model_dump_json().encode() + b"\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"reading\n"
        kill(daemon.host, daemon)
        process.stdin.close()
        assert json.loads(process.stdout.readline()) == {"status": 200, "how": "cut"}
    finally:
        end(process)
    assert status_of(apache, s3.url) == ("503" if path == "http" else "502")
    daemon.host.start([daemon.service])
    await_ports(apache.client, [daemon], print)
    assert status_of(apache, s3.url) == "200"


def test_bodies_stream_through_the_responder_in_bounded_memory(
    apache: Deployment, path: str, scripted: dict[str, Any]
) -> None:
    if path == "http":
        pytest.skip("the responder is part of the FastCGI path")
    host = apache.hosts["gateway-1"]
    high = host.run(["sh", "-c", "grep VmHWM /proc/$(pidof fastcgi_responder)/status"]).stdout
    # 48 MiB went through it both ways above, and 32 connections at once.
    assert int(high.split()[1]) < 24 * 1024, high
    text = f"import socket; print(socket.create_connection(('{host.address}', {STATS_PORT}))"
    printed = host.run(["python3", "-c", f"{text}.recv(9999).decode())"])
    counters = json.loads(printed.stdout)
    assert counters["active"] == 0
    assert counters["origin_reused"] > counters["origin_opened"]
