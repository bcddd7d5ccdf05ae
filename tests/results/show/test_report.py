import csv
from pathlib import Path

import pytest
import vl_convert as vlc

from compared_rows import MILD, made_effect, row, times
from fake_run import WORKLOADS, fake_run
from made_rows import altered, changed
from web_pages import WebPage
from weighbridge.results import derive
from weighbridge.results.features.open_run import open_run
from weighbridge.results.figures.statistics import Ratio
from weighbridge.results.judge.comparing import compare
from weighbridge.results.judge.comparison import Comparison, Effect, Verdict
from weighbridge.results.judge.reasons import reasons
from weighbridge.results.numbers import show_p
from weighbridge.results.run.resolved import Sheet
from weighbridge.results.run.store import RunStore
from weighbridge.results.run.telemetry import Attested
from weighbridge.results.show.page import vega_bundle
from weighbridge.results.show.report import effects_grid, glance, results_grid

SHORT = altered(WORKLOADS[0], workers=(1,), runtime=1.0)


@pytest.fixture(scope="module")
def page(run: RunStore) -> WebPage:
    return WebPage(derive(run.folder, pictures=False).report.read_text())


@pytest.mark.long
def test_all_derived_files_can_be_rebuilt_from_the_run_folder(runs: Path) -> None:
    run = fake_run(runs, workloads=[SHORT], repeats=1)
    derived = derive(run.folder, pictures=False)
    first = derived.summary.read_text()
    for path in (derived.summary, derived.report):
        path.unlink()
    again = derive(run.folder)
    assert again.summary.read_text() == first
    assert again.report.stat().st_size > 1_000_000
    assert again.charts
    assert all(path.stat().st_size for path in again.charts)
    assert again.comparable
    assert len(list(csv.reader(first.splitlines()))) == 3


