from pathlib import Path

from fake_run import WORKLOADS, fake_run
from made_rows import altered
from recompute import counting, differences
from weighbridge.results.derivation import derive
from weighbridge.results.features.open_run import open_run
from weighbridge.results.show.tables import STEPS

SHORT = altered(WORKLOADS[0], workers=(1, 8), runtime=2.0)


def test_other_code_computes_the_same_figures_intervals_and_ratios(tmp_path: Path) -> None:
    folder = fake_run(tmp_path, workloads=[SHORT], telemetry=False).folder
    derived = derive(folder, pictures=False)
    repeats = counting(folder, STEPS.of_runs([open_run(folder)]).csv)
    assert differences(folder, repeats) == []
    summary = derived.summary.read_text().splitlines()
    column = summary[0].split(",").index("p90_ms")
    cells = summary[1].split(",")
    cells[column] = str(float(cells[column]) * 1.001)
    derived.summary.write_text("\n".join((summary[0], ",".join(cells), *summary[2:])))
    (wrong,) = differences(folder, repeats)
    assert "p90_ms" in wrong
