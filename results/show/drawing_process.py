"""The program of a drawing process of `results.show.pictures`.

`python -c "from weighbridge.results.show.drawing_process import serve; serve()" FONTS` reads
Vega-Lite specs from stdin, one a line, and answers a line each: JSON with `svg`, and `png` and
`pdf` in base64; or with `error`. It imports next to nothing, so that it starts fast.
"""

from __future__ import annotations

import json
import re
import sys
from base64 import b64encode
from typing import Any

import vl_convert as vlc

LARGEST = 1.2
"""How much a picture that is too small is enlarged at most."""
_ROOT = re.compile(r'width="([\d.]+)" height="([\d.]+)" viewBox="[^"]*"([^>]*)>')


def fitted(svg: str, about: dict[str, Any]) -> str:
    """A picture of exactly `size`: what is too large becomes smaller, and margins are filled."""
    if "size" not in about:
        return svg
    width, height = about["size"]

    def resized(root: re.Match[str]) -> str:
        old_width, old_height = float(root[1]), float(root[2])
        scale = min(width / old_width, height / old_height, LARGEST)
        wide, high = width / scale, height / scale
        return (
            f'width="{width}" height="{height}" viewBox="0 0 {wide:.1f} {high:.1f}"{root[3]}>'
            f'<rect width="{wide:.1f}" height="{high:.1f}" fill="{about["background"]}"/>'
        )

    return _ROOT.sub(resized, svg, count=1)


def serve() -> None:
    """Draw until stdin ends."""
    vlc.register_font_directory(sys.argv[1])
    for line in sys.stdin:
        try:
            spec = json.loads(line)
            about = spec.get("usermeta", {})
            svg = fitted(vlc.vegalite_to_svg(spec), about)
            png, pdf = vlc.svg_to_png(svg, scale=about.get("scale", 1)), vlc.svg_to_pdf(svg)
        except ValueError as error:
            answer = {"error": str(error)}
        else:
            answer = {
                "svg": svg,
                "png": b64encode(png).decode("ascii"),
                "pdf": b64encode(pdf).decode("ascii"),
            }
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
