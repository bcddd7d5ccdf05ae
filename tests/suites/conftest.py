"""COSBench workload files as text, and their import."""

from pathlib import Path

import pytest

from weighbridge.suites import Workload, importer, loader
from weighbridge.suites.importer import Import

STORAGE = (
    '<storage type="swift" '
    'config="token=AUTH_tk1;storage_url=http://192.0.2.1:8080/v1/AUTH_test;logging=false"/>'
)
INIT = (
    '<workstage name="init"><work type="init" workers="2" config="containers=r(1,32)"/></workstage>'
)
PREPARE = (
    '<workstage name="prepare"><work type="prepare" workers="4" '
    'config="containers=r(1,32);objects=r(1,50);sizes=c(64)KB"/></workstage>'
)
READ = '<operation type="read" ratio="100" config="containers=u(1,32);objects=u(1,50)"/>'
MIX = (
    '<operation type="read" ratio="80" config="containers=u(1,32);objects=u(1,50)"/>\n'
    '<operation type="write" ratio="20" '
    'config="containers=u(1,32);objects=u(51,100);sizes=c(64)KB"/>'
)


def workstage(
    operations: str = READ,
    *,
    stage: str = "main",
    attributes: str = 'workers="8" runtime="300"',
    name: str = "main",
) -> str:
    return (
        f'<workstage name="{stage}"><work name="{name}" '
        f"{attributes}>\n{operations}\n</work></workstage>\n"
    )


def file_of(
    *stages: str, storage: str = STORAGE, head: str = 'name="demo" description="A trial"'
) -> str:
    return (
        f"<workload {head}>\n{storage}\n<workflow>\n"
        + "\n".join(stages)
        + "\n</workflow></workload>"
    )


class Importer:
    """Imports a text as a file and checks that the suite is valid YAML."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(
        self,
        *stages: str,
        storage: str = STORAGE,
        head: str = 'name="demo" description="A trial"',
        **how: object,
    ) -> Import:
        path = self.folder / "w.xml"
        path.write_text(file_of(*stages, storage=storage, head=head))
        found = importer.from_cosbench(path, **how)  # type: ignore[arg-type]  # options as they are
        written = self.folder / "suite.yaml"
        written.write_text(found.text)
        assert loader.load(written) == found.suite
        return found

    def workload(self, *stages: str, **how: object) -> Workload:
        (one,) = self(*stages, **how).suite.workloads  # type: ignore[arg-type]  # as above
        return one


def messages(found: Import) -> str:
    return "\n".join(str(remark) for remark in found.remarks)


@pytest.fixture
def imported(tmp_path: Path) -> Importer:
    return Importer(tmp_path)
