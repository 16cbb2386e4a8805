"""A study of two phases with real builds and races."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path

from end_to_end.conftest import Ensign, Line, wait_for
from end_to_end.small_study import BATCH, write_study

# Whatever a processor makes of the flags: what is built with -O0 has six times the work.
PLANTED = "case '{cflags}' in *-O0*) work=6;; *) work=1;; esac; {cc} {cflags} -DWORK=$work"
EXPLORED = (
    ("{cc} {cflags} -DWORK=1", PLANTED),
    ('["-O1", "-O2"]', '["-O0", "-O1", "-O2"]'),
    ('optimization = "-O1"', 'optimization = "-O0"'),
)
CONFIRM = ("rounds = 3", "rounds = 3\nconfirm = { finalists = 1, rounds = 5 }")


def trials(folder: Path, phase: str) -> set[Path]:
    found = set(folder.glob(".ensign/small/trials/*/*.csv.gz"))
    confirming = {path for path in found if path.parent.name.startswith("confirm-")}
    return confirming if phase == "confirming" else found - confirming


def phase_of(ensign: Ensign, *source: str) -> dict[str, object]:
    done = ensign("report", *(source or ("study.toml",)), "--json", "-")
    assert done.status == 0, done.err
    phase: dict[str, object] = json.loads(done.out)["confirmation"]
    return phase


def test_explored_planned_confirmed_resumed_bundled(ensign: Ensign, complaint: Line) -> None:
    study = write_study(ensign.folder, BATCH, *EXPLORED)
    plain = ensign("run", "study.toml")
    assert plain.status == 0, plain.err
    assert len(trials(ensign.folder, "exploring")) == 6
    study.write_text(study.read_text().replace(*CONFIRM))
    assert "it is not confirmed" in ensign("report", "study.toml").said
    running = ensign.start("run", "study.toml")
    wait_for(lambda: len(trials(ensign.folder, "confirming")) >= 2, "no confirming trial", running)
    running.send_signal(signal.SIGINT)
    assert ensign.end(running).status == 4
    assert len(trials(ensign.folder, "exploring")) == 6
    (plan,) = (
        path for path in ensign.folder.glob(".ensign/small/confirm/*") if "record" not in path.name
    )
    begun = {path: path.stat().st_mtime_ns for path in trials(ensign.folder, "confirming")}
    assert min(begun.values()) > plan.stat().st_mtime_ns
    half = ensign("report", "study.toml")
    assert "Nothing is claimed yet" in half.said

    original = plan.read_text()
    plan.write_text(original.replace('"margin": "1%"', '"margin": "9%"'))
    assert "edited after it was written" in ensign("run", "study.toml").complaint
    assert "edited after it was written" in complaint("report study.toml")
    plan.write_text(original)

    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    assert "Raced again: " in done.said
    assert len(trials(ensign.folder, "confirming")) == 10
    for path, changed_ns in begun.items():
        assert path.stat().st_mtime_ns == changed_ns
    phase = phase_of(ensign)
    assert (phase["rounds_done"], len(phase["finalists"])) == (5, 1)  # type: ignore[arg-type]
    assert [row["variant"] for row in phase["suite"]] == [*phase["finalists"], "twin"]  # type: ignore[attr-defined,misc]

    assert ensign("bundle", "study.toml").status == 0
    study.unlink()
    shutil.rmtree(ensign.folder / ".ensign")
    assert phase_of(ensign, "study.bundle.zip") == phase
