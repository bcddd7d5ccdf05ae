"""A page: one HTML file made from a template, with its fonts, charts and scripts inside.

Everything that comes from files or machines is escaped. Should something get through anyway, the
page's Content Security Policy forbids all fetching and all scripts except two, known by their
hashes; Vega interprets its expressions and compiles none. The policy has to allow inline styles:
they are in elements and attributes all over a page, and Vega makes some of them.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from importlib import metadata, resources
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from weighbridge.common import safe_files
from weighbridge.common.escaping import escape_all_controls, escape_controls
from weighbridge.common.paths import expanded
from weighbridge.common.quantities import show_bytes
from weighbridge.results.numbers import upper
from weighbridge.results.run.resolved import PlannedLayout
from weighbridge.results.show.chart import PAGE_TEXT_PX, Chart
from weighbridge.results.show.scales import DARK, LIGHT, config, styles

LOOKS: Final = (LIGHT, DARK)
"""How a page can look; the reader's browser, or the reader, chooses."""


def render(
    template: str, charts: Sequence[Chart], layouts: Sequence[PlannedLayout] = (), /, **fields: Any
) -> str:
    """A template with the plots of these charts in every look; `colours` name layouts' colours."""
    return (
        environment()
        .get_template(template)
        .render(
            **fields,
            # As CSS: they change with the look.
            colours={one.name: f"var(--layout-{number})" for number, one in enumerate(layouts)},
            palettes={look.name: styles(layouts, look) for look in LOOKS},
            policy=_policy(),
            program=_program(),
            fonts={400: _font("Inter-Regular.otf"), 600: _font("Inter-SemiBold.otf")},
            specs=escape_all_controls(_plots(charts)),
            bundle=_bundle(),
        )
    )


@lru_cache(maxsize=1)
def environment() -> Environment:
    """The templates and their filters; made once per process, since it keeps what it compiled."""
    templates = Environment(
        loader=PackageLoader("weighbridge.results"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalized,
    )
    templates.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    templates.filters["bytes"] = show_bytes
    templates.filters["breakable"] = _breakable
    templates.filters["capital"] = upper
    return templates


def _plots(charts: Iterable[Chart]) -> dict[str, Any]:
    """The specs of all panels, each with the number of its config, which there are in each look."""
    groups: list[tuple[PlannedLayout, ...]] = []
    panels = {}
    for chart in charts:
        if chart.layouts not in groups:
            groups.append(chart.layouts)
        for panel in chart.panels:
            plot = {"spec": chart.on_page(panel), "config": groups.index(chart.layouts)}
            panels[f"{chart.key}-{panel.key}"] = plot
    configs = {
        look.name: [{**config(look, group, PAGE_TEXT_PX), "background": None} for group in groups]
        for look in LOOKS
    }
    return {"panels": panels, "configs": configs}


def _finalized(value: Any) -> Any:
    """The value of a template's expression, made harmless: every text enters a page this way."""
    # Markup is passed on as it is: scripts must match their hashes.
    return (
        escape_controls(value)
        if isinstance(value, str) and not isinstance(value, Markup)
        else value
    )


def _breakable(text: str) -> Markup:
    """A text that may break after `_` and `.` within names, but not after an arrow."""
    words = str(escape(escape_controls(text))).replace(" → ", " →\N{NO-BREAK SPACE}")
    return Markup(re.sub(r"(?<=\w)([_.])(?=[^\W\d])", r"\1<wbr>", words))  # noqa: S704 - escaped above


@lru_cache(maxsize=1)
def _bundle() -> Markup:
    """What draws Vega-Lite's specs, safe within a script element."""
    return Markup(vega_bundle().replace("</script", "<\\/script"))  # noqa: S704 - a library's


@lru_cache(maxsize=1)
def _program() -> Markup:
    return Markup(_file("templates", "page.js").decode())  # noqa: S704 - a file of this package


@lru_cache(maxsize=1)
def _policy() -> Markup:
    """What a page may do (Content Security Policy Level 3): scripts are allowed by their hashes."""
    hashes = (
        base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        for script in (_bundle(), _program())
    )
    allowed = " ".join(f"'sha256-{one}'" for one in hashes)
    return Markup(  # noqa: S704 - made of constants and hashes
        f"default-src 'none'; style-src 'unsafe-inline'; script-src {allowed}; "
        "img-src data: blob:; font-src data:; base-uri 'none'; form-action 'none'"
    )


def _font(name: str) -> str:
    return base64.b64encode(_file("fonts", name)).decode()


def _file(*path: str) -> bytes:
    return resources.files("weighbridge.results").joinpath(*path).read_bytes()


LARGEST_BYTES: Final = 16 << 20
"""Of a kept script; that of Vega-Lite 6.4 has 0.9 MB."""


def vega_bundle() -> str:
    """Sets `window.vegaEmbed`. Bundling takes 2 s of CPU, so it is kept in the user's cache, by
    vl-convert's version; a cache that fails costs those seconds alone.
    """
    cache = expanded(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    name = f"weighbridge/vega-{metadata.version('vl-convert-python')}.js"
    script = _kept(cache, name) if cache.is_absolute() else None
    if script is None:
        import vl_convert as vlc  # noqa: PLC0415 - an extra, and slow to import

        script = vlc.javascript_bundle("window.vegaEmbed=vegaEmbed;")
        if cache.is_absolute():
            with suppress(OSError):
                cache.mkdir(parents=True, exist_ok=True, mode=0o700)
                safe_files.write(cache, name, script.encode(), mode=0o600)
    return script


def _kept(cache: Path, name: str) -> str | None:
    """What was kept before, if nobody but this user can have written it: a page runs it."""
    try:
        with safe_files.open_to_read(cache, name, largest_bytes=LARGEST_BYTES) as file:
            status = os.fstat(file.fileno())
            if status.st_uid != os.geteuid() or status.st_mode & 0o022:
                return None
            return file.read().decode()
    except (OSError, UnicodeDecodeError):
        return None
