"""The SDKs: over TLS they talk only to targets that the given authority vouches for, and boto3 adds
checksums to writes only as it is shipped.
"""

from __future__ import annotations

import hashlib
import queue
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from http.client import HTTPMessage
from pathlib import Path
from typing import Any, Literal

import gevent
import gevent.event
import gevent.queue
import pytest
from pydantic import SecretStr

import weighbridge.drivers.cosbench.loop
import weighbridge.drivers.locust.loop
from null_process import null_process
from tests.common.test_exchange import WRONG_STORAGE_URLS
from tests.drivers.conftest import Bench, always, shape, until
from tests.drivers.rados.conftest import one_kind
from tls_proxy import authority, self_signed, terminated
from weighbridge.common.endpoint import Endpoint, ObjectApi
from weighbridge.common.errors import DriverError, UsageError
from weighbridge.drivers.cosbench.bench import StopRequest
from weighbridge.drivers.cosbench.site import CosbenchSetup, CosbenchSite
from weighbridge.drivers.engine._native import content
from weighbridge.drivers.locust.account import Account, AccountAnswer, NotServing
from weighbridge.drivers.locust.client import Client, S3Client, SwiftClient
from weighbridge.drivers.locust.live_load import refuse_unfit
from weighbridge.drivers.locust.prepared_objects import PreparedObjects
from weighbridge.drivers.locust.sdk import SdkWorkerGroup
from weighbridge.drivers.protocol import Event, Failed, Setup
from weighbridge.results.run.histogram import Histogram
from weighbridge.suites import Objects, Workload


@pytest.fixture(scope="module")
def null() -> Iterator[tuple[str, int]]:
    with null_process(user="ben:ch", key="k") as (_, url):
        yield "127.0.0.1", int(url.rsplit(":", 1)[1])


@pytest.fixture(scope="module")
def served(
    null: tuple[str, int], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[int, Path]]:
    """A port with TLS, whose certificate is for 127.0.0.1, and the authority that signed it."""
    ca, certificate = authority(tmp_path_factory.mktemp("tls"), ["127.0.0.1"])
    with terminated(certificate, null) as port:
        yield port, ca


def opened(api: str, url: str, ca: Path | None) -> tuple[Account, Setup]:
    """An account at the null target over TLS that trusts `ca`, or this machine's authorities."""
    path = "/auth/v1.0" if api == "swift" else ""
    storage = f"{url}/v1/AUTH_test" if api == "swift" else None
    target = Endpoint.model_validate(
        {
            "api": api,
            "url": f"{url}{path}",
            "user": "ben:ch",
            "key": SecretStr("k"),
            "storage_url": storage,
            "ca_file": None if ca is None else str(ca),
        }
    )
    return Account(target, 10), Setup(
        target=target, bucket_prefix="wb-tls", seed=1, request_timeout_s=10
    )


def client(api: str, setup: Setup, account: Account) -> Client:
    return SwiftClient(setup, account) if api == "swift" else S3Client(setup, account, 1)


@pytest.mark.parametrize("api", ["s3", "swift"])
def test_a_target_with_a_certificate_of_the_authority_is_used(
    served: tuple[int, Path], api: str
) -> None:
    account, setup = opened(api, f"https://127.0.0.1:{served[0]}", served[1])
    account.authenticate()
    account.make_bucket("b")
    client(api, setup, account).write("b", "o", b"x", 1)
    assert client(api, setup, account).head("b", "o") == 1


@pytest.mark.parametrize("api", ["s3", "swift"])
@pytest.mark.parametrize("why", ["unknown authority", "other name"])
def test_a_target_with_an_untrusted_certificate_or_another_name_gets_no_request(
    served: tuple[int, Path], api: str, why: str
) -> None:
    port, ca = served
    url, given = (
        (f"https://127.0.0.1:{port}", None)
        if why == "unknown authority"
        else (f"https://localhost:{port}", ca)
    )
    account, setup = opened(api, url, given)
    with pytest.raises(DriverError, match="certificate"):
        account.make_bucket("b")
    account.keys = (*account.keys[:2], "t")
    with pytest.raises(Exception, match=r"(?i)certificate|hostname 'localhost' doesn't match"):
        client(api, setup, account).head("b", "o")


