from __future__ import annotations

import altair as alt
import pytest
import vl_convert as vlc

from weighbridge.results.charts.figure import together


def chart(values: list[int]) -> alt.Chart:
    data = alt.InlineData(values=tuple({"a": value} for value in values))
    return alt.Chart(data).mark_point().encode(x="a:Q").properties(width=80, title=f"{values}")


def test_charts_put_together_are_drawn_as_altair_itself_would_have_them() -> None:
    parts = [chart([1, 2, 3]), chart([4, 9])]
    ours = together([part.to_dict(validate=False) for part in parts], "hconcat", spacing=26, title={"text": "both"})
    theirs = alt.hconcat(*parts, spacing=26).properties(title="both").to_dict()
    assert vlc.vegalite_to_svg(ours) == vlc.vegalite_to_svg({**theirs, "config": {}})


def test_nothing_to_put_together_is_refused() -> None:
    with pytest.raises(ValueError, match="no charts"):
        together([], "concat")
