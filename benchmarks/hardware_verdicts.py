"""Who leads on which hardware: the suite of `compare` on disks of each model, and on `lab-cpu`.

    .venv/bin/python -m benchmarks.hardware_verdicts [--out FOLDER] [--only nvme,lab-cpu]
        [-- COMPARE OPTIONS]

Each hardware takes one `weighbridge compare`, about eight minutes on two cores. Hosts are those of
`lab-disks` with another disk model. Prints a Markdown table of all of them (a line for each kind of
request and worker count). Figures that `compare` doubts are marked `?`, and the doubts follow the
table. Needs root and a machine that does nothing else. Runs that are in FOLDER already are not
repeated.
"""

from __future__ import annotations

import argparse
import csv
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Final

from weighbridge.results.numbers import show_figure

MODELS: Final = {
    "ideal": "ideal",
    "nvme": "nvme",
    "sata-ssd": "sata-ssd",
    "spinning-7200": "{base: spinning-7200, scatter: 4MiB}",
}
"""Disk models as in a hardware file. Flash is not scattered: nothing seeks there."""
CPU: Final = "lab-cpu"
BASE, OTHER = "rgw-beast", "swift"
"""The layouts of the suite."""
HEAD: Final = (
    *("disks", "requests", "workers"),
    *(f"{layout} {what}" for layout in (BASE, OTHER) for what in ("op/s", "p90 ms", "max ms")),
    *(f"limited by ({layout})" for layout in (BASE, OTHER)),
    "throughput",
)
FIGURES: Final = {"throughput": "throughput_ops_s", "p90": "p90_ms", "max": "max_ms"}
"""The columns of summary.csv that the table shows, by their metrics."""
DOUBT: Final = re.compile(r"(?:grave|mild)(?: \(([^)]*)\))?: ")
"""A doubt in summary.csv, with the metrics that it touches: all, if it names none."""


def hardware_of(model: str) -> str:
    """The hardware file of `lab-disks` with disks of a model, and with faster NICs where they would
    limit large reads.
    """
    text = (files("weighbridge.topologies") / "hardware/lab-disks.yaml").read_text()
    changed = text.replace("{base: spinning-7200, scatter: 4MiB}", MODELS[model])
    if model != "spinning-7200":
        changed = changed.replace("1Gbit", "3Gbit")
    return changed.replace("name: lab-disks", f"name: lab-{model}")


def compared(name: str, out: Path, options: Sequence[str]) -> Path:
    """The folder of a run on this hardware, made unless there is one.

    Raises SystemExit if none was made.
    """
    folder = out / name
    if not (found := sorted(folder.glob("*/derived/summary.csv"))):
        folder.mkdir(parents=True, exist_ok=True)
        hardware = name
        if name != CPU:
            path = folder / f"lab-{name}.yaml"
            path.write_text(hardware_of(name))
            hardware = str(path)
        words = [str(Path(sys.executable).parent / "weighbridge"), "compare", "--no-charts"]
        words += ["--hardware", hardware, "--out", str(folder), *options]
        with (folder / "log").open("w") as log:
            ended = subprocess.run(words, stdout=log, stderr=subprocess.STDOUT, check=False)
        found = sorted(folder.glob("*/derived/summary.csv"))
        print(f"{name}: exit {ended.returncode}", file=sys.stderr, flush=True)
        if not found:
            raise SystemExit(f"{name}: no results; see {folder / 'log'}")
    return found[-1].parent.parent


def doubted(doubts: str, metric: str) -> bool:
    """Whether a row's doubts touch a metric."""
    return any(not one[1] or metric in re.split(r",\s*", one[1]) for one in DOUBT.finditer(doubts))


def figures(row: Mapping[str, str]) -> tuple[str, ...]:
    """The figures of a row of summary.csv, marked where they are doubted."""
    return tuple(
        f"{show_figure(float(row[column]))}{' ?' * doubted(row['doubts'], metric)}"
        if row[column]
        else "-"
        for metric, column in FIGURES.items()
    )


def verdict(effect: Mapping[str, str]) -> str:
    """Who leads by how much, or why nobody does, from a row of effects.csv."""
    if effect["verdict"] not in ("better", "worse"):
        return effect["verdict"]
    ratio = float(effect["ratio"])
    return f"{OTHER} {ratio:.1f}×" if ratio > 1 else f"{BASE} {1 / ratio:.1f}×"


def rows_of(run: Path, name: str) -> list[dict[str, str]]:
    """The lines of a CSV file of a run."""
    with (run / "derived" / name).open(newline="") as file:
        return list(csv.DictReader(file))


def table(runs: Mapping[str, Path]) -> str:
    """The Markdown table of all runs, then the doubts about its figures."""
    lines, doubts = [" | ".join(HEAD), " | ".join("---" for _ in HEAD)], []
    for name, run in runs.items():
        cells = {
            (row["workload"], row["workers"], row["layout"]): row
            for row in rows_of(run, "summary.csv")
        }
        for effect in rows_of(run, "effects.csv"):
            where = (effect["workload"], effect["workers"])
            if effect["metric"] != "throughput" or effect["subject"] != OTHER or not where[1]:
                continue
            pair = [cells[*where, layout] for layout in (BASE, OTHER)]
            lines.append(
                " | ".join(
                    (
                        *(name, effect["about"], effect["workers"]),
                        *(figure for row in pair for figure in figures(row)),
                        *(row["limited_by"] or "unknown" for row in pair),
                        verdict(effect),
                    )
                )
            )
            doubts += [
                f"- {name}, {effect['about']} by {effect['workers']}, {row['layout']}: "
                f"{row['doubts']}"
                for row in pair
                if any(doubted(row["doubts"], metric) for metric in FIGURES)
            ]
    return "\n".join([*(f"| {line} |" for line in lines), "", *doubts])


def main() -> int:
    """Run what is missing; print the table and the leads."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("runs/hardware-verdicts"))
    parser.add_argument("--only", default=",".join((*MODELS, CPU)))
    parser.add_argument("options", nargs="*", help="passed on to compare")
    given = parser.parse_args()
    names = given.only.split(",")
    if unknown := sorted(set(names) - {*MODELS, CPU}):
        parser.error(f"{', '.join(unknown)}: not one of {', '.join((*MODELS, CPU))}")
    runs = {name: compared(name, given.out, given.options) for name in names}
    print(table(runs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
