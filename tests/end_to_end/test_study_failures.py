"""A variant that fails while it is raced is out; the study and the other variants go on."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from end_to_end.conftest import Ensign
from end_to_end.small_study import BATCH, SERVER, with_shared_folder, write_study
from end_to_end.test_study import results, trials

# Variants differ in their optimization only; what -O2 defines is planted.
PLANTED = "case '{cflags}' in *-O2*) f='FLAGS';; esac; {cc} {cflags} $f"
THREE = ('optimization = ["-O1", "-O2"]', 'optimization = ["-O1", "-O2", "-Os"]')
# What fails in every run would be found before the race.
UNCHECKED = "check.same_output = []\n" + BATCH
COUNTED = '"{artifact}", "1000000", "COUNT"]\ndeadline = "1s"'

RESP = """\
name = "driven"
layouts = "natural"

[source]
kind = "path"
path = "source"

[build]
commands = [["sh", "-c", "{cc} {cflags} -DWORK=500 -o resp resp.c"]]
artifact = "resp"

[axes]
compiler = ["gcc-12"]
optimization = ["-O1", "-O2"]

[baseline]
optimization = "-O1"

[server]
command = ["{artifact}", "{port}"]

[race]
mode = "driven"
budget = "60s"
rounds = 3

[[workloads]]
name = "ping"
requests = 3000
drive = { connections = 1, commands = [{ argv = ["PING"] }] }
"""


def planted(ensign: Ensign, flags: str, text: str = BATCH) -> Path:
    """A study of three variants, one of which has a fault; its runs are counted."""
    return write_study(
        ensign.folder,
        with_shared_folder(text),
        THREE,
        ("{cc} {cflags} -DWORK=1 -o spin spin.c", f"{PLANTED} -o spin fault.c"),
        ("FLAGS", flags),
        ('"{artifact}", "1000000"]', COUNTED.replace("COUNT", str(ensign.folder / "count"))),
    )


def assert_out(ensign: Ensign, *words: str) -> None:
    """-O2 is out for that reason in every report, and -Os is compared as ever."""
    said = results(ensign)
    assert [entry["variant"] for entry in said["suite"]] == ["gcc-12-Os", "twin"]
    assert {entry["variant"] for entry in said["workloads"]} == {"gcc-12-Os", "twin"}
    (failed,) = said["failed"]
    assert failed["variant"] == "gcc-12-O2"
    (finding,) = [each for each in said["findings"] if each["code"] == "variant-failed"]
    assert (finding["subject"], finding["severity"]) == ("gcc-12-O2", "error")
    told = " ".join(ensign("report", "study.toml").out.split())
    assert "! gcc-12-O2: failed on workload" in told
    for word in words:
        assert word in str(finding["text"])
        assert word in told
    for kind in ("--html", "--markdown", "--csv"):
        target = str(ensign.folder / f"report{kind}")
        assert ensign("report", "study.toml", kind, target).status == 0
        assert "gcc-12-O2" in Path(target).read_text()
        if kind != "--csv":
            assert "failed on workload" in Path(target).read_text()
    rows = list(csv.DictReader((ensign.folder / "report--csv").read_text().splitlines()))
    assert [(row["scope"], row["workload"]) for row in rows if row["variant"] == "gcc-12-O2"] == [
        ("failed", str(failed["workload"]))
    ]


@pytest.mark.parametrize(
    ("fault", "nth", "words"),
    [
        ("exit", 1, ("exit status 9", "no more luck")),
        ("segv", 2, ("signal 11",)),
        ("hang", 1, ("deadline",)),
        ("memory", 3, ("signal 6",)),
    ],
)
def test_a_variant_that_fails_is_out(
    ensign: Ensign, fault: str, nth: int, words: tuple[str, ...]
) -> None:
    study = planted(ensign, f'-DFAULT=\\"{fault}\\" -DNTH={nth}', UNCHECKED)
    # Fillers would count as runs, too.
    study.write_text(study.read_text().replace("[race]", '[race]\nmode = "alternating"'))
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    assert_out(ensign, *words)
    assert len(trials(ensign.folder)) == 6
    # It is not tried again.
    runs = (ensign.folder / "count").read_text()
    again = ensign("run", "study.toml")
    assert again.status == 0, again.err
    next(ensign.folder.glob(".ensign/small/trials/*/0002-long.csv.gz")).unlink()
    more = ensign("run", "study.toml")
    assert more.status == 0, more.err
    assert_out(ensign, *words)
    assert (ensign.folder / "count").read_text() == runs


def test_a_variant_that_spins_for_ever_is_out_of_slices(ensign: Ensign) -> None:
    planted(ensign, '-DFAULT=\\"spin\\"', UNCHECKED)
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    assert_out(ensign, "deadline")


def test_when_every_variant_fails_the_report_says_so(ensign: Ensign) -> None:
    study = planted(ensign, '-DFAULT=\\"exit\\"', UNCHECKED)
    study.write_text(study.read_text().replace('"-O1", "-O2", "-Os"', '"-O1", "-O2"'))
    for _ in range(2):
        done = ensign("run", "study.toml")
        assert done.status == 3
        assert "every variant failed" in done.complaint
        assert "gcc-12-O2: failed on workload" in done.out
        assert "No variant was compared" in done.out
    assert results(ensign)["failed"]


def test_the_baseline_that_fails_ends_the_study_with_what_was_measured(ensign: Ensign) -> None:
    study = planted(ensign, "", UNCHECKED)
    fault = "*-O1*) f='-DFAULT=\\\"exit\\\" -DNTH=5'"
    text = study.read_text().replace("*-O2*) f=''", fault)
    text = text.replace("[race]", '[race]\nmode = "alternating"')
    study.write_text(text)
    done = ensign("run", "study.toml")
    assert done.status == 3
    assert "gcc-12-O1" in done.complaint
    assert "status 9" in done.complaint
    assert "short" in done.complaint


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ('-DFAULT=\\"die\\" -DLEFT=1000', ("out of luck",)),
        ('-DFAULT=\\"refuse\\" -DLEFT=100', ("ERR refused",)),
    ],
)
def test_a_driven_server_that_fails_is_out(
    ensign: Ensign, flags: str, words: tuple[str, ...]
) -> None:
    write_study(
        ensign.folder,
        RESP,
        THREE,
        ("{cc} {cflags} -DWORK", f"{PLANTED} -DWORK"),
        ("FLAGS", flags),
    )
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    assert_out(ensign, *words)


def test_a_server_that_dies_under_load_is_out(ensign: Ensign) -> None:
    write_study(
        ensign.folder,
        SERVER,
        THREE,
        ("{cc} {cflags} -DWORK", f"{PLANTED} -DWORK"),
        ("FLAGS", '-DFAULT=\\"crash\\" -DLEFT=20'),
    )
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    assert_out(ensign, "out of luck")
