"""The command `weighbridge`: parsing, printing errors, exit codes. `cli/` has its verbs.

Exit codes: 0 fine, 1 a difference was asked about and found, 2 usage, 3 a target failed, 4 nothing
valid was measured, 5 an internal error, 128 + n ended by signal n.
"""

from __future__ import annotations

import errno
import importlib
import io
import os
import signal
import sys
import threading
from contextlib import suppress
from itertools import takewhile
from typing import ClassVar, Final, cast

import click

from weighbridge.common.cleanup import TERMINATION_SIGNALS, outside_imports
from weighbridge.common.errors import (
    DISK_FULL,
    EXIT_INTERNAL,
    EXIT_TARGET,
    EXIT_USAGE,
    WeighbridgeError,
)
from weighbridge.common.escaping import as_started, escape_controls, mask_urls
from weighbridge.conductor.interruption import Interrupted

REFUSED: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
"""Errors of the system for a file that this user may not use."""


class Verbs(click.Group):
    """A group that imports a verb only when it is used: `--help` must be fast."""

    VERBS: ClassVar[dict[str, str]] = {
        "compare": "Compare layouts side by side with a suite: table, charts and report.",
        "resume": "Continue a run that was interrupted or killed, at the first missing step.",
        "runs": "List runs: date, suite, layouts, state and answer.",
        "open": "Open the report of a run in a browser, or print its path.",
        "compare-runs": "Compare two runs: releases, tunings or days; refused if not alike.",
        "history": "Draw the figures of many runs over time, and find where they changed.",
        "study": "Replay a published study: its tables, what changed, its results beside yours.",
        "tune": "Find the settings of a layout that help, and prove that they do.",
        "capabilities": "Try what clients ask of stores: what works, is refused, or is wrong.",
        "durability": "Cut the power of stores under load: what is left of what they acknowledged.",
        "topologies": "List layouts, releases and parameters.",
        "init": "Write a commented suite, layout or hardware file to edit.",
        "suites": "List the suites that ship.",
        "hardware": "List the hardware files that ship.",
        "render": "Print every configuration file of a layout; starts nothing.",
        "up": "Start a layout, verify it, and leave it running.",
        "status": "Show what is running, its endpoints and its credentials.",
        "exec": "Run a command on a host of a running deployment.",
        "down": "Tear down what is running, or all that a killed run left.",
        "clean": "List, and delete, what killed runs left on a gateway that already runs.",
        "report": "Make table, charts and report of a run again, from its folder.",
        "charts": "Draw every chart of a run as PNG, SVG and PDF, for a bright room or a dark one.",
        "slides": "Make a talk of a run: PowerPoint with native charts.",
        "export": "Write a run as CSV, Parquet, JSON, hgrm, Markdown or slides.",
        "sql": "Query many runs at once with SQL.",
        "baseline": "Measure what the hosts of a hardware file can do, without a gateway.",
        "import-cosbench": "Convert a COSBench workload file to a suite.",
        "images": "List the images of lab hosts and the date of their packages; rebuild them.",
        "completion": "Print what bash, zsh or fish need to complete verbs, options and names.",
        "doctor": "Report what is missing on this machine and how to get it.",
        "null-target": "Serve both APIs from memory, to calibrate drivers.",
    }
    FILES: ClassVar[dict[str, tuple[str, ...]]] = {
        "across_runs": ("compare-runs", "history"),
        "compare": ("compare", "resume", "study", "tune"),
        "deployments": ("up", "status", "exec", "down", "clean"),
        "files": ("topologies", "init", "suites", "hardware", "render", "import-cosbench"),
        "machine": ("baseline", "images", "completion", "doctor"),
        "results": ("runs", "open", "report", "charts", "slides", "export", "sql"),
        "stores": ("capabilities", "durability", "null-target"),
    }
    """The verbs of each file of `cli/`: the verb `init` is its command `init_verb`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs in the order in which a user meets them."""
        return list(self.VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the file of the verb; suggest the closest verb for an unknown one."""
        if cmd_name not in self.VERBS:
            from weighbridge.common.document import did_you_mean  # noqa: PLC0415 - only for a typo

            ctx.fail(f"no verb {cmd_name!r}{did_you_mean(cmd_name, list(self.VERBS))}")
        (file,) = (file for file, verbs in self.FILES.items() if cmd_name in verbs)
        module = importlib.import_module(f"weighbridge.cli.{file}")
        return cast("click.Command", getattr(module, f"{cmd_name.replace('-', '_')}_verb"))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb; refuse empty values, which would mean defaults or the working folder."""
        name, verb, rest = super().resolve_command(ctx, args)
        if verb is not None and not verb.ignore_unknown_options and not ctx.resilient_parsing:
            before = ""
            for word in takewhile(lambda one: one != "--", rest):
                option = before if not word else word.removesuffix("=")
                if not word or (word.startswith("--") and word.endswith("=")):
                    what = repr(option) if option.startswith("--") else "an argument"
                    ctx.fail(f"{what} is empty; leave it out for its default")
                before = word
        return name, verb, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of verbs, without importing any."""
        with formatter.section("Verbs"):
            formatter.write_dl(list(self.VERBS.items()))


@click.group(
    cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(package_name="weighbridge")
def weighbridge() -> None:
    """Benchmark object-store gateways side by side: real Ceph RGW and real OpenStack Swift, on
    identical hosts, with the same load.
    """


def main() -> None:
    """Run the command line and exit. Every error is printed here, none as a traceback or a 1."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal with few characters, such as Latin-1, shows a mark for those that it lacks.
        sys.stdout.reconfigure(errors="replace")
    died: list[int] = []

    def report(thread: threading.ExceptHookArgs) -> None:
        """Say at once that a thread has died: what it did is missing from what follows."""
        if isinstance(thread.exc_value, Exception):
            died.append(_internal(thread.exc_value))

    threading.excepthook = report
    for one in TERMINATION_SIGNALS:
        if signal.getsignal(one) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(one, outside_imports(_end))
    code = _code()
    for name in ("stdout", "stderr"):
        try:
            if (stream := getattr(sys, name)) is not None:
                stream.flush()
        except OSError:
            # Its reader, such as a terminal, has gone: Python's own last flush must not complain.
            setattr(sys, name, None)
    sys.exit(code or next(iter(died), code))


def _end(number: int) -> None:
    # What is half written is removed; click turns a KeyboardInterrupt into an error of its own.
    raise SystemExit(128 + number)


def _code() -> int:
    try:
        # click's standalone mode would print and exit by its own rules.
        code = weighbridge.main(standalone_mode=False)
        if sys.stdout is not None:
            # Find here what cannot be printed: Python would exit with its own code for that.
            sys.stdout.flush()
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        shown = io.StringIO()
        error.show(shown)
        _print(shown.getvalue().rstrip())
        return EXIT_USAGE
    except WeighbridgeError as error:
        return _said(error)
    except Interrupted as error:
        left = "; ".join(dict.fromkeys(getattr(error, "__notes__", ())))
        rest = f"{left}; all else" if left else "all"
        _complain(f"ended by {error.signal.name}; {rest} that was started is ended")
        return 128 + error.signal
    except SystemExit as error:
        return cast("int", error.code)
    except BrokenPipeError:
        # The reader (`| head`) has gone; Python's own last flush must not complain.
        sys.stdout = None
        return 141
    except ModuleNotFoundError as error:
        from weighbridge.common.errors import EXTRA_OF, missing  # noqa: PLC0415 - `--help` is fast

        module = (error.name or "").partition(".")[0]  # it may come with an extra
        return _said(missing(module)) if module in EXTRA_OF else _internal(error)
    except OSError as error:
        if error.errno in DISK_FULL:
            return _full(error)
        if error.filename is not None and error.errno in REFUSED:
            _complain(
                f"{os.fsdecode(error.filename)}: {error.strerror}\nThis machine refuses access: "
                "check owner, mode and mount."
            )
            return EXIT_TARGET
        return _internal(error)
    except Exception as error:  # noqa: BLE001 - report even what nobody foresaw in words
        return _internal(error)
    return code if isinstance(code, int) else 0


def _said(error: WeighbridgeError) -> int:
    _complain(str(error))
    return error.exit_code


def _complain(text: str) -> None:
    _print(f"weighbridge: {text}")


def _print(text: str) -> None:
    """Print an error, which may quote a server or an argument. If that fails, the exit code still
    says it.
    """
    with suppress(OSError):
        click.echo(as_started(mask_urls(escape_controls(text))), err=True)


def _full(error: OSError) -> int:
    if error.filename is None:
        # The output itself may be full: Python's own last flush must not complain.
        sys.stdout = None
    where = "the output" if error.filename is None else os.fsdecode(error.filename)
    _complain(
        f"{where}: the disk is full ({error.strerror})\nMake room, or choose another folder. "
        "What was complete is kept."
    )
    return EXIT_TARGET


def _internal(error: Exception) -> int:
    """Print one line about a fault of the suite; its details go to a file only for this user."""
    import tempfile  # noqa: PLC0415 - `--help` must be fast
    import traceback  # noqa: PLC0415

    summary = " ".join(traceback.format_exception_only(error)[-1].split())[:200]
    last = traceback.extract_tb(error.__traceback__)[-1:]
    where = f" in {os.path.basename(last[0].filename)}:{last[0].lineno}" if last else ""  # noqa: PTH119 - only the base name
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
    _complain(f"internal error{where}: {summary}; {details}")
    return EXIT_INTERNAL
