from functools import partial
from pathlib import Path

import pytest

from tests.weighbridge import command_line
from weighbridge.suites import loader

FILE = """<workload name="demo">
  <storage type="swift" config="policy=POLICY"/>
  <workflow>
    <workstage name="prepare"><work type="prepare" workers="1"
        config="containers=r(1,2);objects=r(1,5);sizes=c(64)KB"/></workstage>
    <workstage name="main"><work name="main" workers="8" runtime="30" interval="1">
      <operation type="read" config="containers=u(1,2);objects=u(1,5)"/>
    </work></workstage>
  </workflow>
</workload>
"""
weighbridge = partial(command_line.weighbridge, folder=Path("/nonexistent"), COLUMNS="200")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "demo.xml"
    path.write_text(FILE.replace(' config="policy=POLICY"', ""))
    return path


def test_the_suite_goes_to_stdout_and_remarks_to_stderr(file: Path) -> None:
    done = weighbridge("import-cosbench", file)
    assert done.returncode == 0
    assert loader.parse("demo.yaml", done.stdout).workloads[0].workers == (8,)
    assert f"{file}:6: interval '1' is left out" in done.stderr


def test_a_written_suite_can_be_loaded_and_is_never_overwritten(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "demo.yaml"
    done = weighbridge("import-cosbench", file, "--out", out)
    assert (done.returncode, done.stdout) == (0, "")
    assert loader.load(out).name == "demo"
    again = weighbridge("import-cosbench", file, "--out", out)
    assert again.returncode == 2
    assert "already exists" in again.stderr


def test_a_suite_that_would_measure_something_else_is_refused(file: Path, tmp_path: Path) -> None:
    file.write_text(FILE)
    out = tmp_path / "demo.yaml"
    done = weighbridge("import-cosbench", file, "--out", out)
    assert (done.returncode, out.exists()) == (2, False)
    assert "demo.xml:2:25: storage: policy 'POLICY' chooses where objects are stored" in done.stderr
    assert weighbridge("import-cosbench", file, "--out", out, "--partial").returncode == 0
    assert loader.load(out).name == "demo"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--size", "64 parsecs"), "is not a quantity"),
        (("--runtime", "60"), "not a quantity"),
        (("--runtime", "1.5s"), "must be whole seconds"),
        (("--runtime", "0s"), "must be whole seconds"),
    ],
)
def test_an_unparsable_option_is_refused(file: Path, words: tuple[str, str], message: str) -> None:
    done = weighbridge("import-cosbench", file, *words)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_missing_file_is_reported() -> None:
    done = weighbridge("import-cosbench", "nothing.xml")
    assert done.returncode == 2
    assert "nothing.xml: no such file" in done.stderr
