"""What draws a page's charts is bundled once, and kept where nobody else can change it."""

from pathlib import Path

import pytest
import vl_convert as vlc

from weighbridge.results.report.vega_bundle import vega_bundle


@pytest.fixture
def bundled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The snippets that were bundled; the cache is empty at first."""
    snippets: list[str] = []

    def javascript_bundle(snippet: str) -> str:
        snippets.append(snippet)
        return f"vega();{snippet}"

    monkeypatch.setattr(vlc, "javascript_bundle", javascript_bundle)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return snippets


def test_the_script_is_bundled_once_and_read_from_the_cache_after(
    bundled: list[str], tmp_path: Path
) -> None:
    assert vega_bundle() == vega_bundle() == "vega();window.vegaEmbed=vegaEmbed;"
    assert len(bundled) == 1
    (kept,) = (tmp_path / "cache" / "weighbridge").iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("spoil", ["link", "writable by others", "not text", "folder"])
def test_a_kept_script_that_another_could_have_changed_is_not_used(
    spoil: str, bundled: list[str], tmp_path: Path
) -> None:
    wanted = vega_bundle()
    (kept,) = (tmp_path / "cache" / "weighbridge").iterdir()
    if spoil == "link":
        kept.rename(tmp_path / "elsewhere")
        kept.symlink_to(tmp_path / "elsewhere")
    elif spoil == "writable by others":
        kept.write_text("theirs()")
        kept.chmod(0o622)
    elif spoil == "not text":
        kept.write_bytes(b"\xff\xfe")
    else:
        kept.unlink()
        kept.mkdir()
    assert vega_bundle() == wanted
    assert len(bundled) == 2


@pytest.mark.parametrize(
    "cache", ["/dev/null/cache", "relative/cache", "~nobody-of-this-name/cache"]
)
def test_without_a_cache_the_script_is_bundled_each_time_and_nothing_is_written(
    cache: str, bundled: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", cache)
    assert vega_bundle() == vega_bundle()
    assert len(bundled) == 2
    assert list(tmp_path.iterdir()) == []


def test_a_script_under_the_working_directory_is_not_read(
    bundled: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = vega_bundle()
    (kept,) = (tmp_path / "cache" / "weighbridge").iterdir()
    kept.write_text("theirs()")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    assert vega_bundle() == wanted
    assert len(bundled) == 2
