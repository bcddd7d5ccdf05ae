"""InfluxDB's line protocol: one point a line, `measurement,tag=value field=1.5,count=3i
1415102400000`.

Escapes are those of the protocol's own description (docs.influxdata.com, "Line protocol"): a comma,
a space and, in tags and keys, an equals sign stand behind a backslash. A line break ends a point
and a backslash at the end of a tag would swallow what follows it: neither can be written so that
every server reads it back, so both are refused. What is unknown is left out, never written as 0.
"""

from __future__ import annotations

from weighbridge.common.errors import InvalidMeasurement
from weighbridge.common.record import Record


class InfluxPoint(Record):
    """One point. `at_ms` is wall clock time in milliseconds since 1970, UTC, which is all that
    VictoriaMetrics keeps of a time.

    Tags and fields that are None are left out. A float is written as such, an int with an `i`
    behind it: a server keeps to the kind of a field that it saw first.
    """

    measurement: str
    tags: dict[str, str | None]
    fields: dict[str, int | float | None]
    at_ms: int

    @property
    def line(self) -> str | None:
        """The point as a line without its end; None where no field is known.

        Raises InvalidMeasurement on text that has no form.
        """
        fields = ",".join(
            f"{_key(name)}={_number(value)}"
            for name, value in self.fields.items()
            if value is not None
        )
        if not fields:
            return None
        # An empty tag is no tag to the protocol; tags in order of their names are what servers sort
        # them into anyway.
        tags = "".join(
            f",{_key(name)}={_key(value)}" for name, value in sorted(self.tags.items()) if value
        )
        return f"{_measurement(self.measurement)}{tags} {fields} {self.at_ms}"


def _measurement(name: str) -> str:
    return _whole(name).replace(",", "\\,").replace(" ", "\\ ")


def _key(text: str) -> str:
    return _whole(text).replace(",", "\\,").replace("=", "\\=").replace(" ", "\\ ")


def _whole(text: str) -> str:
    if not text or text.endswith("\\") or any(ord(one) < 0x20 or ord(one) == 0x7F for one in text):
        why = "it is empty, has a control character or ends in a backslash"
        raise InvalidMeasurement(f"{text!r} cannot be written in line protocol: {why}")
    return text


def _number(value: float) -> str:
    return f"{value}i" if isinstance(value, int) else repr(value)
