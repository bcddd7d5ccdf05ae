"""Options that several verbs share."""

from __future__ import annotations

import functools

import click

shown = functools.partial(click.option, show_default=True)
"""An option whose default is part of its help."""

hardware = click.option("--hardware", metavar="FILE", help="Hardware file, or the name of one that ships (default: lab-small).")
