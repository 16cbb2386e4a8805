from __future__ import annotations

import io
from contextlib import suppress

from ensign.cli.progress import CompareProgress, StatusLine


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_comparison_says_what_it_does_first_and_leaves_no_line_behind() -> None:
    terminal = Terminal()
    with suppress(KeyError), StatusLine(terminal) as line:
        CompareProgress(line)
        assert "one unmeasured run" in terminal.getvalue()
        raise KeyError
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_nothing_is_shown_where_there_is_no_terminal() -> None:
    stream = io.StringIO()
    with StatusLine(stream) as line:
        CompareProgress(line)
        line.show("more")
    assert stream.getvalue() == ""