TAGGED = b'HTTP/1.1 200 OK\r\nContent-Length: 0\r\nETag: "e"\r\n\r\n'


@pytest.mark.parametrize("checksums", [False, True])
def test_checksums_are_sent_if_the_sdk_may_do_as_it_is_shipped(
    scripted: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, checksums: bool
) -> None:
    # Whatever the environment and the files of the AWS tools say.
    other = "when_required" if checksums else "when_supported"
    monkeypatch.setenv("AWS_REQUEST_CHECKSUM_CALCULATION", other)
    monkeypatch.setenv("AWS_RETRY_MODE", "adaptive")  # it slows down by itself
    (tmp_path / "config").write_text(
        "[default]\n[default]\ns3 =\n  payload_signing_enabled = true\n"
    )
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    served = scripted(always(TAGGED))
    target = Endpoint(api="s3", url=served.url, user="AK", key=SecretStr("SK"))
    setup = Setup(target=target, bucket_prefix="wb-sdk", seed=1)
    client = S3Client(setup, Account(target, 10), 1, checksums=checksums)
    assert client.write("wb-sdk-w-0", "o", b"123456789", 9) == '"e"'
    [head] = served.asked
    assert (b"\r\nx-amz-checksum-crc32: y/Q5Jg==\r\n" in head) == checksums
    assert (b"checksum" in head.lower()) == checksums
    assert b"retry-mode#adaptive" not in head


