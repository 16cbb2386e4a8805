"""The tour names files and functions in the order in which they are called."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

from end_to_end.conftest import SOON, Ensign, Programs
from end_to_end.small_study import BATCH, write_study

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "ensign"
PAGE = (ROOT / "docs" / "background" / "tour.md").read_text(encoding="utf-8")
_ROW = re.compile(r"^\| `([\w/]+\.py)` \| `([\w.]+)` \|", re.MULTILINE)
_NAMED = re.compile(r"`([\w/]+(?:\.py|/))`")

Call = tuple[str, str]


def told(title: str) -> list[Call]:
    """The rows below that title: file and function."""
    part = PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    return _ROW.findall(part)


@contextmanager
def recorded() -> Iterator[dict[Call, None]]:
    """All functions of ensign that are called meanwhile, by their first call."""
    calls: dict[Call, None] = {}
    prefix = f"{SOURCE}/"

    def note(frame: FrameType, event: str, _: object) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(prefix):
            calls.setdefault((name.removeprefix(prefix), frame.f_code.co_qualname))

    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(before)
        threading.setprofile(None)


def check(rows: list[Call], calls: dict[Call, None]) -> None:
    assert len(rows) > 30
    assert [row for row in rows if row not in calls] == []
    order = list(calls)
    assert rows == sorted(rows, key=order.index)


def test_a_comparison(ensign: Ensign, programs: Programs) -> None:
    commands = (f"{programs.cheap} 1000000", f"{programs.dear} 1000000")
    with recorded() as calls:
        done = ensign.brief("compare", *commands, *SOON)
    assert done.status == 0, done.err
    check(told("A comparison"), calls)


def modules_read(ensign: Ensign, *argv: str) -> list[str]:
    """All modules of ensign that a command imports."""
    program = (
        "import sys; from ensign.cli.main import run_command_line as run; run(sys.argv[1:]);"
        "print('', *(name for name in sys.modules if name.split('.')[0] == 'ensign'), sep='\\n')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *argv],
        cwd=ensign.folder,
        env=ensign.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    return [line for line in done.stdout.splitlines() if re.fullmatch(r"ensign[\w.]*", line)]


@pytest.mark.parametrize(
    ("second", "most"), [("cheap", 120), ("dear", 140)], ids=["one program", "two programs"]
)
def test_a_comparison_reads_little_of_ensign(
    ensign: Ensign, programs: Programs, second: str, most: int
) -> None:
    """Of some 370 modules; what looks into code only where it may differ."""
    commands = (f"{programs.cheap} 1000000", f"{getattr(programs, second)} 1100000")
    read = modules_read(ensign, "compare", *commands, *SOON)
    assert "ensign.experiment.loop" in read
    assert len(read) <= most
    packages = {name.split(".")[1] for name in read if "." in name}
    assert not packages & {"builders", "sources", "variants", "workloads", "ship", "tools"}


def test_a_report_reads_nothing_of_what_builds_and_races(ensign: Ensign) -> None:
    write_study(ensign.folder, BATCH)
    read = modules_read(ensign, "report", "study.toml")
    assert "ensign.experiment.study.stored" in read
    unneeded = {"builders.build", "experiment.study.prepare", "experiment.study.rounds", "ship"}
    assert not unneeded & {name.removeprefix("ensign.") for name in read}


def test_a_study(ensign: Ensign) -> None:
    write_study(ensign.folder, BATCH, ('layouts = "natural"\n', ""))
    with recorded() as calls:
        done = ensign.brief("run", "study.toml")
    assert done.status == 0, done.err
    check(told("A study"), calls)


@pytest.mark.parametrize("name", sorted(set(_NAMED.findall(PAGE))))
def test_every_file_of_the_tour_is_there(name: str) -> None:
    place = ROOT if name.startswith(("src/", "tests/", "docs/")) else SOURCE
    assert (place / name).exists()
