"""Metrics of workloads that may be beyond capacity: goodput, and what became of the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from weighbridge.results.metric import Metric, OperationReader
from weighbridge.results.metric_figure import average

WITH_INTERVAL: Final = "Geometric mean over the repeats, ± half of its 95 % interval."
REFUSED: Final = ("http-503", "http-429", "http-498")
"""Classes of failures by which a server says that it has too much to do; radosgw answers 498 over
Swift's API (seen with 16.2).
"""
TIMED_OUT: Final = ("timeout",)
OUTSTANDING: Final = ("unfinished",)
"""Those outstanding when the window closed, which nobody saw end. About as many from before the
window are counted in it: to count both would make more than were due.
"""


def _of_offered(one: OperationReader, count: float | None) -> float | None:
    """A number of requests in % of those that were due."""
    return None if count is None or not one.offered else 100 * count / one.offered


def _failures(one: OperationReader, classes: tuple[str, ...]) -> int:
    return sum(one.tally.errors.get(name, 0) for name in classes)


def _share_metric(
    key: str, name: str, about: str, read: Callable[[OperationReader], float | None]
) -> Metric:
    """The metric of a share of the requests that were due."""
    return Metric(
        key=key,
        name=name,
        title=name[0].upper() + name[1:],
        unit="%",
        suffix="percent",
        group="count",
        about=f"{about} Of workloads with `overload`.",
        of_overload=True,
        over_repeats="Mean over the repeats.",
        read=read,
        merge=average,
        page=False,
    )


GOODPUT: Final = Metric(
    key="goodput",
    name="goodput",
    title="Goodput",
    unit="op/s",
    suffix="ops_s",
    group="rate",
    about=(
        "Operations that succeeded inside the window, and within the time that the workload’s "
        "`overload` allows from their intended start, divided by the window’s length."
    ),
    of_overload=True,
    over_repeats=WITH_INTERVAL,
    read=lambda one: None if one.good is None else one.good / one.window_s,
    better="more",
    bound="throughput_ratio",
    page=False,
)
SHARES: Final = (
    _share_metric(
        "refused",
        "refused",
        "Requests answered with 503, 429 or 498, in % of those that were due.",
        lambda one: _of_offered(one, _failures(one, REFUSED)),
    ),
    _share_metric(
        "late",
        "late",
        "Requests that succeeded too late to count, in % of those that were due.",
        lambda one: _of_offered(one, None if one.good is None else one.tally.count - one.good),
    ),
    _share_metric(
        "timed-out",
        "timed out",
        "Requests without a complete answer within the suite’s timeout, in % of those due.",
        lambda one: _of_offered(one, _failures(one, TIMED_OUT)),
    ),
    _share_metric(
        "failed-otherwise",
        "failed otherwise",
        "Requests that failed in another way, in % of those that were due; without those that were "
        "outstanding when the window closed.",
        lambda one: _of_offered(
            one, one.tally.failed - _failures(one, (*REFUSED, *TIMED_OUT, *OUTSTANDING))
        ),
    ),
    _share_metric(
        "not-sent",
        "not sent",
        "Requests that were due and waited in the client for a free connection when the window "
        "closed, in % of those that were due.",
        lambda one: None if one.sent_share is None else 100 * (1 - one.sent_share),
    ),
)
"""What became of requests that are not good, each in % of those that were due."""
