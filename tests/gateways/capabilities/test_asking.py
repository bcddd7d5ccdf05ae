"""The conductor's side: a program on a host that answers line by line, and gateways that die."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from http_stub import Closed, Request, Respond, Response
from tests.gateways.capabilities.memory_store import PREFIX, MemoryStore, memory_store
from tests.mutation import Dice, bounded, cases, wrong_json
from weighbridge.common.errors import ServiceFailed
from weighbridge.common.host import Command
from weighbridge.common.program_lines import NoLine
from weighbridge.gateways.capabilities import asking
from weighbridge.gateways.capabilities.asking import CAPABILITIES, Asked, ask_all, reply_of
from weighbridge.gateways.capabilities.capability import (
    Answer,
    CapabilityMatrix,
    LayoutAnswers,
    cell,
    footnotes,
    matrix_csv,
)
from weighbridge.gateways.capabilities.session import checksum
from weighbridge.topologies.fake import FakeHost

ASKED = ("s3-delete", "s3-copy", "swift-put")
DELETE = (CAPABILITIES["s3-delete"],)


@pytest.fixture
def store() -> Iterator[MemoryStore]:
    with memory_store() as store:
        yield store


class Odd(FakeHost):
    """A host whose program may be another one."""

    program = ""

    def module(self, name: str, *arguments: str) -> Command:
        if not self.program:
            return super().module(name, *arguments)
        return Command((sys.executable, "-c", self.program))


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Odd]:
    host = Odd("client-1", "127.0.0.1", tmp_path)
    yield host
    host.close()


def asked_of(
    store: MemoryStore,
    client: FakeHost,
    tmp_path: Path,
    *,
    check: Callable[[], None] = lambda: None,
    deadline_s: float = 60,
    keys: tuple[str, ...] = ASKED,
) -> Asked:
    asked = Asked()
    ask_all(
        client,
        store.endpoints,
        [CAPABILITIES[key] for key in keys],
        asked,
        prefix=PREFIX,
        own=False,
        check=check,
        log=tmp_path / "asking.log",
        deadline_s=deadline_s,
    )
    assert {*store.s3.buckets, *store.swift.buckets} <= set(asked.buckets)
    assert asked.answers.keys() == set(keys)
    return asked


def test_each_capability_is_asked_once_by_one_program_on_the_client(
    store: MemoryStore, client: Odd, tmp_path: Path
) -> None:
    asked = asked_of(store, client, tmp_path)
    assert {answer.outcome for answer in asked.answers.values()} == {"works"}
    assert asked.died is None
    assert (tmp_path / "asking.log").read_text() == ""


NOT_SERVED = "the s3 API has not answered since s3-delete was asked"


@pytest.mark.parametrize(
    ("crash_at", "is_noticed", "said"),
    [
        ("x-amz-copy-source", True, "radosgw on gateway-1 had ended"),
        ("host", False, NOT_SERVED),
    ],
)
def test_a_daemon_that_dies_is_named_and_the_rest_is_not_asked(
    crash_at: str,
    is_noticed: bool,
    said: str,
    store: MemoryStore,
    client: Odd,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(asking, "_DIES_WITHIN_S", 0.1)
    dead = []

    def crash(request: Request, respond: Respond) -> Response:
        if dead or crash_at in request.headers:
            dead.append(request)
            raise Closed
        return respond(request)

    def check() -> None:
        if dead and is_noticed:
            log = "/logs/radosgw.out"
            raise ServiceFailed("gateway-1", "radosgw", "has ended", log=log, tail=["SIGSEGV"])

    store.server.between = crash
    asked = asked_of(store, client, tmp_path, check=check)
    blamed, rest = ("unknown", f"{said} when this was asked"), ("unknown", f"not asked: {said}")
    before = [("works", "")] if is_noticed else []
    answered = [(asked.answers[key].outcome, asked.answers[key].text) for key in ASKED]
    assert answered == [*before, blamed, rest, rest][: len(ASKED)]
    assert ("/logs/radosgw.out" if is_noticed else NOT_SERVED) in str(asked.died)


def test_a_store_that_leaves_three_questions_unanswered_is_asked_no_more(
    store: MemoryStore, client: Odd, tmp_path: Path
) -> None:
    def silent(request: Request, respond: Respond) -> Response:
        if "authorization" in request.headers:
            store.server.released.wait()
        return respond(request)

    store.server.between = silent
    keys = tuple(CAPABILITIES)[:4]
    try:
        asked = asked_of(store, client, tmp_path, deadline_s=0.5, keys=keys)
    finally:
        store.server.released.set()
    said = f"the s3 API did not answer 3 questions in a row, up to {keys[2]}"
    assert str(asked.died) == said
    assert asked.answers[keys[3]].text == f"not asked: {said}"


GOOD = {"key": "s3-delete", "answer": {"outcome": "works"}, "alive": True}
LOOP = "import sys\nsys.stdin.readline()\nfor line in sys.stdin:\n    print({!r}, flush=True)"


@pytest.mark.parametrize(
    "program",
    [
        "pass",
        "import sys; sys.exit(3)",
        LOOP.format("no JSON"),
        LOOP.format(json.dumps({**GOOD, "key": "s3-copy-replace"})),
        LOOP.format(json.dumps({**GOOD, "answer": {"outcome": "perfect"}})),
        LOOP.format("x").replace("'x'", "'x' * 2_000_000"),
        "import sys\nsys.stdin.read()",
    ],
)
@pytest.mark.long
def test_a_program_that_fails_or_babbles_makes_nothing_work(
    program: str, store: MemoryStore, client: Odd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "_GRACE_S", 0.3)
    monkeypatch.setattr(asking, "ALIVE_WITHIN_S", 0.1)
    client.program = program
    asked = asked_of(store, client, tmp_path, deadline_s=0.1)
    assert {answer.outcome for answer in asked.answers.values()} == {"unknown"}


def test_every_capability_says_what_it_asks_in_one_line_and_what_is_dangerous_is_last() -> None:
    for key, capability in CAPABILITIES.items():
        assert key == capability.key
        assert key.startswith(f"{capability.api}-")
        for text in (capability.title, capability.asks, capability.group):
            assert text.strip()
            assert "\n" not in text
    titles = {(each.api, each.group, each.title) for each in CAPABILITIES.values()}
    assert len(titles) == len(CAPABILITIES)
    dangerous = [each.key for each in asking.in_order(CAPABILITIES) if each.dangerous]
    assert dangerous == [asking.in_order(CAPABILITIES)[-1].key] == ["swift-formpost"]


def test_cells_say_how_it_ended_footnotes_why_and_the_csv_file_all_without_a_formula() -> None:
    ignored = Answer(outcome="wrong", status=200, text="=ignored")
    answers = (
        Answer(outcome="works"),
        Answer(outcome="refused", status=501, code="NotImplemented"),
        *(ignored, ignored),
        Answer(outcome="unknown", text="no answer"),
    )
    layouts = tuple(
        LayoutAnswers(layout=f"layout-{n}", release="any-1", answers={"s3-delete": answer})
        for n, answer in enumerate(answers)
    )
    matrix = CapabilityMatrix(
        asked_at="", hardware="lab-cpu", weighbridge_version="1", layouts=layouts
    )
    assert [cell(each) for each in (*answers, None)] == ["P", "– 501", "!", "!", "?", "·"]
    assert footnotes(matrix, DELETE) == (
        "! s3-delete: layout-2, layout-3: 200: =ignored",
        "? s3-delete: layout-4: no answer",
    )
    line = "layout-2,any-1,s3-delete,s3,objects,DELETE,wrong,200,,'=ignored"
    assert matrix_csv(matrix, DELETE).splitlines()[3] == line


@pytest.mark.parametrize(
    ("algorithm", "value"),
    [("crc32", 0xCBF43926), ("crc32c", 0xE3069283), ("crc64nvme", 0xAE8B14860A799888)],
)
def test_checksums_have_their_published_check_values(algorithm: str, value: int) -> None:
    raw = base64.b64decode(checksum(algorithm, b"123456789"))
    assert int.from_bytes(raw, "big") == value


REFUSED = {"outcome": "refused", "status": 501, "code": "NotImplemented", "text": "not here"}


@cases
def test_any_line_is_a_reply_with_harmless_text_or_refused(dice: Dice) -> None:
    line = wrong_json(dice, {**GOOD, "answer": REFUSED})
    with bounded():
        try:
            reply = reply_of(line, "s3-delete")
        except NoLine:
            return
    assert reply.key == "s3-delete"
    assert reply.answer.why.isprintable()
    assert len(reply.answer.why) < 300
