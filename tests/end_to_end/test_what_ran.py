"""`ensign compare`: what ran is what is said; variants that share files are not alive at once."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from end_to_end.conftest import SOON, SOURCES, Ensign, Programs

LIBRARY = """
int work(void) {{
    volatile long sum = 0;
    for (long i = 0; i < {}; i++) sum += i;
    return 0;
}}"""
LINKED = "int work(void); int main(void) { return work(); }"
LOADED = """
#include <dlfcn.h>
#include <stdlib.h>
int main(void) {
    void *library = dlopen(getenv("WORK"), RTLD_NOW);
    int result = library ? ((int (*)(void))dlsym(library, "work"))() : 9;
    if (library) dlclose(library);
    return result;
}"""


def compiled(folder: Path, source: str, name: str, *options: str) -> Path:
    folder.mkdir(exist_ok=True)
    file = folder / f"{name}.c"
    file.write_text(source)
    path = folder / name
    subprocess.run(["gcc-12", "-O1", "-o", str(path), str(file), *options], check=True)
    file.unlink()
    return path


def with_library(folder: Path, rounds: int) -> Path:
    """A program and its library, found by the program's own run path."""
    compiled(folder, LIBRARY.format(rounds), "libwork.so", "-shared", "-fPIC")
    return compiled(folder, LINKED, "main", "-L", str(folder), "-lwork", "-Wl,-rpath,$ORIGIN")


def exported(ensign: Ensign) -> dict[str, list[dict[str, object]]]:
    said: dict[str, list[dict[str, object]]] = json.loads((ensign.folder / "out.json").read_text())
    return said


def codes(ensign: Ensign) -> list[str]:
    return [str(finding["code"]) for finding in exported(ensign)["findings"]]


def ran(ensign: Ensign, variant: int) -> dict[str, str]:
    files = exported(ensign)["variants"][variant]["ran"]
    assert isinstance(files, list)
    assert len({file["path"] for file in files}) == len(files)
    return {Path(file["path"]).name: file["sha256"] for file in files}


def test_equal_programs_with_other_libraries_are_not_the_same(ensign: Ensign) -> None:
    old = with_library(ensign.folder / "old", 1_000_000)
    new = with_library(ensign.folder / "new", 3_000_000)
    shutil.copy(old, new)  # the program alone is the same file
    done = ensign("compare", str(old), str(new), *SOON, "--export-json", "out.json")
    assert done.status == 0, done.err
    assert "same-bytes" not in codes(ensign)
    first, second = ran(ensign, 0), ran(ensign, 1)
    assert first["main"] == second["main"]
    assert first["libwork.so"] != second["libwork.so"]
    assert first["libc.so.6"] == second["libc.so.6"]


def test_a_library_that_is_loaded_by_name_and_closed_again_counts(ensign: Ensign) -> None:
    program = compiled(ensign.folder / "bin", LOADED, "main")
    for name, rounds in (("one", 1_000_000), ("two", 3_000_000)):
        compiled(ensign.folder / name, LIBRARY.format(rounds), "libwork.so", "-shared", "-fPIC")
    commands = [f"env WORK={ensign.folder}/{name}/libwork.so {program}" for name in ("one", "two")]
    done = ensign("compare", *commands, *SOON, "--export-json", "out.json")
    assert done.status == 0, done.err
    assert "same-bytes" not in codes(ensign)
    assert ran(ensign, 0)["libwork.so"] != ran(ensign, 1)["libwork.so"]


def test_equal_bytes_in_two_places_are_the_same(ensign: Ensign) -> None:
    old = with_library(ensign.folder / "old", 1_000_000)
    shutil.copytree(ensign.folder / "old", ensign.folder / "new")
    new = ensign.folder / "new" / "main"
    done = ensign("compare", str(old), str(new), *SOON, "--export-json", "out.json")
    assert done.status == 0, done.err
    assert "same-bytes" in codes(ensign)


