from __future__ import annotations

import altair as alt
import vl_convert as vlc

from weighbridge.results.charts.figure import Figure, Plot


def plot(key: str, text: str) -> Plot:
    spec = alt.Chart(alt.InlineData(values=[{"said": text}])).mark_text().encode(text="said:N").to_dict(validate=False)
    return Plot(key=key, title=key, finding="", spec=spec, head=("said",), lines=((text,),))


def test_every_panel_of_a_figure_shows_its_own_data() -> None:
    figure = Figure(name="two", title="Two", finding="Both", caption="", csv="", plots=(plot("a", "apples"), plot("b", "pears")))
    svg = vlc.vegalite_to_svg(figure.spec())
    assert ">apples<" in svg
    assert ">pears<" in svg
