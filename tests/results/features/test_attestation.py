from collections.abc import Sequence
from typing import Any

import pytest

from weighbridge.results.figures.doubt import PairDoubt
from weighbridge.results.judge.host_equality import (
    compare,
    host_doubts,
    sameness,
    show,
    summary,
    verdict,
    warnings,
)
from weighbridge.results.run.telemetry import Attested, Unit


def figure(layout: str, value: float, **more: Any) -> Attested:
    disk = {"host": "store-2", "what": "disk wb0 write", "kind": "disk", "unit": "B/s"}
    about = {"layout": layout, "repeat": 0, "value": value, "promised": 1.0}
    return Attested.model_validate({**disk, **about, **more})


def pair(one: float, other: float, **more: Any) -> list[Attested]:
    return [figure("rgw-beast", one, **more), figure("swift", other, **more)]


APART = tuple(pair(197e6, 142e6))
CPU: dict[str, Any] = {"what": "CPU", "kind": "cpu", "unit": "events/s"}
FREE: dict[str, Any] = {"what": "disk wb0 random read", "promised": None}
REPEATS = [
    figure(layout, value, repeat=repeat)
    for layout, values in (("rgw-beast", (200e6, 190e6)), ("swift", (195e6, 100e6)))
    for repeat, value in enumerate(values)
]


@pytest.mark.parametrize(
    ("figures", "said"),
    [
        (
            APART,
            "of store-2 gave 142 MB/s under swift and 197 MB/s under rgw-beast (28 % apart, bound",
        ),
        (pair(200e6, 182e6), ""),
        (pair(200e6, 178e6), "(11 % apart, bound 10 %)"),
        # All repeats of all layouts count.
        (REPEATS, "100 MB/s under swift (repeat 2) and 200 MB/s under rgw-beast (repeat 1)"),
        # A missed limit is reported even if all deployments agree; more is no shortfall.
        (
            pair(140e6, 141e6, promised=200e6),
            "promises 200 MB/s and gave 140 MB/s under rgw-beast (30 % less",
        ),
        ([figure("swift", 210e6, promised=200e6)], ""),
        # Each figure is compared with the promise of its deployment.
        (
            [figure("a", 90.0, promised=95.0, **CPU), figure("b", 95.0, promised=190.0, **CPU)],
            "promises 190 events/s and gave 95.0 events/s under b (50 % less",
        ),
        # Without a limit the bound is wider.
        (pair(100.0, 66.0, **FREE), ""),
        (pair(100.0, 64.0, **FREE), "bound 35 %"),
        # Other hosts and subjects are not compared.
        ([figure("a", 100), figure("b", 900, host="store-3"), figure("b", 900, what="other")], ""),
        (pair(100, 71, **CPU), ""),
        (pair(100, 69, **CPU), "bound 30 %"),
        (pair(100, 91, kind="network", unit="bit/s"), ""),
        (pair(100, 89, kind="network", unit="bit/s"), "bound 10 %"),
    ],
)
def test_what_differs_or_misses_its_promise_is_reported_with_both_figures_and_the_bound(
    figures: Sequence[Attested], said: str
) -> None:
    texts = warnings(figures)
    assert len(texts) == bool(said)
    assert said in "".join(texts)


def test_hosts_that_are_equal_within_the_bounds_are_called_so() -> None:
    close = verdict(pair(200e6, 182e6))
    assert close.startswith("The hosts were equal within the bounds in both deployments")
    assert compare(pair(100.0, 66.0, **FREE))[0].promises == "–"


def test_a_network_figure_names_both_hosts() -> None:
    of = [
        figure(layout, value, host="store-1", what=what, kind="network", unit="bit/s")
        for what in ("network from gateway-1", "network to gateway-1")
        for layout, value in (("a", 9e9), ("b", 5e9))
    ]
    assert [text.partition(" gave ")[0] for text in warnings(of)] == [
        "network from gateway-1 to store-1",
        "network from store-1 to gateway-1",
    ]


def test_a_layout_without_attestation_has_unknown_hosts() -> None:
    of = [figure("rgw-beast", 200e6, repeat=repeat) for repeat in range(5)]
    unknown = "swift was not attested: whether its hosts were equal is unknown"
    said = verdict(of, ("rgw-beast", "swift"))
    assert "in the 5 attested deployments (1 figure)" in said
    assert said.endswith(unknown)
    assert "; a and b were not attested: " in verdict(of, ("rgw-beast", "a", "b"))
    assert summary(of, ("rgw-beast", "swift"))[0].endswith(unknown)
    assert sameness(of, ("rgw-beast", "again"), controls={"again": "rgw-beast"}).verdict.endswith(
        "in all 5 deployments (1 figure)"
    )
    (one,) = host_doubts(of, ("rgw-beast", "swift"))
    assert one.layouts == ("rgw-beast", "swift")
    assert (one.doubt.what, one.doubt.grade) == ("hosts not attested", "mild")
    assert one.doubt.words == unknown
    # If neither was attested nobody claimed that they are equal, and if both were there is a
    # figure.
    assert host_doubts(of, ("a", "b")) == ()
    assert host_doubts((*of, figure("swift", 200e6)), ("rgw-beast", "swift")) == ()


def test_a_limit_that_no_deployment_came_near_does_not_make_hosts_differ() -> None:
    slow = pair(166e6, 207e6, promised=406e6)
    assert host_doubts(slow) == ()
    assert "promises 406 MB/s and gave 166 MB/s" in warnings(slow)[0], "a warning all the same"
    usual = "so much is not the machine's usual scatter"
    assert host_doubts(pair(166e6, 300e6, promised=406e6)), usual
    assert host_doubts(pair(300e6, 380e6, promised=406e6)), "one of them came near its limit"


