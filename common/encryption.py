"""How a store encrypts objects at rest, as S3 requests ask for it."""

from __future__ import annotations

from typing import Literal

from weighbridge.common.signing import SignedWay

Encrypted = Literal["sse-c", "sse-s3"]
"""`sse-c`: with the client's key, which each request brings; `sse-s3`: with a key of the store's,
which only writes ask for.
"""

Encryption = Literal["none", Encrypted]

S3Way = SignedWay | Encrypted
"""What of S3 requests not every store does."""
