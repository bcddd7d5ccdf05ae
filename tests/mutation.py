"""Mutated documents: the input of the fuzz tests of every parser.

Hypothesis draws one number per case, which determines all changes of a document, so that ten
thousand cases take seconds. Repeat a failed case with `Dice(NUMBER)`. Each commit tries others; a
failure names their seed. WEIGHBRIDGE_FUZZ_SEED=N draws those of a seed, WEIGHBRIDGE_FUZZ_CASES=N
that many.
"""

from __future__ import annotations

import functools
import json
import os
import resource
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any, Final, TypeVar

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from weighbridge.common.document import DocumentError
from weighbridge.common.errors import WeighbridgeError


def _seed_of_commit() -> int:
    command = ("git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD")
    try:
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return 0
    return int(told[:16], 16)


SEED: Final = int(os.environ.get("WEIGHBRIDGE_FUZZ_SEED") or _seed_of_commit())
CASE_S: Final = 2.0
"""CPU time limit of one case, of this process only, so that no test fails on a busy machine."""
CASE_BYTES: Final = 1 << 30
"""Address space that the cases of a test may take beyond what the process had."""

LONGEST_MESSAGE: Final = 100_000
"""Bytes of an error's text: all faults of a file, each with its line."""

CASES: Final = settings(
    max_examples=int(os.environ.get("WEIGHBRIDGE_FUZZ_CASES", "300")),
    deadline=None,
    derandomize=True,  # SEED alone decides which cases there are
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.generate,),  # a seed cannot be shrunk
)
"""The same cases in every run with the same seed, which `make test` takes from the commit."""


class Dice(Random):
    """A random generator that shows its seed."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(number)

    def __repr__(self) -> str:
        return f"Dice({self.number})"


DICE: Final = st.integers(0, 2**64 - 1).map(lambda number: Dice(number ^ SEED))
THROWS: Final = 10
"""Cases per draw: Hypothesis takes longer to draw a number than most parsers for a case."""


def cases(test: Callable[..., None]) -> Callable[..., None]:
    """Call a test with `dice` for each case, THROWS times per number drawn."""

    @functools.wraps(test)
    def thrown(*fixtures: Any, dice: Dice, **named: Any) -> None:
        for throw in range(THROWS):
            one = Dice(dice.number ^ throw)
            try:
                test(*fixtures, dice=one, **named)
            except BaseException as error:
                error.add_note(f"the case was {one}, of WEIGHBRIDGE_FUZZ_SEED={SEED}")
                raise

    return settings(CASES, max_examples=max(1, CASES.max_examples // THROWS))(
        given(dice=DICE)(thrown)
    )


TEXTS: Final = (
    "", " ", "\t", "\0", "a\0b", "\n", "\r\n", "\ufeff", "\u202e", "\u2028", "\x85", "é", "💥",
    "\ud800", "'", '"', "\\", "{}", "[]", "../../etc/passwd", "/", ".", "-", "--help", "a" * 5000,
    "%s", "{0}", "null", "none", "None", "true", "yes", "on", "~", "*", "&a", "0", "-1", "1e999",
    "-1e999", "nan", "inf", "Infinity", "0x10", "0o17", "1_000", "١٢", "²", "1e3", "1.5", "9" * 400,
    "-0", "+1", "1MB", "1.5B", "20s", "-20s", "10Gbit", "5 TiB", "1e9s", "2026-11-22",
    "2026-11-22T04:42:26+00:00", "12:30:45", "!!python/name:os.system", "!x", "<<: *a", "- ", "? a",
    "| a", ">", "%YAML 9.9", "---", "...", "{a: &b [*b]}", "@", "`", "a,b,c", "a=b", "a:b", "a;b",
    "a~b", "<a>", "&lt;", "http://[::1", "http://a:99999/", "${HOME}", "N/A", "0%", "100%",
)  # fmt: skip
"""Hostile as the text of any value."""

NUMBERS: Final = (
    0, 1, -1, 2, 64, 65, 65536, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64, 10**30, 10**400,
    -(10**400), 0.0, -0.0, 0.5, 1e-320, 1e308, -1e308, float("inf"), float("-inf"), float("nan"),
)  # fmt: skip


HOSTILE_BYTES: Final = (
    b"\xff", b"\0", b"\xef\xbb\xbf", b"\r", b"\n", b"\t", b"{", b"[" * 3000, b'"', b"}",
)  # fmt: skip


def deep(of: Any, depth: int, key: str | None = None) -> Any:
    """A value nested in so many lists, or mappings with one key."""
    for _ in range(depth):
        of = [of] if key is None else {key: of}
    return of


def hostile(dice: Random) -> Any:
    kind = dice.randrange(10)
    if kind < 4:
        return dice.choice(TEXTS)
    if kind < 7:
        return dice.choice(NUMBERS)
    if kind == 7:
        return dice.choice((None, True, False, [], {}, [[]], [{}], {"": ""}, [None]))
    if kind == 8:
        return dice.randrange(-1000, 1000)
    return deep(None, dice.choice((2, 40)), dice.choice((None, "a")))


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every mapping or list of a document with each of its keys or indexes."""
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            found += [(one, key) for key in one]
            waiting += one.values()
        elif isinstance(one, list):
            found += [(one, index) for index in range(len(one))]
            waiting += one
    return found


