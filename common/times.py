"""Times of other machines and files, as UTC."""

from __future__ import annotations

from datetime import UTC, datetime

from weighbridge.common.errors import InvalidMeasurement


def utc(text: str) -> datetime:
    """A time in ISO 8601, converted to UTC without a time zone.

    Raises InvalidMeasurement when it is not a time.
    """
    try:
        return datetime.fromisoformat(text).astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError) as error:
        raise InvalidMeasurement(f"{text!r} is not a time in ISO 8601") from error
