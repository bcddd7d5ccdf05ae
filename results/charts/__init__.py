"""Charts: for the screen as PNG, SVG and PDF, for the report as Vega-Lite specs."""
