import logging
import ssl
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from fake_influx import FakeInflux, InfluxReply
from weighbridge.common.errors import UsageError
from weighbridge.results.influx.server import Away, InfluxConnection, InfluxServer, WriteRefused

TOKEN = "user:planted-secret"
ENVIRONMENT = {"WEIGHBRIDGE_INFLUX_TOKEN": TOKEN}
LINES = ["m,run=r ops=3i 1415102400000", "m,run=r ops=4i 1415102401000"]


def connect(url: str, deadline_s: float = 5.0) -> InfluxConnection:
    return InfluxServer.parse(url, ENVIRONMENT).connect(deadline_s)


def test_a_write_is_one_request_in_milliseconds_with_bucket_organization_and_token() -> None:
    with FakeInflux() as influx, connect(f"{influx.url}/?bucket=weights&org=lab") as connection:
        connection.write(LINES)
    (write,) = influx.writes
    assert write.path == "/api/v2/write"
    assert write.query == {"bucket": "weights", "org": "lab", "precision": "ms"}
    assert write.token == f"Token {TOKEN}"
    assert write.lines == LINES


def test_with_an_empty_token_no_header_is_sent() -> None:
    with (
        FakeInflux() as influx,
        InfluxServer.parse(influx.url, {"WEIGHBRIDGE_INFLUX_TOKEN": ""}).connect() as connection,
    ):
        connection.write(LINES)
    assert influx.writes[0].token is None


@pytest.mark.parametrize("status", [500, 502, 503, 429, 408])
def test_a_server_that_cannot_write_now_is_away_for_as_long_as_it_asks(status: int) -> None:
    answer = InfluxReply(
        status, '{"code":"unavailable","message":"busy\\nnow"}', (("Retry-After", "7"),)
    )
    with (
        FakeInflux(answer) as influx,
        connect(influx.url) as connection,
        pytest.raises(Away, match=f"answered {status}: busy now") as at,
    ):
        connection.write(LINES)
    assert at.value.after_s == 7.0
    assert len(influx.writes) == 1


def test_only_the_reason_of_a_proxys_page_is_shown() -> None:
    page = InfluxReply(503, "\n<html><body><h1>503 Service Unavailable</h1></body></html>")
    with (
        FakeInflux(page) as influx,
        connect(influx.url) as connection,
        pytest.raises(Away, match=r"answered 503: Service Unavailable$"),
    ):
        connection.write(LINES)


def test_a_date_to_retry_at_is_ignored() -> None:
    answer = InfluxReply(503, "", (("Retry-After", "Wed, 21 Oct 2026 07:28:00 GMT"),))
    with FakeInflux(answer) as influx, connect(influx.url) as connection, pytest.raises(Away) as at:
        connection.write(LINES)
    assert at.value.after_s is None


@pytest.mark.parametrize(
    ("status", "advice"),
    [(401, "WEIGHBRIDGE_INFLUX_TOKEN"), (403, "right to "), (404, r"\?bucket=NAME")],
)
def test_a_server_that_refuses_to_write_is_an_error_with_advice(status: int, advice: str) -> None:
    answer = InfluxReply(status, '{"error":"no"}')
    with (
        FakeInflux(answer) as influx,
        connect(influx.url) as connection,
        pytest.raises(WriteRefused, match=advice) as at,
    ):
        connection.write(LINES)
    assert f"answered {status}: no" in at.value.message
    assert not at.value.batch


@pytest.mark.parametrize("status", [400, 413, 422])
def test_lines_that_a_server_refuses_have_its_reason(status: int) -> None:
    answer = InfluxReply(
        status, '{"error":"partial write: field type conflict: input field \\"ops\\" dropped=1"}'
    )
    with (
        FakeInflux(answer) as influx,
        connect(influx.url) as connection,
        pytest.raises(WriteRefused, match="partial write") as at,
    ):
        connection.write(LINES)
    assert at.value.batch


@pytest.mark.parametrize("status", [200, 301])
def test_an_answer_with_another_status_is_no_success(status: int) -> None:
    page = InfluxReply(status, "<html>welcome</html>", (("Location", "http://127.0.0.1:1/"),))
    with (
        FakeInflux(page) as influx,
        connect(influx.url) as connection,
        pytest.raises(WriteRefused, match=f"answered {status}"),
    ):
        connection.write(LINES)


def test_a_server_that_does_not_answer_is_away_after_the_deadline() -> None:
    with (
        FakeInflux(InfluxReply(how="hang")) as influx,
        connect(influx.url, 0.2) as connection,
        pytest.raises(Away, match="timed out"),
    ):
        connection.write(LINES)


def test_an_answer_that_breaks_off_is_no_success() -> None:
    with (
        FakeInflux(InfluxReply(how="torn")) as influx,
        connect(influx.url) as connection,
        pytest.raises(Away),
    ):
        connection.write(LINES)


def test_a_stopped_server_is_away_and_the_same_connection_finds_it_again() -> None:
    with FakeInflux() as influx, connect(influx.url) as connection:
        connection.write(LINES)
        influx.down()
        with pytest.raises(Away, match=influx.url):
            connection.write(LINES)
        influx.up()
        connection.write(LINES)
    assert influx.taken == [*LINES, *LINES]


