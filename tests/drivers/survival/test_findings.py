"""What a read object and its listing mean, by what was expected."""

from __future__ import annotations

import math
import socket
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import SecretStr, ValidationError

from load_history import operation
from weighbridge.common.endpoint import Endpoint
from weighbridge.drivers.survival import Expected, Operation, WriteOrder, expected_after
from weighbridge.drivers.survival.bodies import PIECE_BYTES, SECTOR_BYTES, Bodies
from weighbridge.drivers.survival.connection import Answer, Connection, NoAnswer, Place
from weighbridge.drivers.survival.judge import Sight, counted, judged, listing_finding
from weighbridge.results.run.durability import Finding

STATES: dict[str, dict[str, Any]] = {
    "written": {"acknowledged": "written", "allowed": (2,), "may_be_absent": False},
    "overwritten in flight": {"acknowledged": "written", "allowed": (1, 2), "may_be_absent": False},
    "deleted in flight": {"acknowledged": "written", "allowed": (2,), "may_be_absent": True},
    "deleted": {"acknowledged": "deleted", "allowed": (), "may_be_absent": True},
    "rewritten in flight": {"acknowledged": "deleted", "allowed": (2,), "may_be_absent": True},
    "never": {"acknowledged": "nothing", "allowed": (1, 2), "may_be_absent": True},
}
SIGHTS = {
    "v2": Sight("version", 2, ""),
    "v1": Sight("version", 1, ""),
    "gone": Sight("absent", None, ""),
    "torn": Sight("torn", None, ""),
    "wrong": Sight("wrong", None, ""),
    "mute": Sight("unreadable", None, ""),
}
UNREAD: dict[str, Finding] = {"mute": "unreadable"}
DAMAGE: dict[str, Finding] = {"torn": "torn", "wrong": "wrong", **UNREAD}
BACK: dict[str, Finding] = {"v1": "undead", "torn": "undead", "wrong": "undead", **UNREAD}
WANTED: dict[str, dict[str, Finding]] = {
    "written": {"v1": "stale", "gone": "lost", **DAMAGE},
    "overwritten in flight": {"gone": "lost", **DAMAGE},
    "deleted in flight": {"v1": "stale", **DAMAGE},
    "deleted": {"v2": "undead", **BACK},
    "rewritten in flight": BACK,
    "never": {"torn": "wrong", "wrong": "wrong"},
}


def expected(state: str, **given: Any) -> Expected:
    usual = {"api": "swift", "container": "wb-x", "name": "n", "size_bytes": 4096}
    return Expected.model_validate(usual | STATES[state] | given)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("sight", SIGHTS)
def test_a_read_has_the_finding_that_its_object_allows(state: str, sight: str) -> None:
    found = judged(expected(state), SIGHTS[sight])
    assert found.finding == WANTED[state].get(sight)
    counted([(found, None)])  # raises where the numbers do not add up


@pytest.mark.parametrize(
    ("state", "sight", "listed", "finding"),
    [
        ("written", "v2", True, None),
        ("written", "v2", False, "not-listed"),
        ("overwritten in flight", "v1", False, "not-listed"),
        ("written", "v1", False, None),  # stale: counted by its read
        ("written", "mute", False, None),
        ("written", "gone", True, "listed-lost"),
        ("written", "gone", False, None),
        ("deleted in flight", "v2", False, None),
        ("deleted in flight", "gone", True, None),
        ("deleted", "gone", True, "listed-deleted"),
        ("deleted", "gone", False, None),
        ("deleted", "v1", True, None),  # undead
        ("rewritten in flight", "gone", True, None),
        ("never", "v1", False, None),
        ("never", "gone", True, None),
    ],
)
def test_a_listing_has_a_finding_where_it_contradicts_what_is_sure(
    state: str, sight: str, listed: bool, finding: Finding | None
) -> None:
    found = judged(expected(state), SIGHTS[sight])
    assert listing_finding(found, listed=listed) == finding


def test_objects_are_counted_by_kind_and_those_never_acknowledged_apart() -> None:
    found = [
        (judged(expected("written", in_flight=True), SIGHTS["v2"]), "not-listed"),
        (judged(expected("never", in_flight=True), SIGHTS["wrong"]), None),
        (judged(expected("deleted", api="s3"), SIGHTS["v1"]), None),
    ]
    s3, swift = counted(found)  # type: ignore[arg-type]
    assert (s3.api, s3.deleted, s3.undead, s3.acknowledged) == ("s3", 1, 1, 0)
    assert (swift.acknowledged, swift.unacknowledged, swift.in_flight) == (1, 1, 1)
    assert (swift.wrong, swift.not_listed) == (1, 1)


