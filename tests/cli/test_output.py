from __future__ import annotations

import io

from ensign.cli.output import write
from ensign.cli.progress import screen_of


def test_letters_that_a_stream_lacks_become_question_marks() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    write(stream, "between −1 and ±2\n")
    assert raw.getvalue() == b"between ?1 and ?2\n"
    assert not screen_of(stream).unicode
    assert screen_of(io.TextIOWrapper(io.BytesIO(), encoding="utf-8")).unicode
