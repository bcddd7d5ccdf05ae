import math
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weighbridge.results.run.resolved import PlannedLayout
from weighbridge.results.show.scales import (
    DARK,
    LIGHT,
    TOKENS,
    Look,
    config,
    diverging,
    log_ticks,
    nice_top,
    spread,
    styles,
)

places = st.lists(st.floats(0, 1), min_size=1, max_size=6)


@given(places)
def test_labels_are_a_gap_apart_and_keep_their_order(wanted: list[float]) -> None:
    placed = spread(wanted, 0.1)
    order = sorted(range(len(wanted)), key=lambda index: placed[index])
    assert all(placed[b] - placed[a] >= 0.1 - 1e-9 for a, b in pairwise(order))
    assert [wanted[index] for index in order] == sorted(wanted)


def test_labels_that_touch_move_about_their_mean_and_others_stay_where_they_are() -> None:
    assert spread([0.9, 0.1, 0.5], 0.1) == pytest.approx([0.9, 0.1, 0.5])
    assert spread([0.5, 0.5], 0.2) == pytest.approx([0.4, 0.6])


@given(st.floats(1e-3, 1e9))
def test_a_scale_from_0_holds_its_largest_value_with_few_ticks(largest: float) -> None:
    top, step = nice_top(largest)
    assert top >= largest
    assert 2 <= round(top / step) <= 6


@given(st.floats(1e-3, 1e6), st.floats(1, 1e5))
def test_a_log_scale_holds_both_ends_with_few_ticks(low: float, factor: float) -> None:
    start, end, ticks = log_ticks(low, low * factor)
    assert start <= low <= low * factor <= end
    assert start < end
    assert 1 <= len(ticks) <= 9


def test_six_layouts_differ_by_colour_and_by_shape_and_keep_theirs_among_any_others() -> None:
    names = {"rgw-beast": "rgw", "a": "rgw", "b": "rgw", "swift": "swift", "c": "swift", "d": "x"}
    layouts = [PlannedLayout(name=name, gateway=gateway) for name, gateway in names.items()]
    look = styles(layouts)
    assert len({style.colour for style in look}) == len({style.shape for style in look}) == 6
    beast, swift, tuned = layouts[0], layouts[3], PlannedLayout(name="swift-tuned", gateway="swift")
    assert styles([swift, beast])[0].colour == styles([beast, tuned, swift])[2].colour


SHIPPED = (
    *("rgw-beast", "rgw-civetweb", "rgw-apache-fastcgi", "rgw-apache-proxy", "rgw-haproxy"),
    *("swift", "swift-haproxy", "swift-s3api"),
)
LOOKS = pytest.mark.parametrize("look", [LIGHT, DARK], ids=["light", "dark"])

# G. M. Machado, M. M. Oliveira and L. A. F. Fernandes 2009, full severity: linear RGB to linear
# RGB.
VISIONS = {
    "usual": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "no red": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "no green": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "no blue": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
# B. Ottosson 2020: linear sRGB to cone responses, and their cube roots to Oklab.
CONES = (
    (0.4122214708, 0.5363325363, 0.0514459929),
    (0.2119034982, 0.6806995451, 0.1073969566),
    (0.0883024619, 0.2817188376, 0.6299787005),
)
OKLAB = (
    (0.2104542553, 0.7936177850, -0.0040720468),
    (1.9779984951, -2.4285922050, 0.4505937099),
    (0.0259040371, 0.7827717662, -0.8086757660),
)

Vector = tuple[float, ...]


def times(matrix: tuple[Vector, ...], vector: Vector) -> Vector:
    return tuple(sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix)


def linear(colour: str) -> Vector:
    channels = [channel / 255 for channel in bytes.fromhex(colour.removeprefix("#"))]
    return tuple(
        one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in channels
    )


def seen(colour: str, vision: str) -> Vector:
    light = tuple(min(1.0, max(0.0, one)) for one in times(VISIONS[vision], linear(colour)))
    return times(OKLAB, tuple(math.cbrt(one) for one in times(CONES, light)))


def contrast(a: str, b: str) -> float:
    """Of two colours, 1 to 21 (WCAG 2.1); shapes need 3, text 4.5, large text 3."""
    darker, lighter = sorted(
        sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear(one), strict=True))
        for one in (a, b)
    )
    return (lighter + 0.05) / (darker + 0.05)


def layouts(names: tuple[str, ...]) -> list[PlannedLayout]:
    return [PlannedLayout(name=name, gateway=name.split("-")[0]) for name in names]


@LOOKS
def test_every_colour_contrasts_with_its_background(look: Look) -> None:
    tuned = [f"{gateway}-tuned-{number}" for gateway in ("rgw", "swift") for number in range(8)]
    many = (*SHIPPED, *tuned, "other-a", "other-b")
    chosen = {style.colour for style in styles(layouts(many), look)}
    assert len(chosen) > 12
    assert min(contrast(colour, look.background) for colour in chosen) >= 3
    texts = (look.ink, look.muted, look.bad)
    assert min(contrast(colour, look.background) for colour in texts) >= 4.5


@LOOKS
@pytest.mark.parametrize("vision", VISIONS)
def test_shipped_layouts_differ_with_any_colour_vision(look: Look, vision: str) -> None:
    colours = [style.colour for style in styles(layouts(SHIPPED), look)]
    pairs = combinations([seen(colour, vision) for colour in colours], 2)
    assert min(math.dist(a, b) for a, b in pairs) >= 0.07


@LOOKS
def test_a_family_keeps_its_hues_in_the_dark_look(look: Look) -> None:
    for style in styles(layouts(SHIPPED), look):
        red, _, blue = bytes.fromhex(style.colour.removeprefix("#"))
        assert (blue > red) == style.layout.startswith("swift")


def between(tone: float, look: Look) -> str:
    """The colour at a place from -1 to 1, as Vega mixes it."""
    colours = diverging(look)
    along = (tone + 1) / 2 * (len(colours) - 1)
    at = min(int(along), len(colours) - 2)
    low, high = (bytes.fromhex(colours[place].removeprefix("#")) for place in (at, at + 1))
    mixed = (round(a + (b - a) * (along - at)) for a, b in zip(low, high, strict=True))
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


@LOOKS
def test_large_text_is_readable_on_every_colour_from_worse_to_better(look: Look) -> None:
    strong = TOKENS["$strong"].replace("datum._tone", "tone").replace("||", "or")
    params = {one["name"]: one["value"] for one in config(look, (), 14)["params"]}
    for tone in (place / 50 for place in range(-50, 51)):
        on_strong = eval(strong, {**params, "tone": tone})
        text = look.background if on_strong else look.ink
        assert contrast(text, between(tone, look)) >= 3.5, tone