def wrong_values(dice: Random, value: Any, times: int | None = None) -> Any:
    """A JSON document with a few values or keys changed, swapped, duplicated or removed.

    `value` itself is not changed.
    """
    value = _copy(value)
    for _ in range(times or dice.choice((1, 1, 1, 2, 3))):
        found = places(value)
        if not found:
            return hostile(dice)
        inside, key = dice.choice(found)
        kind = dice.randrange(12)
        if kind < 6:
            inside[key] = hostile(dice)
        elif kind == 6:
            del inside[key]
        elif kind == 7:
            other, where = dice.choice(found)
            inside[key] = _copy(other[where])
        elif kind == 8:
            inside[key] = [inside[key], _copy(inside[key])]
        elif isinstance(inside, list):
            inside.insert(key, _copy(inside[dice.randrange(len(inside))]))
        else:
            inside[_nearly(dice, key, found)] = inside.pop(key)
    return value


def _nearly(dice: Random, key: Any, found: Sequence[tuple[Any, Any]]) -> str:
    known = [str(one) for _, one in found if isinstance(one, str)]
    kind = dice.randrange(3)
    if kind == 0 and known:
        return dice.choice(known)
    word = str(key)
    at = dice.randrange(len(word) + 1)
    return word[:at] + word[at + 1 :] if kind == 1 else dice.choice(TEXTS)


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(one) for key, one in value.items()}
    return [_copy(one) for one in value] if isinstance(value, list) else value


def wrong_bytes(dice: Random, data: bytes) -> bytes:
    """Bytes with a few of them flipped, cut, duplicated or inserted."""
    for _ in range(dice.choice((1, 1, 1, 2, 4))):
        at = dice.randrange(len(data) + 1)
        until = min(len(data), at + dice.choice((1, 1, 2, 8, 64, len(data))))
        kind = dice.randrange(6)
        if kind == 0:
            data = data[:at] + bytes([dice.randrange(256)]) + data[at + 1 :]
        elif kind == 1:
            data = data[:at] + data[until:]
        elif kind == 2:
            data = data[:until] + data[at:]
        elif kind == 3:
            data = data[:at]
        elif kind == 4:
            data = data[:at] + str(dice.choice(TEXTS)).encode(errors="surrogatepass") + data[until:]
        else:
            data = data[:at] + dice.choice(HOSTILE_BYTES) + data[at:]
    return data


