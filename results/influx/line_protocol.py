"""InfluxDB's line protocol: a point per line, `measurement,tag=value field=1.5,count=3i
1415102400000`.

Escapes are those of its documentation (docs.influxdata.com, "Line protocol"): a backslash before
commas, spaces and, in tags and keys, equals signs. A line break ends a point, and a backslash at
the end of a tag would escape what follows: no form of them is read alike by all servers, so both
are refused. Unknown values are omitted, never written as 0.
"""

from __future__ import annotations

from weighbridge.common.errors import InvalidMeasurement
from weighbridge.common.record import Record


class InfluxPoint(Record):
    """One point. `at_ms` is wall clock time in ms since 1970, UTC: VictoriaMetrics stores no more.

    Tags and fields that are None are omitted. Ints are written with a final `i`, floats without: a
    server keeps the type of a field that it saw first.
    """

    measurement: str
    tags: dict[str, str | None]
    fields: dict[str, int | float | None]
    at_ms: int

    @property
    def line(self) -> str | None:
        """The point as a line, without its end. Raises InvalidMeasurement on unfit text."""
        fields = ",".join(
            f"{_key(name)}={_number(value)}"
            for name, value in self.fields.items()
            if value is not None
        )
        if not fields:
            return None
        # The protocol has no empty tags; servers sort tags by name anyway.
        tags = "".join(
            f",{_key(name)}={_key(value)}" for name, value in sorted(self.tags.items()) if value
        )
        return f"{_measurement(self.measurement)}{tags} {fields} {self.at_ms}"


def _measurement(name: str) -> str:
    return _checked(name).replace(",", "\\,").replace(" ", "\\ ")


def _key(text: str) -> str:
    return _checked(text).replace(",", "\\,").replace("=", "\\=").replace(" ", "\\ ")


def _checked(text: str) -> str:
    if not text or text.endswith("\\") or any(ord(one) < 0x20 or ord(one) == 0x7F for one in text):
        why = "it is empty, has a control character or ends in a backslash"
        raise InvalidMeasurement(f"{text!r} cannot be written in line protocol: {why}")
    return text


def _number(value: float) -> str:
    return f"{value}i" if isinstance(value, int) else repr(value)
