"""Write docs/verbs.md, every verb with its arguments and options, from the help, to stdout.

Run by `make reference`. Nothing in it depends on the machine, the terminal or the day.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator

import click

from weighbridge.command import Verbs, weighbridge

HEAD = """# Verbs

Every verb of the command line, written by `make reference` from its help. On the terminal:
`weighbridge --help`, `weighbridge VERB --help`, `man weighbridge`.

## Exit codes

| code | meaning |
| --- | --- |
| 0 | fine |
| 1 | a difference was asked about and found |
| 2 | usage: nothing was started |
| 3 | a target failed |
| 4 | nothing valid or comparable was measured |
| 5 | an internal error: one line, with the file that has its details |
| 128 + n | ended by signal n |

## All verbs
"""


def main() -> None:
    """Print the page."""
    top = click.Context(weighbridge, info_name="weighbridge")
    parts = [HEAD, "| verb | what it does |\n| --- | --- |"]
    parts += [f"| [`{name}`](#{name}) | {_cell(about)} |" for name, about in Verbs.VERBS.items()]
    for name in weighbridge.list_commands(top):
        command = weighbridge.get_command(top, name)
        if command is not None:
            parts += _section(name, command, click.Context(command, top, name))
    sys.stdout.write("\n".join((*parts, "")))


def _section(name: str, command: click.Command, context: click.Context) -> Iterator[str]:
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"\n## {name}\n\n```\nweighbridge {name} {usage}\n```\n"
    yield _paragraphs(command.help or "")
    records = [one.get_help_record(context) for one in command.get_params(context)]
    yield "\n| option | meaning |\n| --- | --- |"
    for option, says in filter(None, records):
        yield f"| {_code(option)} | {_cell(says)} |"
    if command.epilog:
        yield f"\n{_paragraphs(command.epilog)}"


def _paragraphs(text: str) -> str:
    """Paragraphs of a help; those that begin with click's mark keep their lines."""
    made = []
    for part in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        kept = part.startswith("\b")
        body = part.removeprefix("\b\n")
        made.append(f"```\n{body}\n```" if kept else _plain(body))
    return "\n\n".join(made)


def _plain(text: str) -> str:
    """A text without marks of Markdown or HTML but for code."""
    return text.replace("*", r"\*").replace("<", "&lt;")


def _code(text: str) -> str:
    """Code in a table. A bar ends a cell; renderers differ in how it is escaped in code."""
    return f"<code>{text.replace('|', '&#124;')}</code>" if "|" in text else f"`{text}`"


def _cell(text: str) -> str:
    return _plain(" ".join(text.split())).replace("|", r"\|")


if __name__ == "__main__":
    main()
