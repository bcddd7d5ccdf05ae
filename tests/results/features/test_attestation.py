from typing import Any

import pytest

from weighbridge.results.figures.doubt import PairDoubt
from weighbridge.results.judge.host_equality import (
    compare,
    host_doubts,
    lines,
    sameness,
    show,
    summary,
    verdict,
    warnings,
)
from weighbridge.results.run.telemetry import Attested, Kind, Unit


def figure(layout: str, value: float, **more: Any) -> Attested:
    disk = {"host": "store-2", "what": "disk wb0 write", "kind": "disk", "unit": "B/s"}
    about = {"layout": layout, "repeat": 0, "value": value, "promised": 1.0}
    return Attested.model_validate({**disk, **about, **more})


APART = (figure("rgw-beast", 197e6), figure("swift", 142e6))


def test_a_difference_beyond_the_bound_is_reported_with_both_figures_and_the_bound() -> None:
    (text,) = warnings(APART)
    assert text.startswith("disk wb0 write of store-2 gave 142 MB/s under swift and 197 MB/s under")
    assert "(28 % apart, bound 10 %)" in text
    close = (figure("rgw-beast", 200e6), figure("swift", 182e6))
    assert warnings(close) == ()
    assert verdict(close).startswith("The hosts were equal within the bounds in both deployments")
    assert len(warnings((figure("rgw-beast", 200e6), figure("swift", 178e6)))) == 1


def test_a_missed_limit_is_reported_even_if_all_deployments_agree() -> None:
    (text,) = warnings(
        [figure("rgw-beast", 140e6, promised=200e6), figure("swift", 141e6, promised=200e6)]
    )
    assert "promises 200 MB/s and gave 140 MB/s under rgw-beast (30 % less" in text


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
    def pair(rgw: float, swift: float) -> list[Attested]:
        return [figure("rgw-beast", rgw, promised=406e6), figure("swift", swift, promised=406e6)]

    slow = pair(166e6, 207e6)
    assert host_doubts(slow) == ()
    assert "promises 406 MB/s and gave 166 MB/s" in warnings(slow)[0], (
        "it is warned of all the same"
    )
    assert host_doubts(pair(166e6, 300e6)), "so much is not the machine's usual scatter"
    assert host_doubts(pair(300e6, 380e6)), "one of them came near its limit"


def test_figures_without_a_limit_have_a_wider_bound() -> None:
    def pair(value: float) -> list[Attested]:
        return [
            figure(layout, one, what="disk wb0 random read", promised=None)
            for layout, one in (("a", 100.0), ("b", value))
        ]

    assert warnings(pair(66.0)) == ()
    assert len(warnings(pair(64.0))) == 1
    assert lines(pair(66.0), ("a", "b"))[0].promised == "–"


@pytest.mark.parametrize(
    ("kind", "unit"), [("cpu", "events/s"), ("disk", "B/s"), ("network", "bit/s")]
)
def test_each_kind_has_its_own_bound(kind: Kind, unit: Unit) -> None:
    def pair(other: float) -> list[Attested]:
        both = (("a", 100), ("b", other))
        return [figure(layout, value, kind=kind, unit=unit) for layout, value in both]

    (compared,) = compare(pair(100))
    beyond = 100 * (1 - compared.bound) - 1
    assert warnings(pair(beyond))
    assert not warnings(pair(beyond + 2))


def test_the_largest_difference_of_all_repeats_of_all_layouts_counts() -> None:
    of = [
        *(figure("rgw-beast", value, repeat=repeat) for repeat, value in enumerate((200e6, 190e6))),
        *(figure("swift", value, repeat=repeat) for repeat, value in enumerate((195e6, 100e6))),
    ]
    (compared,) = compare(of)
    assert compared.apart == 0.5
    (sentences,) = warnings(of)
    assert "100 MB/s under swift (repeat 2) and 200 MB/s under rgw-beast (repeat 1)" in sentences


def test_each_figure_is_compared_with_its_deployments_promise() -> None:
    of = [
        figure("a", 90.0, what="CPU", kind="cpu", unit="events/s", promised=95.0),
        figure("b", 95.0, what="CPU", kind="cpu", unit="events/s", promised=190.0),
    ]
    (text,) = warnings(of)
    assert "promises 190 events/s and gave 95.0 events/s under b (50 % less" in text
    assert lines(of, ("a", "b"))[0].promised == "95.0 to 190 events/s"


def test_more_than_was_promised_is_no_shortfall() -> None:
    (compared,) = compare([figure("swift", 210e6, promised=200e6)])
    assert not compared.lacks
    assert compared.apart is None


def test_only_figures_of_the_same_host_and_subject_are_compared() -> None:
    of = [
        figure("a", 100),
        figure("b", 900, host="store-3"),
        figure("b", 900, what="disk wb0 read"),
    ]
    assert warnings(of) == ()
    assert len(compare(of)) == 3


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
    assert lines((), ("a", "b")) == ()
    assert verdict([figure("swift", 100)]).startswith("Only one deployment was attested")


def test_the_table_has_a_cell_for_each_layout_with_the_range_over_its_repeats() -> None:
    of = [
        *APART,
        figure("swift", 198e6, repeat=1),
        figure("swift", 5e9, what="network to client-1", kind="network", unit="bit/s"),
    ]
    disk, network = lines(of, ("rgw-beast", "swift"))
    assert (disk.host, disk.what) == ("store-2", "disk wb0 write")
    assert (disk.promised, disk.apart, disk.beyond) == ("1.00 B/s", "28 %", True)
    assert disk.cells == ("197 MB/s", "142 to 198 MB/s")
    assert network.cells == ("–", "5.00 Gbit/s")
    assert not network.beyond


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (197e6, "B/s", "197 MB/s"),
        (1.604e9, "B/s", "1.60 GB/s"),
        (9.43e9, "bit/s", "9.43 Gbit/s"),
        (95.2e6, "bit/s", "95.2 Mbit/s"),
        (24720, "1/s", "24,720 requests/s"),
        (194.7, "events/s", "195 events/s"),
        (12.0, "bit/s", "12.0 bit/s"),
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
    assert host_doubts(pair(66.0, rgw=68.0)) == (), "both are below, and equal"
    assert host_doubts(pair(71.0)) == (), "within the bound of the promise"
    assert host_doubts(pair(66.0, promised=None)) == ()
    assert [one.doubt.grade for one in host_doubts(pair(50.0))] == ["grave"], "one doubt is enough"
