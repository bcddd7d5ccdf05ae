"""Write the manual page of `weighbridge` in roff, from the help of its verbs, to stdout.

Run by `make man`. Nothing in it depends on the machine, the terminal or the day.
"""

from __future__ import annotations

import inspect
import re
import sys

import click

from weighbridge.command import weighbridge

HEAD = """.\\" Made from the help by `make man`.
.TH WEIGHBRIDGE 1 "" "" "Weighbridge"
.SH NAME
weighbridge \\- benchmark object\\-store gateways side by side
.SH SYNOPSIS
.B weighbridge
.I VERB
.RI [ OPTIONS ]
"""
EXITS = """.SH EXIT STATUS
0 fine, 1 a difference was asked about and found, 2 usage (nothing was started), 3 a target failed,
4 nothing valid or comparable was measured, 5 an internal error, 128 + n ended by signal n.
"""


def roff(text: str) -> str:
    """A text with what roff would take for its own marks escaped."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.MULTILINE)


def paragraphs(text: str) -> str:
    """Paragraphs of a help; those that begin with click's mark keep their lines."""
    made = []
    for part in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        kept = part.startswith("\b")
        body = roff(part.removeprefix("\b\n"))
        made.append(f".PP\n.nf\n{body}\n.fi\n" if kept else f".PP\n{body}\n")
    return "".join(made)


def verb(name: str, command: click.Command, context: click.Context) -> str:
    """A verb's section: its usage, its help, and its options."""
    usage = " ".join(command.collect_usage_pieces(context))
    records = [one.get_help_record(context) for one in command.get_params(context)]
    made = [f".SS {name}\n.B weighbridge {roff(name)}\n{roff(usage)}\n"]
    made += [paragraphs(command.help or "")]
    made += [f".TP\n.B {roff(one)}\n{roff(says)}\n" for one, says in filter(None, records)]
    return "".join([*made, paragraphs(command.epilog) if command.epilog else ""])


def page() -> str:
    """The complete page."""
    top = click.Context(weighbridge, info_name="weighbridge")
    made = [HEAD, ".SH DESCRIPTION\n", paragraphs(weighbridge.help or ""), ".SH VERBS\n"]
    for name in weighbridge.list_commands(top):
        command = weighbridge.get_command(top, name)
        if command is not None:
            made.append(verb(name, command, click.Context(command, top, name)))
    return "".join([*made, EXITS])


if __name__ == "__main__":
    sys.stdout.write(page())
