"""The command `weighbridge`: parsing, printing of errors and exit codes. Each verb is a file of `weighbridge.verbs`.

Exit codes: 0 fine, 1 a difference was asked about and found, 2 usage, 3 a target failed, 4 nothing valid was measured,
128 + n ended by signal n.
"""

from __future__ import annotations

import importlib
import sys
from typing import ClassVar

import click

from ground.errors import EXIT_USAGE, WeighbridgeError
from ground.inert import inert
from weighbridge.interruption import Interrupted


class Verbs(click.Group):
    """A group that imports a verb only when it is used: `--help` has to be quick."""

    VERBS: ClassVar[dict[str, str]] = {
        "compare": "Weigh layouts side by side with a suite: table, charts and report.",
        "resume": "Go on with a run that was ended or killed, at the first step that is not whole.",
        "compare-runs": "Compare two runs: releases, tunings or days; refused where they are not alike.",
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
            from ground.document import did_you_mean  # noqa: PLC0415 - only for a typing error

            ctx.fail(f"no verb {cmd_name!r}{did_you_mean(cmd_name, list(self.VERBS))}")
        module = importlib.import_module(f"weighbridge.verbs.{cmd_name.replace('-', '_')}")
        command = module.command
        return command if isinstance(command, click.Command) else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of verbs, without importing any."""
        with formatter.section("Verbs"):
            formatter.write_dl(list(self.VERBS.items()))


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="weighbridge")
def weighbridge() -> None:
    """Weigh object-store gateways side by side: real Ceph RGW and real OpenStack Swift, on identical hosts, with the same load."""


def main() -> None:
    """Run the command line and exit. Every error of the suite is printed here and nowhere else."""
    try:
        # click's standalone mode would print and exit by rules of its own.
        code = weighbridge.main(standalone_mode=False)
    except click.exceptions.Exit as error:
        code = error.exit_code
    except click.ClickException as error:
        error.show()
        code = EXIT_USAGE
    except WeighbridgeError as error:
        click.echo(f"weighbridge: {inert(str(error))}", err=True)  # some of it may be a server's own words
        code = error.exit_code
    except Interrupted as error:
        click.echo(f"weighbridge: ended by {error.signal.name}; nothing is left standing", err=True)
        code = 128 + error.signal
    except (KeyboardInterrupt, click.Abort):
        code = 130
    except BrokenPipeError:
        # The reader (`| head`) has gone: nothing is left to be said, and Python's own last flush must not complain.
        sys.stdout = None
        code = 141
    sys.exit(code if isinstance(code, int) else 0)
