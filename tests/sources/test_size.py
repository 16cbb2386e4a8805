from pathlib import Path

from ensign.sources.size import source_size


def test_languages_and_lines_count_and_other_files_do_not(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("int a;\n" * 5000)
    (tmp_path / "README.md").write_text("text\n" * 100_000)
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "b.c").write_text("int b;\n" * 5000)
    plain = source_size(tmp_path)
    assert (plain.files, plain.lines) == (1, 5000)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.cpp").write_text("int a;\n" * 5000)
    mixed = source_size(tmp_path)
    assert (mixed.files, mixed.lines) == (2, 10_000)
    assert mixed.seconds - plain.seconds > 2 * plain.seconds


def test_a_small_program_is_no_matter_of_minutes(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.c").write_text("int x;\n" * 50)
    assert source_size(tmp_path).seconds < 2
