"""Studies look at what ran, once; variants that write the same files are not alive at once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from end_to_end.conftest import Ensign
from end_to_end.small_study import BATCH, SERVER, with_shared_folder, write_study

_SHORT = 'name = "short"\ncommand = ["{artifact}", "1000000"]\n'
_SCRIPT = 'name = "short"\ncommand = ["sh", "-c", "{script}"]\n'
_LONG = '[[workloads]]\nname = "long"\ncommand = ["{artifact}", "3000000"]\n'
_LOCKED = 'set -C; echo > lock || exit 9; \\"$0\\" 1000000; rm lock'
_OWN = 'set -C; echo > lock-$$ || exit 9; \\"$0\\" 1000000; rm lock-$$'


def with_script(script: str) -> tuple[str, str]:
    changed = _SCRIPT.replace("{script}", script).replace('"]', '", "{artifact}"]')
    return _SHORT, changed


def report(ensign: Ensign) -> dict[str, list[dict[str, str]]]:
    done = ensign("report", "study.toml", "--json", "out.json")
    assert done.status == 0, done.err
    said: dict[str, list[dict[str, str]]] = json.loads((ensign.folder / "out.json").read_text())
    return said


def shared(ensign: Ensign) -> list[dict[str, str]]:
    return [each for each in report(ensign)["findings"] if each["code"] == "shared-files"]


def kept_files(folder: Path) -> list[Path]:
    return sorted(folder.glob(".ensign/*/shared/*.json"))


@pytest.mark.parametrize(("script", "count"), [(_LOCKED, 1), (_OWN, 0)])
def test_a_lock_that_all_variants_take_and_one_of_their_own(
    ensign: Ensign, script: str, count: int
) -> None:
    write_study(ensign.folder, with_shared_folder(BATCH), with_script(script))
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    found = shared(ensign)
    assert [each["subject"] for each in found] == ["short"] * count
    assert all("/lock" in each["text"] for each in found)


_COUNTED = 'grep -q TracerPid:.0 /proc/$$/status || echo >> COUNT; \\"$0\\" 1000000'


def test_nothing_is_traced_twice(ensign: Ensign) -> None:
    count = ensign.folder / "count"
    script = with_script(_COUNTED.replace("COUNT", str(count)))
    counted = (script[0], f"{script[1]}operations = 1\n")
    unchecked = "check.same_output = []\n" + with_shared_folder(BATCH)
    write_study(ensign.folder, unchecked, counted, (_LONG, ""))
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    # The baseline, its twin, because the baseline wrote a file, and the other variant.
    assert count.read_text() == "\n" * 3


def test_what_was_seen_is_kept_with_the_plan(ensign: Ensign) -> None:
    write_study(ensign.folder, BATCH)
    assert ensign("run", "study.toml").status == 0
    (kept,) = kept_files(ensign.folder)
    seen = json.loads(kept.read_text())["by_workload"]
    assert seen.keys() == {"short", "long"}
    for variants in seen.values():
        assert variants.keys() == {"gcc-12-O1"}
        for trace in variants.values():
            names = {Path(file["path"]).name for file in trace["mapped"]}
            assert {"spin", "libc.so.6"} <= names
    before = kept.stat().st_mtime_ns
    assert ensign("run", "study.toml").status == 0
    assert kept.stat().st_mtime_ns == before


def test_servers_that_take_one_lock_are_not_there_at_once(ensign: Ensign) -> None:
    lock = str(ensign.folder / "lock")
    command = f'command = ["flock", "-n", "-F", "-E", "9", "{lock}", "{{artifact}}", "{{port}}"]'
    served = with_shared_folder(SERVER)
    write_study(ensign.folder, served, ('command = ["{artifact}", "{port}"]', command))
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    (found,) = shared(ensign)
    assert lock in found["text"]
