"""The command `weighbridge`: parsing, printing of errors and exit codes. Each verb is a file of
`weighbridge.cli`.

Exit codes: 0 fine, 1 a difference was asked about and found, 2 usage, 3 a target failed, 4 nothing
valid was measured, 5 an internal error, 128 + n ended by signal n.
"""

from __future__ import annotations

import errno
import importlib
import io
import os
import sys
from contextlib import suppress
from typing import ClassVar, Final

import click

from weighbridge.common.errors import (
    DISK_FULL,
    EXIT_INTERNAL,
    EXIT_TARGET,
    EXIT_USAGE,
    WeighbridgeError,
)
from weighbridge.common.inert import inert
from weighbridge.conductor.interruption import Interrupted

REFUSED: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
"""What the system says of a file that this user may not use."""


class Verbs(click.Group):
    """A group that imports a verb only when it is used: `--help` has to be quick."""

    VERBS: ClassVar[dict[str, str]] = {
        "compare": "Weigh layouts side by side with a suite: table, charts and report.",
        "resume": "Go on with a run that was ended or killed, at the first step that is not whole.",
        "compare-runs": "Compare two runs: releases, tunings or days; refused where they are not "
        "alike.",
        "study": "Replay a published study: its table, what changed, its figures beside ours.",
        "tune": "Find the settings of a layout that help, and prove that they do.",
        "topologies": "List layouts, releases and parameters.",
        "render": "Print every configuration file of a layout; starts nothing.",
        "up": "Stand a layout up, verify it, and leave it standing.",
        "status": "Show what stands, its endpoints and its credentials.",
        "exec": "Run a command on a host of what stands.",
        "down": "Take away what stands, or all that a killed run left.",
        "clean": "List, and delete, what killed runs left on a gateway that already ran.",
        "report": "Make table, charts and report of a run again, from its folder.",
        "charts": "Draw every chart of a run as PNG, SVG and PDF, for a bright room or a dark one.",
        "slides": "Make a talk of a run: PowerPoint with native charts, or Markdown.",
        "export": "Write a run as CSV, Parquet, JSON, hgrm, Markdown, LaTeX or slides.",
        "sql": "Ask many runs at once with SQL.",
        "baseline": "Measure what the hosts of a hardware file can do, without a gateway.",
        "import-cosbench": "Make a suite of a workload file of COSBench.",
        "images": "List the images of lab hosts and the day of their packages; build them anew.",
        "doctor": "Say what is missing on this machine and how to get it.",
        "null-target": "Serve both APIs from memory, to calibrate drivers.",
    }

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs in the order in which one meets them."""
        return list(self.VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the verb's file. An unknown verb is answered with the closest known one."""
        if cmd_name not in self.VERBS:
            from weighbridge.common.document import did_you_mean  # noqa: PLC0415 - only for a typing error

            ctx.fail(f"no verb {cmd_name!r}{did_you_mean(cmd_name, list(self.VERBS))}")
        module = importlib.import_module(f"weighbridge.cli.{cmd_name.replace('-', '_')}")
        command = module.command
        return command if isinstance(command, click.Command) else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of verbs, without importing any."""
        with formatter.section("Verbs"):
            formatter.write_dl(list(self.VERBS.items()))


@click.group(
    cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(package_name="weighbridge")
def weighbridge() -> None:
    """Weigh object-store gateways side by side: real Ceph RGW and real OpenStack Swift, on
    identical hosts, with the same load.
    """


def main() -> None:
    """Run the command line and exit.

    Every error is printed here and nowhere else: none leaves as a traceback, or as a 1.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal of few letters, such as Latin-1, shows a mark in place of those that it has
        # not.
        sys.stdout.reconfigure(errors="replace")
    sys.exit(_code())


def _code() -> int:
    """Run the command line; returns the exit code, its error printed."""
    try:
        # click's standalone mode would print and exit by rules of its own.
        code = weighbridge.main(standalone_mode=False)
        if sys.stdout is not None:
            # what cannot be printed is found here: Python itself would say so with a code of its
            # own
            sys.stdout.flush()
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        with suppress(OSError):
            error.show()
        return EXIT_USAGE
    except WeighbridgeError as error:
        _complain(str(error))
        return error.exit_code
    except Interrupted as error:
        _complain(f"ended by {error.signal.name}; nothing is left standing")
        return 128 + error.signal
    except (KeyboardInterrupt, click.Abort):
        return 130
    except BrokenPipeError:
        # The reader (`| head`) has gone: nothing is left to be said, and Python's own last flush
        # must not complain.
        sys.stdout = None
        return 141
    except OSError as error:
        if error.errno in DISK_FULL:
            return _full(error)
        if error.filename is not None and error.errno in REFUSED:
            _complain(
                f"{os.fsdecode(error.filename)}: {error.strerror}\nIt is this machine that "
                "refuses: see whose that is."
            )
            return EXIT_TARGET
        return _internal(error)
    except Exception as error:  # noqa: BLE001 - the outermost door: what nobody foresaw is told in words as well
        return _internal(error)
    return code if isinstance(code, int) else 0


def _complain(text: str) -> None:
    """Print an error. Where nobody can be told, the exit code still says it."""
    with suppress(OSError):
        click.echo(
            f"weighbridge: {inert(text)}", err=True
        )  # some of it may be a server's own words


def _full(error: OSError) -> int:
    if error.filename is None:
        # it may be the output itself that is full: Python's own last flush must not complain
        sys.stdout = None
    where = "what was to be written" if error.filename is None else os.fsdecode(error.filename)
    _complain(
        f"{where}: the disk is full ({error.strerror})\nMake room, or choose another folder. What "
        "was finished before is kept."
    )
    return EXIT_TARGET


def _internal(error: Exception) -> int:
    """Say in a line that the suite itself is at fault; its details go to a file, which only this
    user can read.
    """
    import tempfile  # noqa: PLC0415 - `--help` has to be quick
    import traceback  # noqa: PLC0415

    told = " ".join(traceback.format_exception_only(error)[-1].split())[:200]
    last = traceback.extract_tb(error.__traceback__)[-1:]
    where = f" in {os.path.basename(last[0].filename)}:{last[0].lineno}" if last else ""  # noqa: PTH119 - only its last part
    try:
        with tempfile.NamedTemporaryFile(
            "w",
            encoding="utf-8",
            errors="replace",
            prefix="weighbridge-",
            suffix=".txt",
            delete=False,
        ) as file:
            file.write(f"{sys.argv}\n")
            file.writelines(traceback.format_exception(error))
        details = f"details are in {file.name}"
    except OSError as unwritten:
        details = f"its details could not be written: {unwritten.strerror}"
    _complain(f"internal error{where}: {told}; {details}")
    return EXIT_INTERNAL
