from __future__ import annotations

import io
from contextlib import suppress

from ensign.cli.progress import CompareProgress, StatusLine
from ensign.experiment.compare.run import Expected

SECOND = 10**9


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_comparison_says_what_it_does_first_and_leaves_no_line_behind() -> None:
    terminal = Terminal()
    with suppress(KeyError), StatusLine(terminal) as line:
        CompareProgress(line, terminal)
        assert "unmeasured runs" in terminal.getvalue()
        raise KeyError
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_nothing_is_shown_where_there_is_no_terminal() -> None:
    stream = io.StringIO()
    with StatusLine(stream) as line:
        CompareProgress(line, stream).expect(Expected(SECOND, 8 * SECOND, asked=True))
        line.show("more")
    assert stream.getvalue() == ""


def test_a_race_that_takes_longer_than_usual_is_told_to_all() -> None:
    for stream in (io.StringIO(), Terminal()):
        with StatusLine(stream) as line:
            progress = CompareProgress(line, stream)
            progress.expect(Expected(5 * SECOND, 47 * SECOND, asked=False))
        told = "one execution of all commands takes about 5 s, the race 47 s at most"
        assert f"{told} (--budget bounds it)\n" in stream.getvalue()


def test_on_a_terminal_what_was_asked_for_is_told_in_passing() -> None:
    terminal = Terminal()
    with StatusLine(terminal) as line:
        CompareProgress(line, terminal).expect(Expected(5 * SECOND, 47 * SECOND, asked=True))
        assert "the race 47 s at most" in terminal.getvalue()
    assert "\n" not in terminal.getvalue()
