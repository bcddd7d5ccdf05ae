"""The program of a drawing process of `results.charts.pictures`.

`python -c "from weighbridge.results.charts.drawing_process import serve; serve()" FONTS` reads
Vega-Lite specs from stdin, one a line, and answers a line each: JSON with `svg`, and `png` and
`pdf` in base64; or with `error`. It imports next to nothing, so that it starts fast.
"""

from __future__ import annotations

import json
import sys
from base64 import b64encode

import vl_convert as vlc

PNG_SCALE = 2


def serve() -> None:
    """Draw until stdin ends."""
    vlc.register_font_directory(sys.argv[1])
    for line in sys.stdin:
        try:
            svg = vlc.vegalite_to_svg(json.loads(line))
            png, pdf = vlc.svg_to_png(svg, scale=PNG_SCALE), vlc.svg_to_pdf(svg)
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