def test_a_server_with_an_untrusted_certificate_is_sent_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = tmp_path / "c.pem", tmp_path / "k.pem"
    made = (
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    )
    named = ("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1")
    subprocess.run(
        [*made, *named, "-keyout", key, "-out", certificate], check=True, capture_output=True
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with FakeInflux(tls=context) as influx:
        with (
            connect(influx.url) as connection,
            pytest.raises(WriteRefused, match="CERTIFICATE_VERIFY_FAILED") as at,
        ):
            connection.write(LINES)
        assert "SSL_CERT_FILE" in at.value.advice
        assert not influx.writes
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        with connect(influx.url) as connection:
            connection.write(LINES)
        assert influx.taken == LINES


def test_a_token_is_in_no_error_no_text_and_no_log(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    said: list[str] = []
    answers = [
        InfluxReply(401, f"no such user: {TOKEN}"),
        InfluxReply(503, f'{{"message":"{TOKEN}"}}'),
        InfluxReply(how="torn"),
        InfluxReply(),
    ]
    with FakeInflux(*answers) as influx, connect(influx.url) as connection:
        said += [
            str(connection),
            repr(vars(connection)["_server"]),
            repr(InfluxServer.parse(influx.url, ENVIRONMENT)),
        ]
        for _ in answers[:-1]:
            with pytest.raises((Away, WriteRefused)) as at:
                connection.write(LINES)
            said += [str(at.value), repr(at.value), str(at.value.__cause__)]
        connection.write(LINES)
    assert influx.writes[-1].token == f"Token {TOKEN}"
    out, err = capfd.readouterr()
    ours = [record.getMessage() for record in caplog.records if not record.name.startswith("root")]
    assert "planted-secret" not in "".join([*said, *ours, out, err])


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("influx.example:8086", "not of the form http://"),
        ("ftp://influx.example", "not of the form http://"),
        ("http://", "not of the form http://"),
        ("http://h:port", "its host or port is invalid"),
        ("http://h:99999", "its host or port is invalid"),
        ("http://h/?buckt=b", "did you mean 'bucket'"),
        ("http://h/?bucket=", "empty bucket"),
        ("http://user:planted-secret@h", "user or a password"),
        ("user:planted-secret@h", "not of the form http://"),
        ("http://h/?token=planted-secret", "not 'token'"),
        ("http://h/#planted-secret", "not of the form http://"),
        ("http://user:planted-secret", "its host or port is invalid"),
        ("http://planted-secret\u2100@h", "its host or port is invalid"),
    ],
)
def test_an_invalid_url_or_one_with_a_secret_is_refused_without_repeating_it(
    url: str, words: str
) -> None:
    with pytest.raises(UsageError, match=words) as at:
        InfluxServer.parse(url, ENVIRONMENT)
    assert "planted-secret" not in str(at.value)


def test_a_server_has_the_option_that_it_was_parsed_from() -> None:
    for url in (
        "http://h:8086",
        "https://h/influx",
        "http://h:8086?bucket=b&org=o",
        "http://h?bucket=a+b",
    ):
        server = InfluxServer.parse(url, ENVIRONMENT)
        assert server.option == url
        assert InfluxServer.parse(server.option, ENVIRONMENT) == server


def test_a_missing_token_is_an_error_and_an_empty_one_is_not() -> None:
    with pytest.raises(UsageError, match=r"\$WEIGHBRIDGE_INFLUX_TOKEN is not set"):
        InfluxServer.parse("http://h", {})
    assert not InfluxServer.parse(
        "http://h", {"WEIGHBRIDGE_INFLUX_TOKEN": ""}
    ).token.get_secret_value()
    assert InfluxServer.parse("http://h", {"INFLUX_TOKEN": "t"}).token.get_secret_value() == "t"


def test_a_token_is_read_from_a_file_that_only_its_owner_may_read(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("planted-secret\n")
    environment: dict[str, Any] = {"WEIGHBRIDGE_INFLUX_TOKEN_FILE": str(path)}
    path.chmod(0o640)
    with pytest.raises(UsageError, match="others may read it") as at:
        InfluxServer.parse("http://h", environment)
    assert "planted-secret" not in str(at.value)
    path.chmod(0o600)
    assert InfluxServer.parse("http://h", environment).token.get_secret_value() == "planted-secret"


@pytest.mark.parametrize("text", ["", "two words\n", "caf\u00e9"])
def test_a_file_without_a_token_is_an_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "token"
    path.touch(0o600)
    path.write_text(text)
    with pytest.raises(UsageError, match="token"):
        InfluxServer.parse("http://h", {"WEIGHBRIDGE_INFLUX_TOKEN_FILE": str(path)})


def test_connections_leave_no_thread_behind() -> None:
    before = set(threading.enumerate())
    with FakeInflux() as influx:
        served = len(set(threading.enumerate()) - before)
        with connect(influx.url) as connection:
            connection.write(LINES)
        assert served == 1
        assert len(set(threading.enumerate()) - before) <= 2  # the fake's own, of the connection
