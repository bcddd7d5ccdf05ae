from typing import Literal

from weighbridge.common.quantities import Bytes, Seconds
from weighbridge.common.record import Record
from weighbridge.gateways.gateway import STORES
from weighbridge.topologies.parameters import LayoutParameter, parameters


class Inner(Record):
    wait: Seconds = 1.5
    """How long one waits.

    And more."""


class Outer(Record):
    kind: Literal["a", "b"] = "a"
    size: Bytes = 65536
    """Size of a piece."""
    inner: Inner = Inner()
    count: int | None = None
    named: str


def test_every_setting_has_a_type_a_default_and_a_description() -> None:
    assert list(parameters(Outer)) == [
        LayoutParameter("kind", "a | b", "a", "kind"),
        LayoutParameter("size", "size", "64 KiB", "Size of a piece."),
        LayoutParameter("inner.wait", "time", "1.5s", "How long one waits. And more."),
        LayoutParameter("count", "number | none", "none", "count"),
        LayoutParameter("named", "text", "(must be given)", "named"),
    ]


def test_every_gateway_lists_its_parameters() -> None:
    for kind in STORES.values():
        for one in parameters(kind.Settings):
            assert one.kind
            assert one.about
