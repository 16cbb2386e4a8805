"""`ensign ship` as a user calls it, after a study that was run."""

from __future__ import annotations

import stat
import subprocess

import pytest

from end_to_end.conftest import Ensign
from end_to_end.small_study import ANYWAY, BATCH, SERVER, write_study

_MAKEFILE = """\
OPT = -O1
spin: spin.c
	$(CC) $(OPT) -DWORK=1 -o spin spin.c
"""
_SHIP = """
[ship]
commands = [["make", "CC={cc}"]]

[[ship.edits]]
file = "Makefile"
line = "OPT = -O1"
replace = "OPT = {cflags}"
"""
_TRAINED = """
[[include]]
optimization = "-O2"
pgo = "on"

[[training.workloads]]
name = "learn"
requests = 500
load = ["{load}", "{port}", "{requests}"]
env = { MODE = "learning", PLACE = "{artifact_dir}" }
"""


@pytest.fixture
def shippable(ensign: Ensign) -> Ensign:
    write_study(ensign.folder, BATCH + _SHIP)
    (ensign.folder / "source/Makefile").write_text(_MAKEFILE)
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    return ensign


def change(ensign: Ensign, before: str, after: str) -> None:
    study = ensign.folder / "study.toml"
    study.write_text(study.read_text().replace(before, after))


def test_a_variant_is_shipped_as_a_patch_and_its_pull_request(shippable: Ensign) -> None:
    done = shippable("ship", "study.toml", "gcc-12-O2", *ANYWAY, "-o", "out")
    assert done.status == 0, done.err
    assert "equal to those that were measured" in done.said
    out = shippable.folder / "out"
    assert sorted(path.name for path in out.iterdir()) == ["change.patch", "pull-request.md"]
    assert (out / "change.patch").read_text() == (
        "--- a/Makefile\n+++ b/Makefile\n@@ -1,3 +1,3 @@\n-OPT = -O1\n+OPT = -O2\n spin: spin.c\n"
        " \t$(CC) $(OPT) -DWORK=1 -o spin spin.c\n"
    )
    page = (out / "pull-request.md").read_text()
    assert page.startswith("# Build with -O2\n")
    assert "ensign ship study.toml gcc-12-O2" in page
    assert "These binaries" in page
    refused = shippable("ship", "study.toml", "gcc-12-O2", *ANYWAY, "-o", "out")
    assert refused.status == 2
    assert "'out' has change.patch, pull-request.md already; --force" in refused.complaint
    (out / "notes").write_text("mine")
    (out / "build.sh").write_text("of an earlier shipment")
    assert shippable("ship", "study.toml", "gcc-12-O2", *ANYWAY, "-o", "out", "--force").status == 0
    assert sorted(path.name for path in out.iterdir()) == [
        "change.patch",
        "notes",
        "pull-request.md",
    ]


def test_a_change_without_the_effect_is_an_error_and_nothing_is_written(shippable: Ensign) -> None:
    change(shippable, "OPT = {cflags}", "OPT = -Os")
    done = shippable("ship", "study.toml", "gcc-12-O2", *ANYWAY, "-o", "out")
    assert done.status == 1
    assert done.complaint.startswith(
        "ensign: the shipped change does not have the effect that was measured: "
        "-O2 was measured, -Os is there in 1 of 1 compile units (spin.c)"
    )
    assert not (shippable.folder / "out").exists()


def test_the_same_change_is_verified_with_another_compiler(shippable: Ensign) -> None:
    done = shippable("ship", "study.toml", "gcc-12-O2", *ANYWAY, "-o", "out", "--with", "clang-19")
    assert done.status == 0, done.err
    assert "The same change does the same with clang-19 (" in done.said
    page = (shippable.folder / "out/pull-request.md").read_text()
    assert "ensign ship study.toml gcc-12-O2 --with clang-19" in page
    assert "With other compilers the same change was built" in page


def test_a_change_that_another_compiler_does_not_get_is_refused(ensign: Ensign) -> None:
    write_study(ensign.folder, BATCH + _SHIP)
    listens = "$(if $(findstring clang,$(CC)),-O1,$(OPT))"
    (ensign.folder / "source/Makefile").write_text(_MAKEFILE.replace("$(OPT)", listens))
    assert ensign("run", "study.toml").status == 0
    asked = ("ship", "study.toml", "gcc-12-O2", *ANYWAY, "-o", "out")
    done = ensign(*asked, "--with", "clang-19")
    assert done.status == 1
    assert "with clang-19, -O2 was measured, -O1 is there in 1 of 1 compile units" in done.complaint
    assert not (ensign.folder / "out").exists()
    done = ensign(*asked, "--with", "gcc-99")
    assert done.status == 2
    assert "gcc-99" in done.complaint
    done = ensign(*asked, "--with", "gcc-12@bulseye")
    assert done.status == 2
    assert done.complaint == (
        "ensign: --with gcc-12@bulseye: the study has no environment 'bulseye'"
    )
    assert ensign(*asked).status == 0


def test_an_edit_that_does_not_apply_is_named_with_its_line(shippable: Ensign) -> None:
    change(shippable, 'line = "OPT = -O1"', 'line = "OPT = -O3"')
    done = shippable("ship", "study.toml", "gcc-12-O2", *ANYWAY)
    assert done.status == 2
    text = (shippable.folder / "study.toml").read_text()
    line = text.splitlines().index("[[ship.edits]]") + 1
    assert done.complaint == (
        f"ensign: study.toml:{line}: the edit does not apply: Makefile has not the line "
        "'OPT = -O3'; nearest is line 1, 'OPT = -O1'"
    )


def test_what_would_be_built_otherwise_now_is_not_shipped(shippable: Ensign) -> None:
    change(shippable, "-DWORK=1", "-DWORK=2")
    done = shippable("ship", "study.toml", "gcc-12-O2", *ANYWAY)
    assert done.status == 2
    assert "would not be built as it was measured" in done.complaint
    change(shippable, _SHIP, "")
    done = shippable("ship", "study.toml", "gcc-12-O2", *ANYWAY)
    assert done.status == 2
    assert "study.toml has no [ship] table" in done.complaint


def test_without_a_measurement_there_is_nothing_to_ship(ensign: Ensign) -> None:
    write_study(ensign.folder, BATCH + _SHIP)
    done = ensign("ship", "study.toml")
    assert done.status == 2
    assert "nothing of study.toml has been measured yet" in done.complaint


def test_a_trained_server_is_shipped_as_a_script(ensign: Ensign) -> None:
    polite = ('"{artifact}", "{port}"]', '"{artifact}", "{port}", "polite"]')
    write_study(ensign.folder, SERVER + _TRAINED, polite)
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    done = ensign("ship", "study.toml", "gcc-12-O2-pgo", *ANYWAY, "-o", "out")
    assert done.status == 0, done.err
    script = ensign.folder / "out/build.sh"
    assert script.stat().st_mode & stat.S_IXUSR
    subprocess.run(["bash", "-n", script], check=True)
    assert '"$work/' in script.read_text()
    assert 'serve() { exec env MODE=learning PLACE="$tree" ' in script.read_text()
    assert "training" in (ensign.folder / "out/pull-request.md").read_text()