def test_scripts_their_children_and_what_they_fail_at_are_seen(ensign: Ensign) -> None:
    for name, word in (("one", "true"), ("two", "/usr/bin/env true")):
        script = ensign.folder / name
        script.write_text(f"#!/bin/sh\n{word}\nexit 3\n")
        script.chmod(0o755)
    done = ensign(
        "compare",
        "./one",
        "./two",
        "-i",
        *SOON,
        "--mode",
        "alternating",
        "--export-json",
        "out.json",
    )
    assert done.status == 0, done.err
    assert "same-bytes" not in codes(ensign)
    assert "one" in ran(ensign, 0)
    assert {"two", "env"} <= ran(ensign, 1).keys()


@pytest.fixture(scope="session")
def sharer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sharer") / "sharer"
    subprocess.run(["gcc-12", "-O1", "-o", str(path), str(SOURCES / "shared.c")], check=True)
    return path


@pytest.mark.parametrize("way", ["write", "lock", "create"])
def test_two_commands_that_write_one_file_run_by_turns(
    ensign: Ensign, sharer: Path, way: str
) -> None:
    done = ensign(
        "compare", f"{sharer} {way} state 1000000", f"{sharer} {way} state 3000000", *SOON,
        "--export-json", "out.json",
    )  # fmt: skip
    assert done.status == 0, done.err
    assert codes(ensign).count("shared-files") == 1
    assert exported(ensign)["trials"][0]["mode"] == "alternating"
    (finding,) = (each for each in exported(ensign)["findings"] if each["code"] == "shared-files")
    assert str(ensign.folder / "state") in str(finding["text"])
    assert "{variant}" in done.out


def test_a_command_that_shares_with_its_own_twin_runs_by_turns(
    ensign: Ensign, sharer: Path, programs: Programs
) -> None:
    done = ensign(
        "compare", f"{sharer} create state 1000000", f"{programs.cheap} 1000000", *SOON,
        "--export-json", "out.json",
    )  # fmt: skip
    assert done.status == 0, done.err
    (finding,) = (each for each in exported(ensign)["findings"] if each["code"] == "shared-files")
    assert "(twin)" in str(finding["text"])


@pytest.mark.parametrize(
    "place", ["{tmp}/state", "state-{variant}", "/dev/null", "./state-$$", "$(mktemp -p .)"]
)
def test_files_of_their_own_are_no_clash(ensign: Ensign, place: str) -> None:
    work = "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done"
    command = f"sh -c 'f={place}; echo $$ > $f; {work}; [ $f = /dev/null ] || rm $f'"
    done = ensign(
        "compare", command, command, *SOON, "--mode", "interleaved", "--export-json", "out.json"
    )
    assert done.status == 0, done.err
    assert "shared-files" not in codes(ensign)


def test_a_log_that_is_appended_to_is_shared(ensign: Ensign) -> None:
    work = "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done"
    command = f"sh -c '{work}; echo done >> log'"
    done = ensign("compare", command, command, *SOON, "--export-json", "out.json")
    assert done.status == 0, done.err
    assert "shared-files" in codes(ensign)


def test_standard_output_to_one_file_is_shared(ensign: Ensign, programs: Programs) -> None:
    command = f"{programs.cheap} 1000000"
    done = ensign(
        "compare", command, f"{command} 0", *SOON, "--output", "out.txt",
        "--export-json", "out.json",
    )  # fmt: skip
    assert done.status == 0, done.err
    assert "shared-files" in codes(ensign)


def test_sliced_by_request_is_told_all_the_same(ensign: Ensign, sharer: Path) -> None:
    script = f"sh -c 'cp /dev/null state; exec {sharer} lock own-{{variant}} 1000000'"
    done = ensign(
        "compare",
        script,
        script,
        "--race-same",
        *SOON,
        "--mode",
        "interleaved",
        "--export-json",
        "out.json",
    )
    assert done.status == 0, done.err
    assert "shared-files" in codes(ensign)
    assert exported(ensign)["trials"][0]["mode"] == "interleaved"


def test_what_is_prepared_belongs_to_the_variant(ensign: Ensign) -> None:
    done = ensign(
        "compare", "sh -c 'rm {tmp}/state'", "sh -c 'rm {tmp}/state; :'", *SOON,
        "--prepare", "sh -c 'echo > {tmp}/state'", "--mode", "alternating",
        "--export-json", "out.json",
    )  # fmt: skip
    assert done.status == 0, done.err
    assert "shared-files" not in codes(ensign)


