import base64

import pytest

from weighbridge.gateways.capabilities.digests import checksum


@pytest.mark.parametrize(
    ("algorithm", "value"),
    [("crc32", 0xCBF43926), ("crc32c", 0xE3069283), ("crc64nvme", 0xAE8B14860A799888)],
)
def test_checksums_have_their_published_check_values(algorithm: str, value: int) -> None:
    raw = base64.b64decode(checksum(algorithm, b"123456789"))
    assert int.from_bytes(raw, "big") == value
