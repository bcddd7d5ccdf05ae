"""Putting finished charts together by hand.

Altair's own functions copy every chart and all that is in it several times over, which is most of the time that a report of many
panels takes. What they would also do, to lift data that charts share, changes nothing that is seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

_OF_THE_WHOLE = ("$schema", "config", "datasets")


def together(specs: Sequence[Mapping[str, Any]], how: Literal["concat", "hconcat", "vconcat"], **rest: Any) -> dict[str, Any]:
    """One Vega-Lite spec of several, of which each is what `to_dict` of a chart gave. `rest` is said of the whole: columns, title.

    A config is left to whoever draws the whole. Raises ValueError where there is none to put together.
    """
    if not specs:
        raise ValueError("no charts to put together")
    datasets = {name: data for spec in specs for name, data in spec.get("datasets", {}).items()}
    parts = [{key: value for key, value in spec.items() if key not in _OF_THE_WHOLE} for spec in specs]
    schema = {"$schema": specs[0]["$schema"]} if "$schema" in specs[0] else {}
    return {**schema, **rest, how: parts, "datasets": datasets}
