"""`ensign explain`: planted differences are found where they are, and none where there is none."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from end_to_end.conftest import SOURCES, Done, Ensign
from end_to_end.small_study import BATCH, write_study

SOURCE = """
#include <stdio.h>
#include <stdlib.h>
#define WORK(name, times) __attribute__((noipa)) unsigned long name(unsigned long n) \\
  { unsigned long s = 1; n *= times; while (n--) s = s * 6364136223846793005UL + n; return s; }
WORK(tokenize, TOKENIZE) WORK(encode, 3) WORK(write_out, 1)
int main(int count, char **words) {
  unsigned long sum = 0, n = count > 1 ? atol(words[1]) : 1;
  for (int k = 0; k < 200; k++) sum += tokenize(n) + encode(n) + write_out(n);
  puts(sum == 42 ? "" : "done");
}
"""
FOR_SAMPLES = ("--min-runs", "8", "--max-runs", "8")


@pytest.fixture
def pair(ensign: Ensign) -> tuple[str, str]:
    """The second does half as much again in `tokenize`, which is half of all."""
    paths = []
    for name, times in (("old", 4), ("new", 6)):
        folder = ensign.folder / name
        folder.mkdir()
        (folder / "tool.c").write_text(SOURCE)
        argv = ["gcc", "-O2", "-g", f"-DTOKENIZE={times}", "tool.c", "-o", "tool"]
        subprocess.run(argv, cwd=folder, check=True)
        paths.append(f"{folder}/tool 20000")
    return paths[0], paths[1]


def functions(folder: Path) -> Any:
    (found,) = json.loads((folder / "out.json").read_text())["functions"]
    return found


def test_the_function_that_does_more_has_the_difference(
    ensign: Ensign, pair: tuple[str, str]
) -> None:
    done = ensign("explain", *pair, *FOR_SAMPLES, "--json", "out.json")
    assert done.status == 0, done.err
    found = functions(ensign.folder)
    rows = {row["name"]: row for row in found["by_symbol"]}
    # 4 of 8 parts became 6 of 10; a busy machine takes few samples.
    assert rows["tokenize"]["low"] < 0.25 < rows["tokenize"]["high"] + 0.1
    assert rows["tokenize"]["low"] > 0
    assert "Where the difference lies, as written" in done.said
    assert "tokenize" in done.said


def test_equal_work_has_no_difference(ensign: Ensign, pair: tuple[str, str]) -> None:
    old, _ = pair
    again = old.replace("tool 20000", "tool 20000 again")
    done = ensign.brief("explain", old, again, *FOR_SAMPLES)
    assert done.status == 0, done.err
    shown = "No difference in CPU time is shown" in done.said
    assert shown or "uses" in done.said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--mode", "alternating"], "leave out --mode alternating"),
        (["--confirm"], "leave out --revisions and --confirm"),
    ],
)
def test_what_cannot_be_explained_is_said(ensign: Ensign, options: list[str], said: str) -> None:
    done = ensign("explain", "true {port}", "true {port}", *options)
    assert done.status == 2
    assert said in done.complaint


def test_two_variants_of_a_study_are_explained(ensign: Ensign) -> None:
    write_study(ensign.folder, BATCH, ("rounds = 3", "rounds = 5"))
    done = ensign(
        "explain", "study.toml", "gcc-12-O1", "gcc-12-O2", "--workload", "long", "--budget", "20s",
        "--json", "out.json",
    )  # fmt: skip
    assert done.status == 0, done.err
    found = functions(ensign.folder)
    assert found["variant"] == "gcc-12-O2"
    assert found["workload"] == "long"
    redo = "ensign explain study.toml gcc-12-O1 gcc-12-O2 --workload long --budget 20s"
    assert redo in done.said
    assert not (ensign.folder / ".ensign" / "small").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["study.toml"], "of a study two variants are explained"),
        (["study.toml", "gcc-12-O1", "gcc-12-O1"], "is both variants"),
        (["study.toml", "gcc-12-O1", "gcc-12-O3"], "has no variant called 'gcc-12-O3'"),
        (["study.toml", "gcc-12-O1", "gcc-12-O2", "--runs", "3"], "--runs is for commands"),
        (["nothing.toml", "a", "b"], "nothing.toml"),
    ],
)
def test_a_pair_that_is_none_is_said(ensign: Ensign, words: list[str], said: str) -> None:
    write_study(ensign.folder, BATCH)
    done = ensign("explain", *words)
    assert done.status == 2
    assert said in done.complaint


def test_samples_in_a_study_are_reported(ensign: Ensign) -> None:
    write_study(ensign.folder, BATCH, ('budget = "60s"', 'budget = "60s"\nsamples = true'))
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    done = ensign("report", "study.toml", "--json", "out.json")
    assert done.status == 0, done.err
    found = json.loads((ensign.folder / "out.json").read_text())["functions"]
    assert [each["workload"] for each in found] == ["short", "long"]


def test_a_server_is_looked_at_while_it_works(ensign: Ensign) -> None:
    for name, work in (("quick", 20_000), ("slow", 60_000)):
        argv = ["gcc", "-O1", f"-DWORK={work}", "-o", str(ensign.folder / name)]
        subprocess.run([*argv, str(SOURCES / "resp.c")], check=True)
    drive = 'connections = 1\noperations = 4000\n[[commands]]\nargv = ["PING"]\n'
    (ensign.folder / "ping.toml").write_text(drive)
    servers = ("./quick {port}", "./slow {port}")
    done = ensign("explain", *servers, "--drive", "ping.toml", *FOR_SAMPLES, "--json", "out.json")
    assert done.status == 0, done.err
    found = functions(ensign.folder)
    (first, *_) = found["by_symbol"]
    assert first["file"] == ""
    assert first["low"] > 0


def only_causes(ensign: Ensign, done: Done) -> Any:
    """The one table of causes; what was said instead, if there is none."""
    said = json.loads((ensign.folder / "out.json").read_text())
    (causes,) = said.get("causes") or pytest.fail(done.said)
    return causes


def test_variables_and_words_that_differ_get_their_shares(
    ensign: Ensign, pair: tuple[str, str]
) -> None:
    old, _ = pair
    more = old.replace("tool 20000", "tool 40000")
    runs = ("--min-runs", "6", "--max-runs", "6")
    done = ensign(
        "explain", f"env DECOY=1 {old}", f"env DECOY=2 {more}", *runs, "--proof", "8s",
        "--json", "out.json",
    )  # fmt: skip
    assert done.status == 0, done.err
    causes = only_causes(ensign, done)
    parts = {part["name"]: part for part in causes["parts"]}
    assert parts.keys() == {"DECOY: 1 → 2", "20000 → 40000"}
    assert parts["20000 → 40000"]["proven"]
    assert parts["20000 → 40000"]["share"] == pytest.approx(1, abs=0.2)
    assert "Why, by choices" in done.said


def test_the_only_thing_that_differs_is_the_cause(ensign: Ensign, pair: tuple[str, str]) -> None:
    old, new = pair
    more = old.replace("tool 20000", "tool 40000")
    done = ensign("explain", old, more, *FOR_SAMPLES, "--json", "out.json")
    assert done.status == 0, done.err
    (part,) = only_causes(ensign, done)["parts"]
    assert (part["name"], part["share"], part["proven"]) == ("20000 → 40000", 1, True)
    # Another program is no cause: that is what is to be explained.
    done = ensign("explain", old, new, *FOR_SAMPLES, "--json", "out.json")
    assert "causes" not in json.loads((ensign.folder / "out.json").read_text())


def test_page_faults_are_told_where_they_differ(ensign: Ensign) -> None:
    text = """
    #include <stdlib.h>
    int main(int count, char **words) {
      (void)count;
      char *pages = malloc(4096L * 5000);
      for (long n = 0; n < atol(words[1]); n++) pages[4096 * n] = 1;
      for (long n = 60000000; n; n--) __asm__ volatile("");
      return pages[0] - 1;
    }
    """
    (ensign.folder / "pages.c").write_text(text)
    argv = ["gcc", "-O1", "pages.c", "-o", "pages"]
    subprocess.run(argv, cwd=ensign.folder, check=True)
    done = ensign("explain", "./pages 5000", "./pages 10", *FOR_SAMPLES, "--json", "out.json")
    assert done.status == 0, done.err
    before, after = functions(ensign.folder)["page_faults"]
    assert before - after == pytest.approx(4990, abs=50)
    assert 10 <= after < 1000


FRAIL = """
#include <stdio.h>
#include <stdlib.h>
int main(int count, char **words) {
  if (words[1][0] == 'b' && words[2][0] == 'a') BETWEEN;
  for (long n = words[2][0] == 'b' ? 120000000 : 40000000; n; n--) __asm__ volatile("");
  puts("done");
}
"""


@pytest.mark.parametrize("between", ["abort()", 'puts("else")'])
def test_a_toggle_that_dies_or_does_something_else_proves_nothing(
    ensign: Ensign, between: str
) -> None:
    (ensign.folder / "frail.c").write_text(FRAIL)
    argv = ["gcc", "-O1", f"-DBETWEEN={between}", "frail.c", "-o", "frail"]
    subprocess.run(argv, cwd=ensign.folder, check=True)
    runs = ("--min-runs", "7", "--max-runs", "7", "--proof", "30s", "--json", "out.json")
    done = ensign("explain", "./frail a a", "./frail b b", *runs)
    assert done.status == 0, done.err
    causes = only_causes(ensign, done)
    shares = {part["name"]: part["share"] for part in causes["parts"]}
    # Told from the other end alone.
    assert shares["a → b (place 3)"] == pytest.approx(1, abs=0.2)
    assert "with a → b (place 2) alone" in done.said


def test_libraries_of_two_commands_are_toggled_one_by_one(ensign: Ensign) -> None:
    # In a register: a variable in memory is five times as fast when its processor foresees it.
    work = 'void {name}(void) {{ for (long n = {times}; n; n--) __asm__ volatile(""); }}'
    for folder, times in (("a", 120_000_000), ("b", 40_000_000)):
        (ensign.folder / folder).mkdir()
        for name in ("slow", "same"):
            each = times if name == "slow" else 40_000_000 + times % 7
            (ensign.folder / f"{name}.c").write_text(work.format(name=name, times=each))
            file = f"lib{name}.so"
            argv = ["gcc", "-O1", "-shared", "-fPIC", f"{name}.c", "-o", f"{folder}/{file}"]
            named = [*argv, f"-Wl,-soname,{file}"]
            subprocess.run(named, cwd=ensign.folder, check=True)
    text = "void slow(void); void same(void); int main(void) { slow(); same(); return 0; }"
    (ensign.folder / "main.c").write_text(text)
    argv = ["gcc", "main.c", "-o", "main", "-La", "-lslow", "-lsame"]
    subprocess.run(argv, cwd=ensign.folder, check=True)
    commands = [f"env LD_LIBRARY_PATH={ensign.folder}/{each} ./main" for each in ("a", "b")]
    runs = ("--min-runs", "7", "--max-runs", "7", "--proof", "30s", "--json", "out.json")
    done = ensign("explain", *commands, *runs)
    assert done.status == 0, done.err
    causes = only_causes(ensign, done)
    shares = {part["name"].partition(":")[0]: part["share"] for part in causes["parts"]}
    assert shares.keys() == {"libslow", "libsame"}
    assert shares["libslow"] == pytest.approx(1, abs=0.2)


def test_one_command_in_two_environments(ensign: Ensign, pair: tuple[str, str]) -> None:
    words = pair[0].split()
    done = ensign("explain", "--env", "A=1", "--env", "A=2", *FOR_SAMPLES, "--", *words)
    assert done.status == 0, done.err
    assert "A=1" in done.said
    done = ensign("explain", "--env", "A=1", "--env", "host", "--", *words)
    assert done.status == 2
    assert "not one of each" in done.complaint


def test_sources_of_a_study_are_toggled_and_the_studies_written(ensign: Ensign) -> None:
    swaps = ('layouts = "natural"', 'layouts = "natural"'), ("rounds = 3", "rounds = 5")
    write_study(ensign.folder, BATCH, *swaps)
    done = ensign(
        "explain", "study.toml", "gcc-12-O1", "gcc-12-O2", "--workload", "long", "--budget", "10s",
        "--proof", "10s", "--study-file", "why.toml",
    )  # fmt: skip
    assert done.status == 0, done.err
    written = ensign.folder / "why-sources.toml"
    # Whether the levels differ at all is for this machine to say.
    if written.exists():
        assert "Why, by source files" in done.said
        assert "spin.c" in done.said
        assert ensign("plan", "why-sources.toml").status == 0


def test_what_was_known_before_a_proof_that_fails_is_written(
    ensign: Ensign, pair: tuple[str, str]
) -> None:
    ends = f"env A=1 {pair[0]}", f"env A=2 {pair[1]}"
    done = ensign("explain", *ends, *FOR_SAMPLES, "--proof", "1ms", "--json", "out.json")
    assert done.status == 2
    assert "budget" in done.complaint
    assert functions(ensign.folder)["variant"] == "A=2 new"


def test_only_a_raced_study_can_be_repaired(ensign: Ensign) -> None:
    write_study(ensign.folder, BATCH)
    done = ensign("repair", "study.toml", "gcc-12-O2")
    assert done.status == 2
    assert "Traceback" not in done.err