def test_over_https_the_checksum_is_a_trailer_of_chunks(
    scripted: Callable[..., Any], tmp_path: Path
) -> None:
    ca, certificate = authority(tmp_path, ["127.0.0.1"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    served = scripted(always(TAGGED, keep=False), context)
    url = f"https://127.0.0.1:{served.port}"
    target = Endpoint(api="s3", url=url, user="AK", key=SecretStr("SK"), ca_file=str(ca))
    setup = Setup(target=target, bucket_prefix="wb-sdk", seed=1)
    S3Client(setup, Account(target, 10), 1, checksums=True).write("b", "o", b"123456789", 9)
    [head] = served.asked
    assert {
        b"transfer-encoding: chunked",
        b"content-encoding: aws-chunked",
        b"x-amz-trailer: x-amz-checksum-crc32",
        b"x-amz-content-sha256: streaming-unsigned-payload-trailer",
    } <= {*head.lower().split(b"\r\n")}
    # Nor is there a length of what is sent, which radosgw before 18 wants (411).
    assert b"\r\ncontent-length:" not in head.lower()


STOPPED = """
import gevent
from types import SimpleNamespace
from gevent.pool import Group
from locust.env import Environment
from weighbridge.drivers.locust.sdk import Outcome
from weighbridge.drivers.locust.users import SdkWorkerUser

begun, ended = [], []

def request(index):
    begun.append(index)
    gevent.sleep(0)
    gevent.sleep(0)
    ended.append(index)
    return Outcome("read", 1.0)

sdk = SimpleNamespace(
    request=request, wait_s=lambda index: 0.0, workload=SimpleNamespace(name="tried")
)
SdkWorkerUser.process = SimpleNamespace(
    sdk=sdk, user_joins=lambda: 0, user_leaves=lambda index: None
)
for turns in range(60):  # At turn 0 the user has not begun.
    users, user = Group(), SdkWorkerUser(Environment())
    user.start(users)
    for _ in range(turns):
        gevent.sleep(0)
    user.stop()
    users.join(5)
    users.kill()
assert len(begun) > 60
print(len(begun) - len(ended))
"""


def test_no_user_that_is_stopped_between_requests_is_killed_in_its_next_one() -> None:
    done = subprocess.run(
        [sys.executable, "-c", STOPPED], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "0\n", done.stdout + done.stderr


def workload(**keys: Any) -> Workload:
    return one_kind(**{"objects": {"size": 1000}, "workers": [1], **keys})


@pytest.mark.parametrize(
    ("keys", "api", "users", "says"),
    [
        ({"rate_per_s": 100}, "s3", "engine", "how many workers"),
        ({"operations": {"delete": 1}}, "s3", "engine", "only deletes"),
        ({"operations": {"tag": 1}}, "swift", "engine", "swift API has no tag"),
        ({"operations": {"copy": 1, "read": 1}}, "s3", "sdk", "copy"),
        ({"connections": "per-request"}, "s3", "sdk", "connections"),
    ],
)
def test_a_workload_that_these_users_cannot_replay_is_refused(
    keys: dict[str, Any], api: ObjectApi, users: Literal["engine", "sdk"], says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        refuse_unfit(workload(**keys), api, users)
    mix = workload(operations={"read": 5, "write": 3, "delete": 1, "head": 1, "list": 1})
    refuse_unfit(mix, api, users)


Make = Callable[..., Any]
TOKEN = "AUTH_tk0123456789abcdef"


def repeating(connection: socket.socket, head: bytes) -> bool:
    """Answer with what was sent; a request for a token gets one."""
    place = connection.getsockname()[1]
    if b"X-Auth-User" in head:
        answer = f"200 OK\r\nX-Auth-Token: {TOKEN}\r\nX-Storage-Url: http://127.0.0.1:{place}/v1/a"
        connection.sendall(f"HTTP/1.1 {answer}\r\nContent-Length: 0\r\n\r\n".encode())
        return True
    sent = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"x-auth-token"))
    body = b"you sent " + sent
    length = f"HTTP/1.1 500 X\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    connection.sendall(length + body)
    return True


def test_the_engine_keeps_tokens_out_of_its_last_error(scripted: Make, bench: Make) -> None:
    engine: Bench = bench(scripted(repeating), shape(), api="swift", base_path="/v1/a", token=TOKEN)
    engine.engine.add_worker(0, 1, 0)
    until(lambda: engine.progress["failed"] >= 2, "failures")
    assert engine.progress["last_error"].endswith("you sent X-Auth-Token: ***")
    engine.engine.renew_keys(("", "", TOKEN[::-1]))
    failed = engine.progress["failed"]
    until(lambda: engine.progress["failed"] >= failed + 2, "failures with another token")
    assert engine.progress["last_error"].endswith("you sent X-Auth-Token: ***")


@pytest.mark.parametrize("url", WRONG_STORAGE_URLS)
def test_a_storage_url_that_cannot_be_one_is_refused_in_words(scripted: Make, url: str) -> None:
    def odd(connection: socket.socket, _head: bytes) -> bool:
        fields = f"X-Auth-Token: {TOKEN}\r\nX-Storage-Url: {url}\r\nContent-Length: 0"
        connection.sendall(f"HTTP/1.1 200 OK\r\n{fields}\r\n\r\n".encode())
        return True

    place = f"http://127.0.0.1:{scripted(odd).port}/auth/v1.0"
    target = Endpoint(api="swift", url=place, user="u", key=SecretStr("k" * 20))
    with pytest.raises(DriverError) as error:
        Account(target, 10.0).authenticate()
    assert str(error.value).startswith(f"{place}: its X-Storage-Url cannot be used: ")
    assert "planted" not in str(error.value)


def test_no_beginning_of_a_secret_is_in_an_answer_that_is_cut() -> None:
    secret = "planted-secret-" * 4
    answer = AccountAnswer(403, HTTPMessage(), f"{'x ' * 80}{secret}".encode(), (secret,))
    assert "planted" not in str(answer)


def test_what_an_account_cannot_do_is_said_without_its_token(scripted: Make) -> None:
    port = scripted(repeating).port
    target = Endpoint(
        api="swift", url=f"http://127.0.0.1:{port}/auth/v1.0", user="u", key=SecretStr("k" * 20)
    )
    account = Account(target, 10.0)
    account.authenticate()
    assert account.token == TOKEN
    with pytest.raises(DriverError, match=r"cannot be created: HTTP 500: you sent .*: \*\*\*$"):
        account.make_bucket("b")


@pytest.mark.parametrize("api", ["s3", "swift"])
def test_a_target_whose_answers_are_503_does_not_serve(scripted: Make, api: str) -> None:
    busy = always(b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\n\r\n")
    given = {"token": SecretStr("given")} if api == "swift" else {}
    target = Endpoint.model_validate(
        {"api": api, "url": scripted(busy).url, "user": "u", "key": SecretStr("k"), **given}
    )
    with pytest.raises(NotServing, match="HTTP 503"):
        Account(target, 10.0).check_serves()


SIZE, SEED = 1000, 11
BODY = content(SEED, SIZE, 0, SIZE)
SETUP = Setup(
    target=Endpoint(api="s3", url="http://127.0.0.1:9", user="u", key=SecretStr("k")),
    bucket_prefix="wb-test",
    seed=SEED,
)


class FakeClient:
    """Answers as a test says, after `pause_s`, but not while it is held."""

    def __init__(self) -> None:
        self.body, self.etag, self.keys, self.size = BODY, hashlib.md5(BODY).hexdigest(), 10, SIZE
        self.fault: Exception | None = None
        self.pause_s = 0.002
        self.free = gevent.event.Event()
        self.free.set()
        self.held = 0

    def _wait(self) -> None:
        gevent.sleep(self.pause_s)
        if not self.free.is_set():
            self.held += 1
            self.free.wait()
        if self.fault is not None:
            raise self.fault

    def read(self, bucket: str, name: str) -> Iterator[bytes]:
        self._wait()
        yield self.body

    def write(self, bucket: str, name: str, body: bytes, size: int) -> str:
        self._wait()
        return f'"{self.etag}"'

    def list(self, bucket: str) -> int:
        self._wait()
        return self.keys

    def head(self, bucket: str, name: str) -> int:
        self._wait()
        return self.size

    def classify(self, error: Exception) -> str | None:
        return None


MakeGroup = Callable[..., SdkWorkerGroup]


@pytest.fixture
def sdk_client() -> FakeClient:
    return FakeClient()


@pytest.fixture
def group(sdk_client: FakeClient, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeGroup]:
    made: list[SdkWorkerGroup] = []

    def make(operation: str, **keys: Any) -> SdkWorkerGroup:
        workload = Workload.model_validate(
            {
                "name": "w",
                "objects": Objects(size=SIZE, per_container=10),
                "operations": {operation: 1},
                "workers": (1,),
                "runtime": 1.0,
            }
            | keys
        )
        made.append(SdkWorkerGroup(SETUP, Account(SETUP.target, 1.0), workload, 4))
        monkeypatch.setattr(made[-1], "_client", lambda: sdk_client)
        return made[-1]

    yield make
    sdk_client.free.set()
    for one in made:
        one.stop(0.0)


def until_then(condition: Callable[[], bool]) -> None:
    with gevent.Timeout(20):
        while not condition():
            gevent.sleep(0.001)


def work(group: SdkWorkerGroup, index: int) -> None:
    while group.request(index) is not None:
        gevent.sleep(group.wait_s(index))


def start(group: SdkWorkerGroup, workers: int) -> None:
    for index in range(workers):
        group.add_worker(index, workers, 0)
        gevent.spawn(work, group, index)
    until_then(lambda: group.progress().started == workers)


def test_requests_in_flight_when_the_window_closes_are_recorded_by_age(
    group: MakeGroup, sdk_client: FakeClient
) -> None:
    reads = group("read")
    start(reads, 3)
    reads.open_window()
    sdk_client.free.clear()
    until_then(lambda: sdk_client.held == 3)
    gevent.sleep(0.05)
    reads.close_window()
    closed = reads.snapshot()
    (tally,) = closed.tallies
    assert tally.in_flight is not None
    assert Histogram.decode(tally.in_flight).count == 3
    assert (tally.in_flight_max_us or 0) >= 50_000
    assert (tally.busy_us or 0) / (3e6 * closed.window_s) == pytest.approx(1, abs=0.1)
    sdk_client.free.set()
    done = reads.progress().done
    until_then(lambda: reads.progress().done > done + 5)
    assert reads.snapshot() == closed


def test_failures_and_the_pauses_after_them_count_as_time_of_their_workers(
    group: MakeGroup, sdk_client: FakeClient
) -> None:
    sdk_client.fault = OSError("no")
    reads = group("read")
    start(reads, 2)
    reads.open_window()
    failed = reads.progress().failed
    until_then(lambda: reads.progress().failed > failed + 40)
    reads.close_window()
    closed = reads.snapshot()
    (tally,) = closed.tallies
    assert (tally.busy_us or 0) / (2e6 * closed.window_s) == pytest.approx(1, abs=0.15)


def test_at_a_rate_requests_not_sent_in_time_are_in_flight_too(
    group: MakeGroup, sdk_client: FakeClient
) -> None:
    reads = group("read", rate_per_s=100)
    start(reads, 1)
    reads.open_window()
    sdk_client.free.clear()
    until_then(lambda: sdk_client.held == 1)
    gevent.sleep(0.1)
    reads.close_window()
    closed = reads.snapshot()
    (tally,) = closed.tallies
    assert tally.in_flight is not None
    count = Histogram.decode(tally.in_flight).count
    assert count == pytest.approx(100 * (tally.in_flight_max_us or 0) / 1e6, abs=2)
    assert count >= 10
    assert closed.behind_us == pytest.approx((tally.in_flight_max_us or 0) - 10_000, abs=200)
    assert closed.begun is not None
    assert closed.begun <= tally.count + 1


def test_a_request_whose_user_is_ended_counts_as_cut_off(
    group: MakeGroup, sdk_client: FakeClient
) -> None:
    reads = group("read")
    reads.add_worker(0, 1, 0)
    user = gevent.spawn(work, reads, 0)
    until_then(lambda: reads.progress().started == 1)
    sdk_client.free.clear()
    until_then(lambda: sdk_client.held == 1)
    user.kill()
    reads.remove_worker(0)
    assert reads.progress().running == 0
    assert reads.stop(0.0) == 1


@pytest.mark.parametrize(
    ("operation", "wrong", "error"),
    [
        ("write", {"etag": "0" * 32}, "wrong-etag"),
        ("write", {"etag": "0" * 32 + "-2"}, None),
        ("list", {"keys": 9}, "bad-list"),
        ("list", {"keys": 1001}, "bad-list"),
        ("head", {"size": SIZE - 1}, "wrong-length"),
        ("read", {"body": BODY[::-1]}, "wrong-content"),
        ("read", {}, None),
        ("write", {}, None),
        ("list", {}, None),
        ("head", {}, None),
    ],
)
def test_a_success_must_have_the_expected_content(
    group: MakeGroup,
    sdk_client: FakeClient,
    operation: str,
    wrong: dict[str, object],
    error: str | None,
) -> None:
    for name, value in wrong.items():
        setattr(sdk_client, name, value)
    one = group(operation, verify=1.0)
    start(one, 1)
    until_then(lambda: one.progress().done + one.progress().failed >= 3)
    assert set(one.progress().errors) == ({error} if error else set())


def test_a_share_of_reads_is_verified(group: MakeGroup, sdk_client: FakeClient) -> None:
    sdk_client.body, sdk_client.pause_s = BODY[::-1], 0.0
    reads = group("read", verify=0.2)
    start(reads, 1)
    until_then(lambda: reads.progress().done + reads.progress().failed >= 200)
    assert 0.1 < reads.progress().failed / (reads.progress().done + reads.progress().failed) < 0.3


TARGET = Endpoint(
    api="s3",
    url="http://127.0.0.1:9",
    user="u",
    key=SecretStr("planted-key"),
    token=SecretStr("planted/token"),
)
SITE = CosbenchSite(
    controller="http://127.0.0.1:9", archive="/nowhere", password=SecretStr("planted-password")
)
LAST_WORDS_SETUP = Setup(target=TARGET, bucket_prefix="wb-x", seed=1)


def raises(*_: Any) -> None:
    raise ValueError("Invalid header value b'planted-key' of planted%2Ftoken")


def raises_more(*_: Any) -> None:
    raise ValueError("Invalid header value b'planted-key' of planted%2Ftoken by 'planted-password'")


def by_locust(events: list[Event], monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(weighbridge.drivers.locust.loop, "PreparedObjects", raises)
    inbox = gevent.queue.Queue()
    inbox.put(LAST_WORDS_SETUP.model_dump_json().encode())
    return weighbridge.drivers.locust.loop.LocustLoop(inbox, events.append).run()


def by_cosbench(events: list[Event], monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(weighbridge.drivers.cosbench.loop, "Cosbench", raises_more)
    inbox: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    inbox.put(CosbenchSetup(**dict(LAST_WORDS_SETUP), site=SITE).model_dump_json().encode())
    return weighbridge.drivers.cosbench.loop.CosbenchLoop(inbox, events.append, StopRequest()).run()


@pytest.mark.parametrize("driven", [by_locust, by_cosbench])
def test_a_librarys_message_is_reported_without_keys(
    driven: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    events: list[Event] = []
    assert driven(events, monkeypatch) == 3
    (failed,) = events
    assert isinstance(failed, Failed)
    assert failed.message.startswith("ValueError: Invalid header value")
    assert "Traceback" in caplog.text
    assert "planted" not in failed.message + caplog.text


def trusting(certificate: Path, port: int, host: str = "localhost") -> Account:
    target = Endpoint(
        api="s3",
        url=f"https://{host}:{port}",
        user="ben:ch",
        key=SecretStr("k"),
        ca_file=str(certificate),
    )
    return Account(target, 10)


def test_a_certificate_that_signed_itself_is_trusted_by_name_as_openssl_does(
    null: tuple[str, int], tmp_path: Path
) -> None:
    certificate = self_signed(tmp_path / "own.pem", "DNS:localhost,IP:127.0.0.1")
    other = self_signed(tmp_path / "other.pem", "DNS:localhost")
    with terminated(certificate, null) as port:
        trusting(certificate, port).shake_hands()
        with pytest.raises(
            DriverError, match=r"the engine refuses its TLS: .*invalid peer certifi"
        ):
            trusting(other, port).shake_hands()


@pytest.mark.parametrize(
    ("names", "why"),
    [
        ("DNS:store.example", "not valid for name"),
        # Python takes a common name where there is no other; rustls does not.
        ("", "not valid for|NotValidForName|UnsupportedNameType"),
    ],
)
def test_what_the_engine_refuses_is_said_before_anything_is_made(
    null: tuple[str, int], tmp_path: Path, names: str, why: str
) -> None:
    certificate = self_signed(tmp_path / "own.pem", names)
    with terminated(certificate, null) as port:
        target = trusting(certificate, port)._target
        objects = PreparedObjects(Setup(target=target, bucket_prefix="wb-tls", seed=1))
        with pytest.raises(DriverError, match=why):
            objects.reach()


def test_a_name_that_does_not_resolve_is_not_said_to_refuse_tls(tmp_path: Path) -> None:
    account = trusting(self_signed(tmp_path / "own.pem", ""), 443, host="store.invalid")
    with pytest.raises(DriverError, match=r"^store\.invalid: "):
        account.shake_hands()


def test_a_server_that_never_answers_tls_is_given_up(tmp_path: Path) -> None:
    certificate = self_signed(tmp_path / "own.pem", "DNS:localhost")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        account = trusting(certificate, silent.getsockname()[1])
        account._timeout_s = 0.2
        with pytest.raises(DriverError, match=r"no TLS within 0\.200 s"):
            account.shake_hands()
