"""A page: one HTML file of a template, with its type, its charts and the program that draws them in
it.

Everything that comes from files or machines is escaped. Should something get through all the same,
the page's own policy lets nothing be fetched, and no program run but these two, known by their
hashes: Vega interprets its expressions and compiles none. Styles stand in elements and attributes
all over a page, some of them made by Vega: these the policy cannot tell apart.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from weighbridge.common.inert import inert, inert_all
from weighbridge.common.quantities import show_bytes
from weighbridge.results.charts.composer import compose_panel
from weighbridge.results.charts.panels import Figure
from weighbridge.results.report.vega_bundle import vega_bundle


def render(template: str, specs: Mapping[str, Mapping[str, Any]], **words: Any) -> str:
    """A page of one of the templates.

    `specs` are the Vega-Lite specs of its plots by the names that they have in it.
    """
    return (
        _environment()
        .get_template(template)
        .render(
            **words,
            policy=_policy(),
            program=_program(),
            fonts={
                weight: _font(name)
                for weight, name in ((400, "Inter-Regular.otf"), (600, "Inter-SemiBold.otf"))
            },
            specs=_script_json(inert_all(specs)),
            bundle=_bundle(),
        )
    )


@lru_cache(maxsize=1)
def _environment() -> Environment:
    """Where templates are found; made once a process, with what it compiled of them."""
    environment = Environment(
        loader=PackageLoader("weighbridge.results"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalized,
    )
    environment.filters["bytes"] = show_bytes
    environment.filters["breakable"] = _breakable
    return environment


def specs_of(figures: Iterable[Figure]) -> dict[str, dict[str, Any]]:
    """The spec of every panel, by the name of its place in a page."""
    return {
        f"{figure.name}-{panel.key}": compose_panel(figure, panel)
        for figure in figures
        for panel in figure.panels
    }


def _finalized(value: Any) -> Any:
    """What an expression of a template gives, as it may stand in a page: the one way by which any
    text gets there.
    """
    # Scripts must stay as their hashes have them.
    return inert(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _breakable(text: str) -> Markup:
    """A text whose long names may be broken at their underscores and dots, and whose arrows stay
    with what they lead to.
    """
    words = str(escape(inert(text))).replace(" → ", " →\N{NO-BREAK SPACE}")
    return Markup(re.sub(r"(?<=\w)([_.])(?=\w)", r"\1<wbr>", words))  # noqa: S704 - escaped just here


@lru_cache(maxsize=1)
def _bundle() -> Markup:
    """What draws Vega-Lite's specs, safe within a script element."""
    return Markup(vega_bundle().replace("</script", "<\\/script"))  # noqa: S704 - a library's


@lru_cache(maxsize=1)
def _program() -> Markup:
    """What draws the plots and sorts the tables."""
    return Markup(  # noqa: S704 - ships with us
        resources.files("weighbridge.results").joinpath("templates", "page.js").read_text("utf-8")
    )


@lru_cache(maxsize=1)
def _policy() -> Markup:
    """What a page may do, as Content Security Policy Level 3 says it: scripts by the hash of all
    that stands in their element.
    """
    hashes = (
        base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        for script in (_bundle(), _program())
    )
    allowed = " ".join(f"'sha256-{one}'" for one in hashes)
    return Markup(  # noqa: S704 - nothing in it comes from elsewhere
        f"default-src 'none'; style-src 'unsafe-inline'; script-src {allowed}; img-src data: "
        "blob:; font-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _font(name: str) -> str:
    return base64.b64encode(
        resources.files("weighbridge.results").joinpath("fonts", name).read_bytes()
    ).decode("ascii")


def _script_json(value: Any) -> Markup:
    """JSON that is safe inside a script element: nothing in it can end the element or begin
    another.
    """
    text = (
        json.dumps(value, separators=(",", ":"))
        .replace("<", "\\u003c")
        .replace(">", "\\u003e")
        .replace("&", "\\u0026")
    )
    return Markup(text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))  # noqa: S704 - escaped just here
