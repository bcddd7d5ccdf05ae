import pytest
from pydantic import TypeAdapter, ValidationError

from weighbridge.common.quantities import BitsPerS, Bytes, Seconds, show_bytes


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("1MB", 10**6),
        ("1MiB", 2**20),
        ("4 KiB", 4096),
        ("1.5GiB", 3 * 2**29),
        ("7", 7),
        ("1gb", 10**9),
        (12, 12),
    ],
)
def test_mega_is_10_to_the_6_and_mebi_2_to_the_20(text: object, count: int) -> None:
    assert TypeAdapter(Bytes).validate_python(text) == count


@pytest.mark.parametrize("text", ["4 Kob", "-1MB", "1e3MB", "0.3B", "", "MB", "6TiB"])
def test_an_invalid_size_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(Bytes).validate_python(text)


def test_a_part_of_a_byte_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"'1\.5B' is not a whole number of bytes"):
        TypeAdapter(Bytes).validate_python("1.5B")


@pytest.mark.parametrize(
    ("text", "seconds"), [("500ms", 0.5), ("20s", 20.0), ("15m", 900.0), ("2h", 7200.0), (0, 0.0)]
)
def test_times_become_seconds(text: object, seconds: float) -> None:
    assert TypeAdapter(Seconds).validate_python(text) == seconds


@pytest.mark.parametrize(
    ("adapter", "bare"), [(TypeAdapter(Seconds), 20), (TypeAdapter(BitsPerS), 10)]
)
def test_a_number_without_a_unit_is_refused(adapter: TypeAdapter[float], bare: int) -> None:
    with pytest.raises(ValidationError, match="has no unit"):
        adapter.validate_python(bare)


def test_network_rates_are_powers_of_a_thousand() -> None:
    assert TypeAdapter(BitsPerS).validate_python("10Gbit") == 10 * 10**9


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (10**6, "1 MB"),
        (2**20, "1 MiB"),
        (4096, "4 KiB"),
        (64 * 2**20, "64 MiB"),
        (1234567, "1.23 MB"),
        (12, "12 B"),
    ],
)
def test_sizes_are_shown_in_the_shorter_unit(count: int, text: str) -> None:
    assert show_bytes(count) == text
