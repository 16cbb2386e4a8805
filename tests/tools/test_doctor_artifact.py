from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ensign.cli.main import application
from ensign.model.checkup import ArtifactCheckup
from ensign.model.errors import InputError
from ensign.report import as_artifact
from ensign.tools.doctor.artifact import examine_path
from real_processes import PlainProcesses

PROJECTS = Path(__file__).parents[1] / "projects" / "proof"
GCC = ("CC=gcc-12", "AR=gcc-ar-12")
CLANG = ("CC=clang-19", "AR=llvm-ar-19")
DEBUG = {"gcc": "-g", "clang": "-g -grecord-command-line"}
LLD = "-fuse-ld=lld"


def project(name: str, folder: Path) -> Path:
    shutil.copytree(PROJECTS / "parts", folder)
    shutil.copytree(PROJECTS / name, folder, dirs_exist_ok=True)
    return folder


def make(folder: Path, tools: tuple[str, str], cflags: str, ldflags: str) -> None:
    """Write the flags into the Makefile, as a project without ensign has them, and build."""
    makefile = folder / "Makefile"
    settings = "\n".join((*tools, f"CFLAGS={cflags}", f"LDFLAGS={ldflags}"))
    makefile.write_text(f"{settings}\n{makefile.read_text()}")
    subprocess.run(["make", "program"], cwd=folder, check=True, capture_output=True)


def examine(path: Path) -> ArtifactCheckup:
    return examine_path(path, PlainProcesses(), dry_run=True)


def codes(checkup: ArtifactCheckup) -> list[str]:
    return [finding.code for finding in checkup.findings if finding.code != "not-judged"]


LTO = "-O2 -flto"
WRONG = [
    ("lto-compile-only", LTO, "lto-compile-only"),
    ("lto-not-linked", LTO, "lto-not-linked"),
    ("no-level-at-link", LTO, "optimization-missing-at-link"),
    ("wrong-archiver", LTO, "wrong-archiver"),
    ("mixed-compilers", "-O2", "mixed-compilers"),
    ("own-plt", "-O2", "plt-calls"),
    ("archive-after-shared", "-O2", "archive-after-shared"),
    ("duplicate-library", "-O2", "duplicate-library"),
    ("unused-archive", "-O2", "archive-unused"),
    ("right", LTO, ""),
    ("right", "-O2", ""),
    ("right-library", "-O2", ""),
    ("right-order", "-O2", ""),
]


@pytest.mark.parametrize("family", ["gcc", "clang"])
@pytest.mark.parametrize(("name", "flags", "code"), WRONG)
def test_a_folder_built_without_ensign(
    name: str, flags: str, code: str, family: str, tmp_path: Path
) -> None:
    folder = project(name, tmp_path / "p")
    flags = f"{flags} {DEBUG[family]}"
    linking = flags if family == "gcc" else f"{flags} {LLD}"
    make(folder, GCC if family == "gcc" else CLANG, flags, linking)
    found = examine(folder)
    expected = [code] if code else []
    assert codes(found) == expected, [finding.text for finding in found.findings]


def test_a_makefile_alone_gives_the_link_line(tmp_path: Path) -> None:
    folder = project("archive-before-objects", tmp_path / "p")
    makefile = folder / "Makefile"
    makefile.write_text(f"CC=gcc\nCFLAGS=-O2 -flto\n{makefile.read_text()}")
    before = sorted(path.name for path in folder.iterdir())
    found = examine(folder)
    assert codes(found) == ["lto-compile-only", "archive-before-objects"]
    assert found.sources == ("a dry run of make",)
    assert sorted(path.name for path in folder.iterdir()) == before


def test_a_map_is_read(tmp_path: Path) -> None:
    folder = project("unused-archive", tmp_path / "p")
    make(folder, GCC, "-g -O2", "-g -O2 -s -Wl,-Map=program.map")
    found = examine(folder)
    assert "archive-unused" in codes(found)
    assert "by the linker's map" in as_artifact.terminal(found, 1000)


def test_a_binary_alone_shows_its_units(tmp_path: Path) -> None:
    folder = project("right", tmp_path / "p")
    make(folder, GCC, "-g -O3", "-g")
    found = examine(folder / "program")
    assert codes(found) == []
    text = as_artifact.terminal(found)
    assert "compile units by level: -O3 3" in text
    assert "link order: unknown, because no command that linked it is known" in text
    assert "Nothing is wrong" not in text
    assert "2 main questions are open" in text


def test_a_binary_without_debug_information_is_unknown_not_wrong(tmp_path: Path) -> None:
    folder = project("right", tmp_path / "p")
    make(folder, GCC, "-O3", "")
    found = examine(folder / "program")
    assert codes(found) == ["no-debug-info"]
    assert {finding.severity for finding in found.findings} == {"note"}


def test_an_archive_alone(tmp_path: Path) -> None:
    folder = project("wrong-archiver", tmp_path / "p")
    make(folder, CLANG, "-g -O2 -flto", f"-g -O2 -flto {LLD}")
    assert codes(examine(folder / "libother.a")) == ["wrong-archiver"]


def test_wrong_paths_are_wrong_use(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello\n")
    (tmp_path / "empty").mkdir()
    for name, words in (
        ("nothing", "there is no"),
        ("text", "is a text; name a program"),
        ("empty", "nothing was built"),
    ):
        with pytest.raises(InputError, match=words):
            examine(tmp_path / name)


def test_fail_on_makes_a_finding_exit_status_1(tmp_path: Path) -> None:
    folder = project("right", tmp_path / "p")
    make(folder, GCC, "-O3", "")
    program = str(folder / "program")
    for words, status in (
        ([], 0),
        (["--fail-on", "warning"], 0),
        (["--fail-on", "note"], 1),
        (["--fail-on", "note", "--json", "-"], 1),
    ):
        assert CliRunner().invoke(application(), ["doctor", program, *words]).exit_code == status, (
            words
        )


def test_a_source_seen_in_the_program_and_in_a_dry_run_is_one(tmp_path: Path) -> None:
    folder = project("lto-compile-only", tmp_path / "built")
    make(folder, GCC, "-O2 -flto -g", "")
    (finding,) = examine(folder).findings
    files = finding.text.partition("(")[2].partition(")")[0].split(", ")
    assert len(files) == len(set(files)) > 1
    assert "more" not in finding.text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("compile_commands.json", "[{"),
        ("compile_commands.json", '{"a": 1}'),
        ("compile_commands.json", '[{"command": "gcc \'x.c"}]'),
    ],
)
def test_damaged_evidence_is_a_line_not_a_traceback(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / "program").write_bytes(Path("/bin/true").read_bytes())
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=r"compile_commands\.json is damaged"):
        examine(tmp_path)