def test_the_newest_copy_decides_between_lost_and_stale_alone() -> None:
    gone = SIGHTS["gone"]
    assert judged(expected("written"), gone, SIGHTS["v2"]).finding == "stale"
    assert judged(expected("written"), gone, SIGHTS["torn"]).finding == "torn"
    assert judged(expected("written"), gone, gone).finding == "lost"
    assert judged(expected("written"), gone, SIGHTS["mute"]).finding == "lost"
    assert judged(expected("written"), SIGHTS["v1"], SIGHTS["v2"]).finding == "stale"


LATE = 1000.0


REFUSED = {"acknowledged": False, "error": "503"}
UNANSWERED = {"acknowledged": False, "answered_s": None, "error": "timed out"}
ONE, TWO, THREE, GONE = operation(1), operation(2), operation(3), operation(2, "delete")
MUTE, BUSY = operation(2, **UNANSWERED), operation(2, **REFUSED)
KEPT = operation(2, "delete", **REFUSED)


@pytest.mark.parametrize(
    ("operations", "since", "until", "acknowledged", "allowed", "absent", "older", "in_flight"),
    [
        pytest.param([ONE, TWO], LATE, LATE, "written", (2,), False, (1,), False, id="the last"),
        pytest.param([ONE, GONE], LATE, LATE, "deleted", (), True, (1,), False, id="a deletion"),
        pytest.param([ONE, GONE, THREE], LATE, LATE, "written", (3,), False, (1,), False, id="new"),
        # What was in flight may have happened or not.
        pytest.param([ONE, TWO], 2.2, 2.2, "written", (1, 2), False, (), True, id="an overwrite"),
        pytest.param([ONE, GONE], 2.2, 2.2, "written", (1,), True, (), True, id="a delete"),
        # So may what was sent or answered while the mark was made, also at its very moment.
        pytest.param([ONE, TWO], 1.9, 2.7, "written", (1, 2), False, (), True, id="sent"),
        pytest.param([ONE, TWO], 2.3, 2.7, "written", (1, 2), False, (), True, id="answered"),
        pytest.param([ONE], 1.5, 1.5, "nothing", (1,), True, (), True, id="the very moment"),
        # What was sent after the cut did not happen.
        pytest.param([ONE, TWO], 1.8, 1.8, "written", (1,), False, (), False, id="after"),
        # What failed stays possible; what was answered is not in flight.
        pytest.param([ONE, BUSY], LATE, LATE, "written", (1, 2), False, (), False, id="refused"),
        pytest.param([ONE, KEPT], LATE, LATE, "written", (1,), True, (), False, id="not deleted"),
        pytest.param([ONE, MUTE, THREE], LATE, LATE, "written", (2, 3), False, (1,), True, id="2"),
        pytest.param(
            [operation(1, **UNANSWERED)], LATE, LATE, "nothing", (1,), True, (), True, id="never"
        ),
    ],
)
def test_what_may_be_there_follows_from_what_was_acknowledged_before(
    operations: list[Operation],
    since: float,
    until: float,
    acknowledged: str,
    allowed: tuple[int, ...],
    absent: bool,
    older: tuple[int, ...],
    in_flight: bool,
) -> None:
    (one,) = expected_after(operations, since, until)
    state = (one.acknowledged, one.allowed, one.may_be_absent, one.older, one.in_flight)
    assert state == (acknowledged, allowed, absent, older, in_flight)


def test_objects_of_one_name_in_other_containers_and_apis_are_others() -> None:
    one, two, three = operation(1), operation(1, container="other"), operation(1, api="swift")
    assert len(expected_after([one, two, three], LATE, LATE)) == 3
    assert expected_after([one], 0.5, 0.6) == ()


# A model: each operation takes effect at one moment after it was sent, if at all, and before its
# acknowledgement. What can be seen at any moment of the cut must be allowed, and nothing else.
@st.composite
def histories(draw: st.DrawFn) -> list[Operation]:
    moment, found = 0.0, []
    for version in range(1, draw(st.integers(1, 5)) + 1):
        sent = moment + draw(st.sampled_from([0.5, 1.0, 2.0]))
        moment = sent + draw(st.sampled_from([0.5, 1.0, 3.0]))
        how = draw(st.sampled_from(["acknowledged"] * 4 + ["refused", "unanswered"]))
        kind = draw(st.sampled_from(["write", "delete"])) if version > 1 else "write"
        found.append(
            operation(
                version,
                kind,
                sent_s=sent,
                answered_s=None if how == "unanswered" else moment,
                acknowledged=how == "acknowledged",
            )
        )
        if how != "acknowledged":
            break
    return found


