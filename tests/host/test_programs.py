from __future__ import annotations

from pathlib import Path

from ensign.host.programs import Answer, LocalPrograms
from fakes import FakePrograms


def program(folder: Path, name: str, script: str, mode: int = 0o755) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(mode)
    return path


def test_names_in_natural_order_and_only_what_can_be_run(tmp_path: Path) -> None:
    for name in ("gcc-12", "gcc-9", "gcc", "gcc-ar-12"):
        program(tmp_path, name, "")
    program(tmp_path, "gcc-13", "", mode=0o644)
    programs = LocalPrograms(f"{tmp_path}::/nowhere")
    assert programs.matching(r"gcc(-\d+)?") == ("gcc", "gcc-9", "gcc-12")
    assert programs.find("gcc-9") == tmp_path / "gcc-9"
    assert programs.find("gcc-13") is None


def test_the_first_line_with_text_and_the_success(tmp_path: Path) -> None:
    path = program(tmp_path, "tool", 'echo; echo "  tool 1.2 " >&2; echo more; exit $1')
    programs = LocalPrograms(str(tmp_path))
    assert programs.ask([str(path), "0"]) == Answer(success=True, line="tool 1.2")
    assert not programs.ask([str(path), "3"]).success
    missing = programs.ask([str(tmp_path / "absent")])
    assert not missing.success
    assert "No such file" in missing.line


def test_the_fake_answers_by_name() -> None:
    fake = FakePrograms({"gcc-12": Answer(success=True, line="gcc 12")})
    assert fake.ask(("/usr/bin/gcc-12", "--version")).line == "gcc 12"
    assert fake.matching("gcc-.*") == ("gcc-12",)
    assert not fake.ask(("clang",)).success
    assert fake.find("clang") is None