def test_the_page_fetches_nothing(page: WebPage) -> None:
    policy = next(
        attrs["content"]
        for attrs in page.all("meta")
        if attrs.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy
    for _, attrs in page.elements:
        for name in ("src", "href", "action", "srcset", "poster"):
            value = attrs.get(name)
            assert value is None or value.startswith("#")


def test_the_answer_comes_first_and_all_that_supports_it_is_folded(page: WebPage) -> None:
    order = [attrs["id"] for attrs in page.all("section")]
    assert order == ["ratios", "throughput-bars", "figures", "findings", "limits", "faults"]
    folded = [attrs["id"] for attrs in page.all("details") if attrs.get("class") == "fold"]
    assert folded == [
        *("certainty", "throughput-by-workers", "latency-by-workers"),
        *("hockey-stick", "percentiles", "latency-shares"),
        *("table", "keeping", "hosts", "numbers", "environment", "repeat"),
    ]
    links = {str(attrs.get("href")) for attrs in page.all("a")}
    assert links <= {f"#{attrs['id']}" for _, attrs in page.elements if "id" in attrs}
    head = page.words[: page.words.index("In figures")]
    assert any(word.startswith("rgw-beast and swift, both over the Swift API") for word in head)
    assert any(word.startswith("Caveat") for word in head)
    assert "weighbridge compare --suite made-up.yaml" in page.words
    assert any(word.startswith("Seed 2014; run ") for word in page.words)
    assert "The hosts were not attested." in page.words


def test_hosts_that_differ_between_layouts_are_reported_with_the_results(tmp_path: Path) -> None:
    store = fake_run(tmp_path, workloads=WORKLOADS[:1], repeats=1)
    figure = {"repeat": 0, "host": "store-2", "kind": "disk", "what": "disk wb0 write"}
    figure |= {"unit": "B/s", "promised": 1e8}
    for layout, value in (("rgw-beast", 197e6), ("swift", 142e6)):
        store.attest([Attested.model_validate({**figure, "layout": layout, "value": value})])
    derived = derive(store.folder, pictures=False)
    said = "isk wb0 write of store-2 gave 142 MB/s under swift and 197 MB/s under rgw-beast (28 %"
    assert derived.hosts[0].startswith("1 of 1 figures of the hosts differ beyond their bound")
    assert derived.hosts[1].startswith(f"d{said}")
    words = WebPage(derived.report.read_text()).words
    assert any(word.startswith(f"D{said}") for word in words)
    at = words.index("disk wb0 write")
    assert words[at + 1 : at + 5] == ["100 MB/s", "197 MB/s", "142 MB/s", "28 %"]


def test_every_table_has_a_caption_every_column_and_chart_a_description(
    page: WebPage, run: RunStore
) -> None:
    assert len(page.all("caption")) == len(page.all("table")) >= 10
    table = results_grid(open_run(run.folder).rows)
    assert all(table.abouts)
    assert set(table.head) <= set(page.words)
    by_workers = ("throughput-by-workers", "latency-by-workers")
    plots = [one for one in page.all("div") if str(one.get("data-spec")).startswith(by_workers)]
    assert len(plots) == 6
    assert all(
        attrs["role"] == "img" and "rgw-beast" in (attrs["aria-label"] or "") for attrs in plots
    )


def test_resources_are_drawn_once_and_a_table_and_what_ran_out_is_named(page: WebPage) -> None:
    drawn = {
        attrs["data-spec"]: attrs["aria-label"] or ""
        for attrs in page.all("div")
        if (attrs.get("data-spec") or "").startswith("resources-by-workers-")
    }
    assert len(drawn) == 3
    said = drawn["resources-by-workers-small-read-read-swift-locust"]
    assert "rgw-beast at 32 workers: CPU of gateway-1 (" in said
    assert "What the daemons reported" in page.words
    start = page.words.index("Bottlenecks")
    said = " ".join(page.words[start : page.words.index("Caveats", start)])
    assert "Gateway CPU ran out on rgw-beast (4 of 11 steps); storage CPU" in said
    assert "throttled in" in said
    assert "none above 80 %: gateway-1 CPU" in said


def test_a_run_without_telemetry_says_that_resources_were_not_recorded(runs: Path) -> None:
    old = fake_run(runs, workloads=[SHORT], repeats=1, telemetry=False)
    (old.folder / "telemetry").rmdir()
    derived = derive(old.folder, pictures=False)
    page = WebPage(derived.report.read_text())
    assert "Not recorded: this run has no telemetry of its hosts." in page.words
    assert not [path for path in derived.charts if path.name.startswith("resources")]
    (row, _) = csv.DictReader(derived.summary.read_text().splitlines())
    columns = ("gateway_cpu_s_per_1000_ops", "storage_cpu_s_per_1000_ops", "saturated")
    assert [row[column] for column in columns] == [""] * 3


def test_background_work_has_its_own_table_and_cache_drops_are_counted(runs: Path) -> None:
    run = fake_run(runs, workloads=[SHORT], repeats=1)
    background = {"rgw-beast": {"scrub": "off"}, "swift": {"auditors": "do not run"}}
    for layout, facts in background.items():
        named = {f"background: {name}": value for name, value in facts.items()}
        sheet = Sheet(title="deployment", layout=layout, facts={**named, "replicas": "3"})
        run.add_facts([sheet])
    for count in (3, 1):
        run.event("caches", f"memcached: {count} entries dropped on 2 hosts #1", layout="swift")
    run.event("telemetry", "the probe osd.0 ended by itself", layout="rgw-beast")
    words = WebPage(derive(run.folder, pictures=False).report.read_text()).words
    at = words.index("background work")
    assert words[at + 4 : at + 10] == ["scrub", "off", "–", "auditors", "–", "do not run"]
    at = words.index("memcached: 1 to 3 entries dropped on 2 hosts #1")
    assert words[at + 1 : at + 3] == ["–", "2 times"]
    assert "Caches: dropped before every step, of kernels and daemons: reads are cold" in words
    assert "rgw-beast: the probe osd.0 ended by itself" in words


def test_steps_not_measured_or_left_out_are_listed_with_the_reason(page: WebPage) -> None:
    start = page.words.index("Errors, invalid and unsteady steps")
    said = " ".join(page.words[start : start + 60])
    assert "the gateway did not answer for 60 s" in said
    assert "http-503: 40" in said
    assert "not measured" in said


def test_an_interrupted_run_says_so_before_the_findings(runs: Path) -> None:
    run = fake_run(runs, workloads=[SHORT], repeats=1)
    run.set_state("interrupted", error="stopped by SIGINT")
    words = WebPage(derive(run.folder, pictures=False).report.read_text()).words
    said = next(word for word in words if "not complete" in word)
    assert said == "This run is not complete: interrupted. stopped by SIGINT"
    assert words.index(said) < words.index("In figures")


RGW = [row("rgw-beast", workers) for workers in (1, 8)]
SWIFT = [row("swift", workers, times(0.5)) for workers in (1, 8)]
ROWS = [RGW[0], SWIFT[0], RGW[1], SWIFT[1]]


def test_each_layout_has_one_line_at_the_most_workers_with_its_place_in_the_table() -> None:
    found = glance(ROWS, compare(ROWS), ())
    assert [(one.row.layout, one.row.workers, one.anchor) for one in found.lines] == [
        ("rgw-beast", 8, "row-3"),
        ("swift", 8, "row-4"),
    ]
    assert found.anchors == {"1 MB reads": "row-1"}
    assert [one.ratio for one in found.lines] == ["1", "0.50×"]
    assert [title for title, _ in found.head][:2] == ["Throughput", "Bandwidth"]
    assert found.lines[0].cells[0] == "1.00"


def test_a_ratio_that_claims_nothing_is_in_brackets_and_has_the_mark_of_its_doubt() -> None:
    rows = [*ROWS[:3], changed(SWIFT[1], doubts=(MILD,))]
    comparison = compare(rows)
    found = glance(rows, comparison, reasons(rows, comparison))
    assert (found.lines[1].ratio, found.lines[1].marks) == ("(0.50×)", "a")


def test_what_was_not_measured_is_a_dash_and_not_ranked() -> None:
    rows = [RGW[1], row("swift", 8, ())]
    (_, line) = glance(rows, compare(rows), ()).lines
    assert (line.cells, line.ratio, line.row.ranked) == (("–",) * 5, "–", False)
    rows = [row("rgw-beast", 8, ()), SWIFT[1]]
    assert [one.ratio for one in glance(rows, compare(rows), ()).lines] == ["–", "–"]


def test_controls_have_no_line_and_a_layout_alone_no_ratio() -> None:
    rows = [RGW[1], row("rgw-beast-again", 8)]
    found = glance(rows, compare(rows, {"rgw-beast-again": "rgw-beast"}), (), ("rgw-beast-again",))
    assert [(one.row.layout, one.ratio) for one in found.lines] == [("rgw-beast", "–")]
    assert found.baseline == ""


def effect(verdict: Verdict, ratio: Ratio | None, workers: int | None = 4) -> Effect:
    return altered(made_effect("swift", None, verdict, workers=workers), ratio=ratio, text="")


def compared(*effects: Effect) -> Comparison:
    return Comparison(baseline="rgw-beast", subjects=("swift",), effects=effects, tests=1)


def test_each_effect_is_a_line_with_a_cell_for_each_column() -> None:
    ratio = Ratio(value=0.5, low=0.4, high=0.6, repeats=5)
    known = compared(effect("worse", ratio), effect("not comparable", None, workers=None))
    grid = effects_grid(known, over="repeats", subject="layout")
    assert [len(line) for line in grid.lines] == [len(grid.head)] * 2
    about = ["64 kB reads", "4", "swift", "throughput"]
    assert grid.lines[0][:5] == [*about, "0.500 (0.400 to 0.600)"]
    assert grid.lines[0][-2:] == ["worse", ""]
    assert grid.lines[1][4] == "–"
    assert grid.values[1][4] is None
    assert grid.bad == [1]


@pytest.mark.parametrize(
    ("verdict", "weak"),
    [
        *(("better", False), ("worse", False), ("not significant", True)),
        *(("provisional", True), ("too small to matter", True)),
    ],
)
def test_only_lines_with_a_claim_are_not_weak(verdict: Verdict, weak: bool) -> None:
    grid = effects_grid(compared(effect(verdict, None)), over="repeats", subject="layout")
    assert bool(grid.bad) is weak


def test_a_p_value_is_never_shown_as_zero() -> None:
    assert show_p(0.0) == "< 0.0001"
    assert show_p(0.0312) == "0.031"
    assert show_p(None) == "–"


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


def test_the_script_is_bundled_once_and_then_cached(bundled: list[str], tmp_path: Path) -> None:
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


@pytest.mark.parametrize("cache", ["/dev/null/cache", "cache", "~nobody-of-this-name/cache"])
def test_without_a_cache_the_script_is_bundled_each_time_and_nothing_is_written(
    cache: str, bundled: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = vega_bundle()
    (kept,) = (tmp_path / "cache" / "weighbridge").iterdir()
    kept.write_text("theirs()")  # which a relative path below would name
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", cache)
    assert vega_bundle() == vega_bundle() == wanted
    assert len(bundled) == 3
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [kept]
    assert kept.read_text() == "theirs()"
