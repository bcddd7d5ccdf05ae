import logging
import re
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fake_influx import FakeInflux, InfluxReply
from weighbridge.common.errors import UsageError
from weighbridge.results.influx.server import Away, InfluxConnection, InfluxServer, WriteRefused

TOKEN = "user:planted-secret"
ENVIRONMENT = {"WEIGHBRIDGE_INFLUX_TOKEN": TOKEN}
LINES = ["m,run=r ops=3i 1415102400000", "m,run=r ops=4i 1415102401000"]


def sent(url: str, token: str = TOKEN, deadline_s: float = 5.0) -> InfluxConnection:
    """A closed connection that was given the lines."""
    environment = {"WEIGHBRIDGE_INFLUX_TOKEN": token}
    connection = InfluxServer.parse(url, environment).connect(deadline_s=deadline_s, retry_s=0.01)
    connection.write(LINES)
    connection.close(20)
    assert (connection.given, connection.sent + connection.lost) == (2, 2)
    return connection


def lost(reply: InfluxReply, deadline_s: float = 5.0) -> Away | WriteRefused:
    """The error by which the lines are lost if the server always sends this reply."""
    with FakeInflux(otherwise=reply) as influx:
        connection = sent(influx.url, deadline_s=deadline_s)
    assert connection.lost == 2
    assert connection.error is not None
    return connection.error


def test_a_write_is_one_request_in_milliseconds_with_bucket_organization_and_token() -> None:
    with FakeInflux() as influx:
        assert sent(f"{influx.url}/?bucket=weights&org=lab").sent == 2
    (write,) = influx.writes
    assert write.path == "/api/v2/write"
    assert write.query == {"bucket": "weights", "org": "lab", "precision": "ms"}
    assert write.token == f"Token {TOKEN}"
    assert write.lines == LINES


def test_with_an_empty_token_no_header_is_sent() -> None:
    with FakeInflux() as influx:
        sent(influx.url, token="")
    assert influx.writes[0].token is None


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (InfluxReply(500, '{"code":"unavailable","message":"busy\\nnow"}'), "500: busy now$"),
        (InfluxReply(502), "answered 502"),
        (InfluxReply(503, "", (("Retry-After", "Wed, 21 Oct 2015 07:28:00 GMT"),)), "answered 503"),
        (InfluxReply(429), "answered 429"),
        # Of a proxy's page only the reason is shown.
        (InfluxReply(503, "\n<html><h1>503</h1></html>"), "503: Service Unavailable$"),
        (InfluxReply(how="torn"), "127.0.0.1"),
        (InfluxReply(how="hang"), "timed out"),
    ],
)
def test_a_server_that_cannot_write_now_is_tried_again_and_then_away(
    reply: InfluxReply, words: str
) -> None:
    error = lost(reply, deadline_s=0.2 if reply.how == "hang" else 5.0)
    assert isinstance(error, Away)
    assert re.search(words, error.message)


@pytest.mark.parametrize(
    ("status", "batch", "advice"),
    [
        (401, False, "WEIGHBRIDGE_INFLUX_TOKEN"),
        (403, False, "right to "),
        (404, False, "?bucket=NAME"),
        *((status, True, "") for status in (400, 413, 422)),
    ],
)
def test_a_server_that_refuses_to_write_is_an_error_with_its_reason(
    status: int, batch: bool, advice: str
) -> None:
    error = lost(InfluxReply(status, '{"error":"partial write: input field \\"ops\\" dropped=1"}'))
    assert isinstance(error, WriteRefused)
    assert f'answered {status}: partial write: input field "ops"' in error.message
    assert error.batch is batch
    assert advice in error.advice


def test_an_answer_with_another_status_is_no_success() -> None:
    error = lost(InfluxReply(200, "<html>welcome</html>"))
    assert isinstance(error, WriteRefused)
    assert "answered 200" in error.message
    assert lost(InfluxReply(301, "", (("Location", "http://127.0.0.1:1/"),)))


def test_a_server_with_an_untrusted_certificate_is_sent_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = tmp_path / "c.pem", tmp_path / "k.pem"
    made = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
    named = "-subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1"
    command = [*made.split(), *named.split(), "-keyout", key, "-out", certificate]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with FakeInflux(tls=context) as influx:
        error = sent(influx.url).error
        assert isinstance(error, WriteRefused)
        assert "CERTIFICATE_VERIFY_FAILED" in error.message
        assert "SSL_CERT_FILE" in error.advice
        assert not influx.writes
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        sent(influx.url)
        assert influx.taken == LINES


def test_a_token_is_in_no_error_no_text_and_no_log(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    said: list[str] = []
    answers = [
        InfluxReply(503, f'{{"message":"{TOKEN}"}}'),
        InfluxReply(how="torn"),
        InfluxReply(401, f"no such user: {TOKEN}"),
    ]
    server = InfluxServer.parse("http://h", ENVIRONMENT)
    with FakeInflux(*answers) as influx:
        server = server.model_copy(update={"url": influx.url})
        connection = server.connect(said.append, retry_s=0.01)
        connection.write(LINES)
        connection.close(20)
    assert len(influx.writes) == 3
    assert influx.writes[-1].token == f"Token {TOKEN}"
    out, err = capfd.readouterr()
    ours = [record.getMessage() for record in caplog.records if not record.name.startswith("root")]
    shown = [*said, *ours, out, err, str(connection), repr(server), repr(connection.error)]
    assert "answered 401: no such user: ***" in "".join(shown)
    assert "planted-secret" not in "".join(shown)


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
    wholly = "http://h:8086?bucket=b&org=o"
    for url in ("http://h:8086", "https://h/influx", wholly, "http://h?bucket=a+b"):
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