def states_at(history: Sequence[Operation], cut_s: float) -> set[int]:
    """Every state at a cut, as the version that is there; 0: none."""
    states = {0}
    for one in history:
        if one.sent_s > cut_s:
            break
        result = one.version if one.kind == "write" else 0
        done = one.acknowledged and one.answered_s is not None and one.answered_s < cut_s
        states = {result} if done else {*states, result}
    return states


@settings(max_examples=500, deadline=None, derandomize=True, database=None)
@given(histories(), st.integers(0, 40), st.integers(0, 8))
def test_allowed_is_what_a_store_that_keeps_its_word_can_hold_at_the_cut(
    history: list[Operation], begin: int, length: int
) -> None:
    t0, t1 = begin / 2 + 0.25, (begin + length) / 2 + 0.25
    moments = [t0, t1, *(moment for one in history for moment in _around(one))]
    possible = set().union(*(states_at(history, at) for at in moments if t0 <= at <= t1))
    found = expected_after(history, t0, t1)
    if not found:
        assert possible == {0}
        return
    (one,) = found
    assert {*one.allowed, *([0] * one.may_be_absent)} == possible
    known = {each.version for each in history if each.kind == "write" and each.sent_s <= t1}
    assert {*one.allowed, *one.older} == known
    assert not {*one.allowed} & {*one.older}


def _around(one: Operation) -> tuple[float, ...]:
    ends = [one.sent_s] if one.answered_s is None else [one.sent_s, one.answered_s]
    return tuple(math.nextafter(end, way) for end in ends for way in (-math.inf, math.inf))


BODIES = Bodies(11)
SIZE = 4096
NAME = "s3/bucket/w000-0000001"


@pytest.mark.parametrize("size", [64, 512, 4096, 70_000, PIECE_BYTES, 2 * PIECE_BYTES + 777])
def test_a_body_has_its_size_and_is_the_same_for_the_same_seed_and_version(size: int) -> None:
    body = BODIES.of(NAME, 1, size)
    assert len(body) == size
    assert body == Bodies(11).of(NAME, 1, size)


def test_no_two_sectors_of_seeds_objects_and_versions_are_the_same() -> None:
    bodies = [
        *(BODIES.of(name, version, 65536) for name in (NAME, "s3/b/x") for version in range(1, 5)),
        Bodies(12).of(NAME, 1, 65536),
    ]
    sectors = {
        body[at : at + SECTOR_BYTES] for body in bodies for at in range(0, 65536, SECTOR_BYTES)
    }
    assert len(sectors) == 9 * 65536 // SECTOR_BYTES


@pytest.mark.parametrize("size", [4096, PIECE_BYTES])
def test_bodies_cannot_be_compressed(size: int) -> None:
    assert len(zlib.compress(BODIES.of(NAME, 1, size), 9)) > 0.95 * size


def look(body: bytes, *versions: int, size: int = SIZE) -> tuple[str, int | None]:
    found = BODIES.look(NAME, size, versions, body)
    return found.what, found.version


def test_a_complete_body_is_the_version_that_it_is_and_sectors_of_two_are_torn() -> None:
    old, new = (BODIES.of(NAME, version, SIZE) for version in (1, 2))
    assert look(new, 1, 2) == ("version", 2)
    assert look(new[:2048] + old[2048:], 1, 2) == ("torn", None)
    said = BODIES.look(NAME, SIZE, (1, 2), new[:1024] + old[1024:]).words
    assert said == "4096 of 4096 bytes; sectors: 2 of version 2, 6 of version 1"


def test_a_large_body_is_compared_to_its_last_piece() -> None:
    size = 2 * PIECE_BYTES + 1000
    old, new = (BODIES.of(NAME, version, size) for version in (1, 2))
    assert look(new, 1, 2, size=size) == ("version", 2)
    cut = 2 * PIECE_BYTES + SECTOR_BYTES
    assert look(new[:cut] + old[cut:], 1, 2, size=size) == ("torn", None)


