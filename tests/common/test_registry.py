import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from weighbridge.common.errors import UsageError
from weighbridge.common.registry import Registry

GROUP = "weighbridge.shapes"

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Installs a package with entry points of GROUP, and a module of its name."""

    def installed(package: str, points: str, *, module: str = "") -> None:
        folder = tmp_path / package
        info = folder / f"{package}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[{GROUP}]\n{points}\n")
        (folder / f"{package}_shapes.py").write_text(module)
        monkeypatch.syspath_prepend(str(folder))
        monkeypatch.delitem(sys.modules, f"{package}_shapes", raising=False)

    return installed


def shapes(**own: str | float) -> Registry[float]:
    return Registry(GROUP, "shape", own=own, kind=float)


def test_own_objects_keep_their_order_and_others_follow_sorted_by_name(install: Install) -> None:
    install("zeta", "cube = zeta_shapes:CUBE", module="CUBE = 3.0")
    install("acme", "disc = acme_shapes:DISC", module="DISC = 4.0")
    there = shapes(square=2.0, circle=1.0)
    assert list(there) == ["square", "circle", "cube", "disc"]
    assert dict(there) == {"square": 2.0, "circle": 1.0, "cube": 3.0, "disc": 4.0}
    assert len(there) == 4


def test_entry_points_of_this_package_come_before_those_of_others(install: Install) -> None:
    install("acme", "arc = acme_shapes:ARC", module="ARC = 4.0")
    install("weighbridge", "wedge = weighbridge_shapes:WEDGE", module="WEDGE = 5.0")
    assert dict(shapes()) == {"wedge": 5.0, "arc": 4.0}


def test_names_are_known_without_imports(install: Install) -> None:
    install(
        "acme",
        "arc = acme_shapes:ARC\nbow = acme_shapes:BOW",
        module="raise RuntimeError('imported')",
    )
    there = shapes(square="no_such_module:SQUARE")
    assert list(there) == ["square", "arc", "bow"]
    assert "arc" in there
    assert there.known("bow") == "bow"


def test_an_own_object_may_be_declared_by_its_import_path() -> None:
    assert shapes(pi="math:pi")["pi"] == pytest.approx(3.14159)


def test_each_object_is_imported_separately(install: Install) -> None:
    install("acme", "arc = acme_shapes:ARC", module="raise RuntimeError('imported')")
    assert shapes(square=2.0).get_or_refuse("square") == 2.0


def test_an_unknown_name_is_refused_with_the_closest_one_and_the_list() -> None:
    there = shapes(square=2.0, circle=1.0)
    with pytest.raises(
        UsageError,
        match=r"^no shape 'squar' \(did you mean 'square'\?\)\nChoose one of square, circle\.$",
    ):
        there.get_or_refuse("squar")
    with pytest.raises(ValueError, match=r"^no shape 'x' \(known: square, circle\)$"):
        there.known("x")
    with pytest.raises(KeyError):
        there["squar"]
    assert there.get("squar") is None


def test_two_packages_with_one_name_are_refused_with_the_names_of_both(install: Install) -> None:
    install("acme", "arc = acme_shapes:ARC", module="ARC = 4.0")
    install("zeta", "arc = zeta_shapes:ARC", module="ARC = 5.0")
    with pytest.raises(
        UsageError, match="two packages have a shape 'arc': acme and zeta\nRename one of them"
    ):
        list(shapes())


def test_another_package_cannot_replace_an_own_object(install: Install) -> None:
    install("acme", "square = acme_shapes:SQUARE", module="SQUARE = 4.0")
    with pytest.raises(
        UsageError, match="two packages have a shape 'square': weighbridge and acme\n"
    ):
        shapes(square=2.0)["square"]


@pytest.mark.parametrize(
    ("module", "why"),
    [
        ("import no_such_library", "ModuleNotFoundError: No module named 'no_such_library'"),
        ("raise RuntimeError('no licence')", "RuntimeError: no licence"),
        ("", "AttributeError: module 'acme_shapes' has no attribute 'ARC'"),
        ("ARC = 'round'", "it is a str, not a float"),
    ],
)
def test_a_broken_plug_in_is_named_with_its_package_and_what_to_do(
    install: Install, module: str, why: str
) -> None:
    install("acme", "arc = acme_shapes:ARC", module=module)
    with pytest.raises(UsageError) as refused:
        shapes()["arc"]
    assert str(refused.value) == (
        f"shape 'arc' of the package acme cannot be used: acme_shapes:ARC: {why}\n"
        f"Repair, upgrade or uninstall acme: its entry point group is {GROUP}."
    )


def test_a_registry_is_read_only() -> None:
    with pytest.raises(TypeError):
        shapes(square=2.0)["circle"] = 1.0  # type: ignore[index]