def test_the_terminal_shows_the_verdict_and_the_worst_first() -> None:
    hosts = [f"store-{number}" for number in range(9)]
    of = [figure("a", 100e6, host=host) for host in hosts]
    of += [figure("b", 70e6 - number * 1e6, host=host) for number, host in enumerate(hosts)]
    sentences = summary(of)
    assert sentences[0].startswith("9 of 9 figures of the hosts differ beyond their bound")
    assert sentences[1].startswith("disk wb0 write of store-8 gave 62.0 MB/s under b")
    assert sentences[2].startswith("disk wb0 write of store-7")
    assert sentences[6:] == ("and 4 more: see the report",)


def test_without_two_deployments_that_were_attested_nothing_is_compared() -> None:
    assert summary(()) == ("The hosts were not attested",)
    assert sameness((), ("a", "b")).figures == ()
    assert verdict([figure("swift", 100)]).startswith("Only one deployment was attested")


def test_the_table_has_a_cell_for_each_layout_with_the_range_over_its_repeats() -> None:
    of = [
        *APART,
        figure("swift", 198e6, repeat=1),
        figure("swift", 5e9, what="network to client-1", kind="network", unit="bit/s"),
    ]
    disk, network = sameness(of, ("rgw-beast", "swift")).figures
    assert (disk.host, disk.what) == ("store-2", "disk wb0 write")
    assert (disk.promises, disk.differs) == ("1.00 B/s", True)
    assert disk.apart == pytest.approx(0.28, abs=0.005)
    cells = [[each.cell(layout) for layout in ("rgw-beast", "swift")] for each in (disk, network)]
    assert cells == [["197 MB/s", "142 to 198 MB/s"], ["–", "5.00 Gbit/s"]]
    assert not network.differs
    assert not network.lacks


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (197e6, "B/s", "197 MB/s"),
        (1.604e9, "B/s", "1.60 GB/s"),
        (9.43e9, "bit/s", "9.43 Gbit/s"),
        (95.2e6, "bit/s", "95.2 Mbit/s"),
        (24720, "1/s", "24,720 requests/s"),
        (194.7, "events/s", "195 events/s"),
        (0.5, "bit/s", "0.500 bit/s"),
    ],
)
def test_figures_have_readable_units(value: float, unit: Unit, shown: str) -> None:
    assert show(value, unit) == shown


def test_hosts_that_differ_beyond_their_bound_are_a_grave_doubt_about_two_layouts() -> None:
    cpu: dict[str, Any] = {"what": "CPU", "kind": "cpu", "unit": "events/s", "promised": 1400}
    figures = [
        figure(layout, value, host="gateway-1", repeat=repeat, **cpu)
        for layout, values in {
            "swift": (245, 250, 1390),
            "rgw-beast": (1395, 1380),
            "rgw-civetweb": (1360,),
        }.items()
        for repeat, value in enumerate(values)
    ]
    found = {frozenset(one.layouts): one.doubt for one in host_doubts(figures)}
    assert set(found) == {frozenset(("swift", "rgw-beast")), frozenset(("swift", "rgw-civetweb"))}
    doubt = found[frozenset(("swift", "rgw-beast"))]
    assert (doubt.what, doubt.grade) == ("hosts differ", "grave")
    assert "gave 250 events/s under swift and 1,395 events/s under rgw-beast (82 %" in doubt.words
    figures = [one.model_copy(update={"request_bytes": 64_000}) for one in figures]
    assert host_doubts(figures) == () == warnings(figures), "ceilings at a size do not decide"


def test_one_odd_deployment_of_two_still_makes_hosts_differ_and_of_three_no_longer() -> None:
    def doubts(*swift: float) -> tuple[PairDoubt, ...]:
        of = [figure("swift", value, repeat=repeat) for repeat, value in enumerate(swift)]
        return host_doubts([figure("rgw-beast", 200e6), *of])

    assert [one.doubt.what for one in doubts(170e6, 200e6)] == ["hosts differ"]
    assert doubts(170e6, 200e6, 198e6) == ()


def test_hosts_of_which_only_one_misses_its_promise_are_a_mild_doubt() -> None:
    def pair(*swift: float, rgw: float = 90.0, promised: float | None = 100.0) -> list[Attested]:
        return [
            figure(layout, value, what="CPU", kind="cpu", promised=promised, repeat=repeat)
            for layout, values in {"rgw-beast": (rgw,), "swift": swift}.items()
            for repeat, value in enumerate(values)
        ]

    seen = pair(66.0)
    assert verdict(seen).startswith("The hosts were equal within the bounds")
    (one,) = host_doubts(seen, ("rgw-beast", "swift"))
    assert one.about("rgw-beast", "swift")
    assert (one.doubt.what, one.doubt.grade) == ("hosts below promise", "mild")
    assert "34 % less than promised under swift (bound 30 %), and not under rgw" in one.doubt.words
    assert host_doubts(pair(66.0, 80.0, 82.0)) == (), "the median of its deployments is not below"
    (one,) = host_doubts(pair(66.0, 90.0))
    assert one.doubt.what == "hosts below promise", "of two deployments each counts"
    assert host_doubts(pair(66.0, rgw=68.0)) == (), "both are below, and equal"
    assert host_doubts(pair(71.0)) == (), "within the bound of the promise"
    assert host_doubts(pair(66.0, promised=None)) == ()
    assert [one.doubt.grade for one in host_doubts(pair(50.0))] == ["grave"], "one doubt is enough"