def wrong_lines(dice: Random, text: str) -> str:
    """Text with a few lines removed, duplicated, swapped or moved, or with a word changed."""
    lines = text.split("\n")
    for _ in range(dice.choice((1, 1, 2, 3))):
        at, other = dice.randrange(len(lines)), dice.randrange(len(lines))
        kind = dice.randrange(9)
        if kind == 0 and len(lines) > 1:
            del lines[at]
        elif kind == 1:
            lines.insert(other, lines[at])
        elif kind == 2:
            lines[at], lines[other] = lines[other], lines[at]
        elif kind == 3:
            lines[at] = dice.choice((" ", "  ", "\t", "- ", "# ", "")) + lines[at]
        elif kind == 4:
            lines[at] = lines[at].lstrip()
        elif kind == 5:
            lines[at] += dice.choice((" ", "\t", "\r", ":", ",", " #", "\0", "\\"))
        else:
            lines[at] = _other_word(dice, lines[at])
    return dice.choice(("\n", "\n", "\n", "\n", "\n", "\n", "\r\n")).join(lines)


def _other_word(dice: Random, line: str) -> str:
    words = line.split(" ")
    value = hostile(dice)
    words[dice.randrange(len(words))] = value if isinstance(value, str) else json.dumps(value)
    return " ".join(words)


def wrong_json(dice: Random, document: Any) -> bytes:
    """A document as a program might send it, with values, bytes or both changed."""
    kind = dice.randrange(20)
    if kind == 0:
        return b"[" * 100_000 if dice.random() < 0.5 else b'{"a":' * 100_000
    value = wrong_values(dice, document) if kind < 15 else document
    data = json.dumps(value).encode(errors="surrogatepass")
    return wrong_bytes(dice, data) if kind >= 13 else data


def wrong_text(dice: Random, text: str) -> str:
    """Text with lines, bytes or both changed; invalid UTF-8 is replaced, as readers of text do."""
    kind = dice.randrange(10)
    if kind < 7:
        text = wrong_lines(dice, text)
    if kind >= 6:
        text = wrong_bytes(dice, text.encode(errors="surrogatepass")).decode(errors="replace")
    return text


Found = TypeVar("Found")


def tried(
    read: Callable[[], Found],
    *errors: type[WeighbridgeError],
    saying: str = "",
    text: str | None = None,
) -> Found | None:
    """The result of `read` within the limits of a case; None if one of `errors` (default: any of
    ours) refuses.

    The error's message must be printable, of limited length and contain `saying`. If `text` is what
    is read, the positions of a DocumentError's faults must be within it.
    """
    expected = errors or (WeighbridgeError,)
    refused: WeighbridgeError | None = None
    with bounded():
        try:
            found = read()
        except expected as error:
            refused = error
    if refused is None:
        return found
    words = str(refused)
    assert words.strip()
    assert saying in words
    assert len(words.encode()) < LONGEST_MESSAGE
    if isinstance(refused, DocumentError) and text is not None:
        assert_faults_within(refused, text)
    return None


def assert_faults_within(error: DocumentError, text: str) -> None:
    """Every fault points at a character of the text, or just after one."""
    lines = text.splitlines() or [""]
    assert error.faults
    for fault in error.faults:
        assert 1 <= fault.line <= len(lines) + 1
        line = lines[fault.line - 1] if fault.line <= len(lines) else ""
        assert 1 <= fault.column <= len(line) + 1


def wrong_yaml(dice: Random, text: str, document: Any) -> str:
    """A file as people may write it: lines changed, or values changed and written as JSON."""
    kind = dice.randrange(20)
    if kind == 0:
        return "a: " * 5000 if dice.random() < 0.5 else "[" * 5000
    if kind < 12:
        return wrong_text(dice, text)
    return json.dumps(wrong_values(dice, document), indent=dice.choice((None, None, 1)))


class TooMuch(AssertionError):
    """A case exceeded a limit."""


@contextmanager
def bounded() -> Iterator[None]:
    """Fail a case at once if it takes more than CASE_S of CPU time or CASE_BYTES of memory."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TooMuch(f"more than {CASE_S:g} s of CPU time")

    before = signal.signal(signal.SIGVTALRM, stop)
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_used_bytes() + CASE_BYTES, limits[1]))
    signal.setitimer(signal.ITIMER_VIRTUAL, CASE_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, limits)
        signal.signal(signal.SIGVTALRM, before)


def _used_bytes() -> int:
    with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - for every case: Path takes twice as long
        return int(file.read().split()[0]) * resource.getpagesize()
