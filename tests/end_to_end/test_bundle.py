"""`ensign bundle`, `unbundle`, and `report` of a bundle, where nothing of the study is left."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

from end_to_end.conftest import Ensign, Line
from end_to_end.small_study import BATCH, write_study

NOWHERE = "/nonexistent"


def without_redo(text: str) -> list[str]:
    return [line for line in text.splitlines() if "ensign run" not in line]


def test_a_report_of_a_bundle_needs_neither_compilers_nor_programs(
    ensign: Ensign, measured: Path
) -> None:
    before = ensign("report", "study.toml", "--json", "-").out
    made = ensign("bundle", "study.toml")
    assert made.status == 0, made.err
    first = (ensign.folder / "study.bundle.zip").read_bytes()
    assert ensign("bundle", "study.toml", "-o", "again.zip").status == 0
    assert (ensign.folder / "again.zip").read_bytes() == first
    measured.unlink()
    for folder in (".ensign", "cache", "source"):
        shutil.rmtree(ensign.folder / folder)
    after = ensign("report", "--json", "-", "study.bundle.zip", PATH=NOWHERE)
    assert after.status == 0, after.err
    assert "ensign unbundle study.bundle.zip again && ensign run again/study.toml" in after.out
    assert without_redo(after.out) == without_redo(before)
    assert ensign("report", "study.bundle.zip", PATH=NOWHERE).status == 0
    page = ensign("report", "study.bundle.zip", "--html", "study.bundle.html", PATH=NOWHERE)
    assert (page.status, page.out) == (0, "")
    assert "ensign unbundle" in (ensign.folder / "study.bundle.html").read_text()
    assert not list(ensign.scratch.iterdir())


def test_every_number_comes_from_the_raw_trials(ensign: Ensign, measured: Path) -> None:
    assert ensign("bundle", "study.toml").status == 0
    with zipfile.ZipFile(ensign.folder / "study.bundle.zip") as archive:
        names = archive.namelist()
    kinds = {Path(name).suffix for name in names}
    assert kinds == {".json", ".toml", ".gz"}
    assert sum(name.endswith(".csv.gz") for name in names) == 6
    assert "study.lock.json" in names
    assert not any("report" in name for name in names)
    assert measured.exists()


def test_patches_travel_with_the_study(ensign: Ensign) -> None:
    study = write_study(
        ensign.folder, BATCH, ('path = "source"', 'path = "source"\napply = ["./fix/one.patch"]')
    )
    source = (ensign.folder / "source" / "spin.c").read_text().splitlines()
    hunk = f"@@ -1 +1,2 @@\n+/* patched */\n {source[0]}\n"
    (study.parent / "fix").mkdir()
    (study.parent / "fix" / "one.patch").write_text(f"--- a/spin.c\n+++ b/spin.c\n{hunk}")
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    assert ensign("bundle", "study.toml").status == 0
    given = ensign("unbundle", "study.bundle.zip", "again")
    assert given.status == 0, given.err
    assert (ensign.folder / "again" / "fix" / "one.patch").read_text().endswith(hunk)


def test_a_study_runs_again_from_its_bundle(ensign: Ensign, measured: Path) -> None:
    assert ensign("bundle", "study.toml").status == 0
    given = ensign("unbundle", "study.bundle.zip", "again")
    assert given.status == 0, given.err
    assert "put it at again/source" in given.err
    for name in ("study.toml", "study.lock.json"):
        kept = (measured.parent / name).read_bytes()
        assert (ensign.folder / "again" / name).read_bytes() == kept
    assert not (ensign.folder / "again" / ".ensign").exists()
    shutil.copytree(ensign.folder / "source", ensign.folder / "again" / "source")
    done = ensign("run", "again/study.toml")
    assert done.status == 0, done.err
    # Two builds and their checks.
    assert done.err.count("already there") == 4


def test_wrong_use(ensign: Ensign, complaint: Line, measured: Path) -> None:
    assert "is not a bundle" in complaint("unbundle study.toml again")
    assert "does not exist" in complaint("bundle study.toml -o no/where.zip")
    assert ensign("bundle", "study.toml").status == 0
    assert "is there already" in complaint("unbundle study.bundle.zip .")
    assert "a bundle already" in complaint("bundle study.bundle.zip")
    for command in ("run", "plan", "ship"):
        said = complaint(f"{command} study.bundle.zip")
        assert said.endswith("first: ensign unbundle study.bundle.zip FOLDER\n")
    data = (ensign.folder / "study.bundle.zip").read_bytes()
    (ensign.folder / "cut.zip").write_bytes(data[: len(data) // 2])
    assert "not a complete bundle" in complaint("report cut.zip")
    assert "no such file" in complaint("report missing.zip")
    shutil.rmtree(measured.parent / ".ensign")
    assert "nothing of study.toml has been measured yet" in complaint("bundle study.toml")
