from __future__ import annotations

from pathlib import Path

import pytest

from ensign.builders.recorder import read_calls
from ensign.model.errors import InputError
from ensign.proof.leftovers import Leftover, as_text, read_leftovers


def test_what_was_written_is_read(tmp_path: Path) -> None:
    file = tmp_path / "before.json"
    assert read_leftovers(file) == ()
    found = (Leftover("a.o", "object", "9f"), Leftover("b.a", "archive", "8e", (("m.o", "7d"),)))
    file.write_text(as_text(found))
    assert read_leftovers(file) == found


@pytest.mark.parametrize("text", ["", "{", '[{"path": "a.o"}]', '["x"]', "{}"])
def test_a_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "damaged.json"
    file.write_text(text)
    with pytest.raises(InputError, match=rf"{file} is damaged; delete {tmp_path}"):
        read_leftovers(file)


@pytest.mark.parametrize("text", ["{", '{"tool": "cc"}', "[]", '"x"'])
def test_a_damaged_log_of_calls_is_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "calls.jsonl"
    file.write_text(f"{text}\n")
    with pytest.raises(InputError, match="is damaged; delete"):
        read_calls(file)