@pytest.mark.parametrize("kept", [0, 1, 500, 512, 4095])
def test_a_body_that_ends_early_is_torn(kept: int) -> None:
    assert look(BODIES.of(NAME, 1, SIZE)[:kept], 1) == ("torn", None)


def test_sectors_that_were_never_written_are_torn_and_nothing_but_zeros_is_wrong() -> None:
    body = BODIES.of(NAME, 1, SIZE)
    assert look(body[:512] + bytes(SIZE - 512), 1) == ("torn", None)
    assert look(bytes(SIZE), 1) == ("wrong", None)


def test_other_bytes_are_wrong_and_say_where_they_are_from() -> None:
    body = BODIES.of(NAME, 1, SIZE)
    assert look(body[:-1] + bytes([body[-1] ^ 1]), 1) == ("wrong", None)
    assert look(BODIES.of(NAME, 3, SIZE), 1, 2) == ("wrong", None)
    assert look(body + b"x", 1) == ("wrong", None)
    later = BODIES.look(NAME, SIZE, (1, 2), BODIES.of(NAME, 3, SIZE)).words
    assert "8 of no version written by then" in later
    assert "it says version 3 of this object" in later
    other = BODIES.look(NAME, SIZE, (1,), BODIES.of("s3/b/other", 1, SIZE)).words
    assert "it does not say that it is of this object" in other


S3 = Endpoint(api="s3", url="http://h:1", user="u", key=SecretStr("k"))
SWIFT = Endpoint(api="swift", url="http://h:1/auth/v1.0", user="u", key=SecretStr("k"))


def order(workers: int, **given: Any) -> WriteOrder:
    usual = {"endpoints": (S3, SWIFT), "prefix": "wb-x", "sizes": (64, 128), "seed": 1}
    return WriteOrder.model_validate(usual | {"workers": workers} | given)


@pytest.mark.parametrize("workers", [1, 2, 3, 8, 9, 16, 33])
def test_all_kinds_of_objects_are_written_whatever_the_number_of_workers(workers: int) -> None:
    kinds = order(workers).kinds_of_workers()
    assert len(kinds) == workers
    assert all(kinds)
    assert len({kind for some in kinds for kind in some}) == 6


def test_one_worker_in_eight_writes_in_parts_and_the_others_spread_evenly() -> None:
    kinds = order(34).kinds_of_workers()
    counts = Counter(kind for some in kinds for kind in some)
    parts = {kind.api: count for kind, count in counts.items() if kind.way == "multipart"}
    plain = [count for kind, count in counts.items() if kind.way == "plain"]
    assert sorted(parts.values()) == [2, 2]
    assert sorted(plain) == [7, 7, 8, 8]
    assert {kind.way for some in order(8, multipart=False).kinds_of_workers() for kind in some} == {
        "plain"
    }


def test_segments_have_containers_of_their_own() -> None:
    one = order(1, containers=1)
    assert one.all_containers("s3") == ("wb-x-s3-0",)
    assert one.all_containers("swift") == ("wb-x-swift-0", "wb-x-swift-0-segments")


@pytest.mark.parametrize(
    ("endpoints", "why"),
    [
        ((S3, S3), "named twice"),
        ((S3.model_copy(update={"addressing": "virtual"}),), "addressed by path"),
        ((), "at least 1"),
    ],
)
def test_endpoints_that_the_programs_cannot_use_are_refused(
    endpoints: tuple[Endpoint, ...], why: str
) -> None:
    with pytest.raises(ValidationError, match=why):
        order(1, endpoints=endpoints)


Serve = Callable[..., Any]


def ask(served: Any, most_bytes: int = 1000, **given: Any) -> Answer:
    connection = Connection(Place("127.0.0.1", served.port), 2.0)
    try:
        return connection.ask("GET / HTTP/1.1\r\n", (), body_bytes=0, most_bytes=most_bytes)
    finally:
        connection.close()


def sending(data: bytes, *, keep: bool = False) -> Callable[[socket.socket, bytes], bool]:
    def answer(connection: socket.socket, _: bytes) -> bool:
        connection.sendall(data)
        if not keep:
            connection.shutdown(socket.SHUT_RDWR)
        return keep

    return answer