def test_tmp_lasts_from_setup_to_cleanup_where_these_name_it(ensign: Ensign) -> None:
    (ensign.folder / "in").write_text("line\n")
    done = ensign(
        "compare", "sh -c 'test -e {tmp}/made-{variant}; cat > {tmp}/kept'",
        "sh -c 'test -e $PLACE/made-{variant}; cat > {tmp}/kept'", *SOON,
        "--setup", "sh -c 'touch {tmp}/made-{variant}; cp in {tmp}/in'",
        "--input", "{tmp}/in", "--env", "PLACE={tmp}", "--mode", "alternating",
        "--cleanup", "sh -c 'cat {tmp}/kept >> log'", "--export-json", "out.json",
    )  # fmt: skip
    assert done.status == 0, done.err
    assert (ensign.folder / "log").read_text() == "line\n" * 3
    assert "shared-files" not in codes(ensign)


def test_servers_that_share_a_file_are_not_there_at_once(
    ensign: Ensign, programs: Programs
) -> None:
    serve = f"flock -n -F -E 7 lock {programs.server} {{port}}"
    done = ensign(
        "compare", serve, f"{serve} polite", "--load",
        f"{programs.load} {{port}} 100", *SOON, "--export-json", "out.json",
    )  # fmt: skip
    assert done.status == 0, done.err
    assert "shared-files" in codes(ensign)
    assert exported(ensign)["trials"][0]["mode"] == "alternating"


def something_else(ensign: Ensign) -> list[str]:
    findings = exported(ensign)["findings"]
    return [str(each["text"]) for each in findings if each["code"] == "ran-something-else"]


def test_a_race_of_what_was_looked_at_is_no_finding(ensign: Ensign) -> None:
    old = with_library(ensign.folder / "old", 20_000_000)
    new = with_library(ensign.folder / "new", 30_000_000)
    done = ensign(
        "compare", str(old), str(new), *SOON, "--mode", "interleaved", "--export-json", "out.json"
    )
    assert done.status == 0, done.err
    assert something_else(ensign) == []


@pytest.mark.parametrize("mode", ["interleaved", "alternating"])
def test_a_library_that_is_another_in_the_race_is_an_error(ensign: Ensign, mode: str) -> None:
    program = compiled(ensign.folder / "bin", LOADED, "main")
    # Long enough to be looked at on a fast machine, too.
    for name, rounds in (("one", 100_000_000), ("two", 150_000_000)):
        compiled(ensign.folder / name, LIBRARY.format(rounds), "libwork.so", "-shared", "-fPIC")
    script = ensign.folder / "choose"
    script.write_text(
        "#!/bin/sh\n"
        'grep -q "TracerPid:.0" /proc/$$/status && one=two || one=one\n'
        f'WORK={ensign.folder}/$one/libwork.so exec {program} "$@"\n'
    )
    script.chmod(0o755)
    done = ensign(
        "compare", "./choose", "./choose 2", "--budget", "100s", "--precision", "60%",
        "--mode", mode, "--export-json", "out.json",
    )  # fmt: skip
    assert done.status == 0, done.err
    found = something_else(ensign)
    assert found
    assert "/two/libwork.so" in found[0]
    assert "/one/libwork.so" in found[0]


def test_a_program_that_is_built_anew_during_its_race_is_an_error(ensign: Ensign) -> None:
    first = with_library(ensign.folder / "one", 20_000_000)
    second = with_library(ensign.folder / "two", 20_000_000)
    other = with_library(ensign.folder / "new", 30_000_000).parent / "libwork.so"
    library = second.parent / "libwork.so"
    swap = ensign.folder / "swap"
    swap.write_text(
        "#!/bin/sh\n"
        "echo >> count\n"
        "[ $(wc -l < count) = 40 ] || exit 0  # after pilots and traced executions\n"
        f"cp {other} {library}.new && mv {library}.new {library}\n"
    )
    swap.chmod(0o755)
    done = ensign(
        "compare", str(first), str(second), "--race-same", "--budget", "60s", "--max-runs", "30",
        "--prepare", "./swap", "--export-json", "out.json",
    )  # fmt: skip
    assert done.status == 0, done.err
    assert any("libwork.so" in text for text in something_else(ensign))
