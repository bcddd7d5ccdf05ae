from __future__ import annotations

import io

import pytest

from weighbridge.screen.terminal import InertConsole, new_table, print_grid, print_line

TEXT = (
    "• rgw-beast serves 3.0× swift’s 64 kB reads at 16 workers; the noise floor is 1.2×, by a path "
    "of /srv/runs/20261127T084636Z-quick-213880ce/derived/report.html and more"
)


def printed(text: str, width: int, *, terminal: bool) -> list[str]:
    screen = io.StringIO()
    print_line(InertConsole(width=width, file=screen, force_terminal=terminal, no_color=True), text)
    return screen.getvalue().splitlines()


def test_on_a_terminal_lines_are_broken_between_words_and_go_on_below_their_text() -> None:
    lines = printed(TEXT, 40, terminal=True)
    assert len(lines) > 4
    assert [line.strip() for line in lines if len(line) > 40] == [
        "/srv/runs/20261127T084636Z-quick-213880ce/derived/report.html"
    ]
    assert all(line.startswith("  ") for line in lines[1:])
    assert " ".join(line.strip() for line in lines) == TEXT


def test_a_text_that_fits_and_one_of_several_lines_stay_as_they_are() -> None:
    assert printed("a\n\n  indented  twice", 40, terminal=True) == ["a", "", "  indented  twice"]


def test_elsewhere_a_line_stays_whole_for_whoever_reads_it() -> None:
    assert printed(TEXT, 40, terminal=False) == [TEXT]


HEAD = (
    "Workers",
    *(
        f"{layout} {what}"
        for layout in ("RGW-CivetWeb", "Swift-Native")
        for what in ("90 % RT, ms", "Max RT, ms", "MB/s")
    ),
    "beside",
)
LINES = tuple(
    (
        f"{n} (study: {n * 32})",
        *("59.1", "not ranked", "[bold]1,234[/]") * 2,
        f"rgw-apache-fastcgi, {n}",
    )
    for n in (1, 16)
)


@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_tables_break_no_word_and_have_their_labels_in_each_part(width: int) -> None:
    screen = io.StringIO()
    print_grid(InertConsole(width=width, file=screen), HEAD, LINES, labels=1, left=("beside",))
    lines = screen.getvalue().splitlines()
    assert max(len(line.rstrip()) for line in lines) <= width
    shown = screen.getvalue().split()
    parts = sum("─" in line for line in lines)
    assert (parts == 1) == (width >= 120)
    for text, count in (
        ("RGW-CivetWeb", 3),
        ("Swift-Native", 3),
        ("Workers", parts),
        ("rgw-apache-fastcgi,", 2),
        ("1,234", 4),
        ("beside", 1),
        ("(study:", 2 * parts),
    ):
        assert shown.count(text) == count, text


def test_a_table_of_labels_alone_is_one() -> None:
    screen = io.StringIO()
    print_grid(InertConsole(width=80, file=screen), ["a", "b"], [["1", "2"]], labels=2)
    assert [line.split() for line in screen.getvalue().splitlines()[::2]] == [
        ["a", "b"],
        ["1", "2"],
    ]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_tables_take_room_from_sentences_and_leave_names_whole(width: int) -> None:
    screen = io.StringIO()
    table = new_table("by the size of hosts", "why", "layouts")
    name, why = "radosgw.max_concurrent_requests", "64 per CPU, at least 1024 per daemon"
    table.add_row(name, f"{why}: gateway-1 has 0.7", "rgw-beast")
    InertConsole(width=width, file=screen).print(table)
    lines = screen.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert sum(name in line and "rgw-beast" in line for line in lines) == 1