@pytest.mark.parametrize(
    ("raw", "body", "end"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", b"hello", "complete"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello", b"hello", "cut off"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + b"x" * 2000, b"x" * 1000, "longer"),
        (b"HTTP/1.1 200 OK\r\n\r\nhello", b"hello", "complete"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 2000, b"x" * 1000, "longer"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No\r\n\r\n", b"", "complete"),
    ],
)
def test_a_body_is_complete_or_cut_off_or_longer_than_the_limit(
    scripted: Serve, raw: bytes, body: bytes, end: str
) -> None:
    found = ask(scripted(sending(raw)))
    assert (found.body, found.end) == (body, end)


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("chunks", "body", "end"),
    [
        (b"5;x=y\r\nhello\r\n1\r\n!\r\n0\r\nTrailer: a\r\n\r\n", b"hello!", "complete"),
        (b"5\r\nhello\r\n", b"hello", "cut off"),
        (b"5\r\nhel", b"hel", "cut off"),
        (b"3E8\r\n" + b"x" * 1000 + b"\r\n0\r\n\r\n", b"x" * 1000, "complete"),
        (b"300\r\n" + b"x" * 768 + b"\r\n300\r\n" + b"x" * 768, b"x" * 1000, "longer"),
        (b"3E9\r\n" + b"x" * 1001 + b"\r\n0\r\n\r\n", b"x" * 1000, "longer"),
    ],
)
def test_chunks_are_put_together_up_to_the_limit(
    scripted: Serve, chunks: bytes, body: bytes, end: str
) -> None:
    found = ask(scripted(sending(CHUNKED + chunks)))
    assert (found.body, found.end) == (body, end)


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"SSH-2.0-OpenSSH\r\n\r\n", "not HTTP"),
        (b"HTTP/1.1 abc\r\n\r\n", "not HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", "not a number"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1_0\r\n\r\n", "not a number"),
        (CHUNKED + b"0x5\r\nhello\r\n", "not a number"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000, "head of more than 65536 bytes"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 20, "nothing but interim answers"),
        (b"HTTP/1.1 200 OK\r\nContent-Le", "ended within an answer's head"),
        (b"", "ended before an answer's head"),
    ],
)
def test_what_is_no_answer_is_none_and_says_why(scripted: Serve, raw: bytes, why: str) -> None:
    with pytest.raises(NoAnswer, match=why):
        ask(scripted(sending(raw)))


def test_an_endless_line_before_a_chunk_is_not_read(scripted: Serve) -> None:
    found = ask(scripted(sending(CHUNKED + b"5" * 200_000)))
    assert (found.body, found.end) == (b"", "cut off")


def test_a_server_that_sends_a_byte_from_time_to_time_is_given_up(scripted: Serve) -> None:
    def drip(connection: socket.socket, _: bytes) -> bool:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n")
        for _ in range(100):
            connection.sendall(b"x")
            time.sleep(0.05)
        return False

    with pytest.raises(NoAnswer, match="no complete answer within 2 s"):
        ask(scripted(drip))


def test_a_request_is_given_up_when_all_are(scripted: Serve) -> None:
    served = scripted(lambda connection, head: bool(connection.recv(1)))
    end_s = time.monotonic() + 0.3
    connection = Connection(Place("127.0.0.1", served.port), 600.0, lambda: end_s)
    with pytest.raises(NoAnswer):
        connection.ask("GET / HTTP/1.1\r\n", (), body_bytes=0, most_bytes=10)


@pytest.mark.parametrize("header", [b"", b"Connection: close\r\n"])
def test_a_connection_is_kept_unless_the_server_closes_it(scripted: Serve, header: bytes) -> None:
    served = scripted(
        sending(b"HTTP/1.1 200 OK\r\n" + header + b"Content-Length: 2\r\n\r\nok", keep=True)
    )
    connection = Connection(Place("127.0.0.1", served.port), 5.0)
    for _ in range(3):
        connection.ask("GET / HTTP/1.1\r\n", (), body_bytes=0, most_bytes=10)
    connection.close()
    assert served.accepted == (3 if header else 1)


def test_a_body_is_sent_in_pieces_with_its_length(scripted: Serve) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"a" * 600_000
        yield b"b" * 400_000

    served = scripted(sending(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", keep=True))
    connection = Connection(Place("127.0.0.1", served.port), 5.0)
    connection.ask("PUT /x HTTP/1.1\r\n", pieces(), body_bytes=1_000_000, most_bytes=10)
    connection.ask("PUT /y HTTP/1.1\r\n", (), body_bytes=0, most_bytes=10)
    connection.close()
    assert served.bodies == [b"a" * 600_000 + b"b" * 400_000, b""]
    assert [b"Content-Length: 0" in head for head in served.asked] == [False, True]
