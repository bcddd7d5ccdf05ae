from __future__ import annotations

import io

from weighbridge.screen.terminal import InertConsole, print_line

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
