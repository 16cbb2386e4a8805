"""Keys of the cache, as they were: another one makes every build in users' caches anew.

A change here is right where what is built, or checked, changes; then `_SCHEMA` changes with it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from builders.test_plan import PLACE, TOOLCHAINS
from ensign.builders.cache import Cache
from ensign.builders.check import Ground, check_key
from ensign.builders.isolation import Bubblewrap
from ensign.builders.outcomes import BuildResult
from ensign.builders.plan import plan_builds
from ensign.builders.workshop import Workshop
from ensign.host.clock import SystemClock
from ensign.model.results import BuildFacts
from ensign.model.study import Check, Study
from ensign.toolchains.profiling import Profilers
from real_processes import PlainProcesses
from small_studies import BUILD, CLANG_O2, GCC_LTO, GCC_O2

_TRAINED = replace(CLANG_O2, name="trained", pgo="on", bolt="on", strip="yes")
_FLAGS = replace(GCC_LTO, name="all", dependencies="flags", target="native")
_STAGES = {
    "dependencies with gcc-12": ("dependencies", "ac5ac9feeb7cbcc0"),
    "gcc-O2": ("program", "6986a5640519900c"),
    "dependencies with clang-19": ("dependencies", "f418eb32679f1da1"),
    "trained (counting)": ("instrumented", "a67a3c41a835d13d"),
    "profile of trained": ("profile", "e3f3cd58f3830d1b"),
    "trained before BOLT": ("program", "d0d238621c1f1b57"),
    "BOLT's profile of trained": ("profile", "08d1c049788c146e"),
    "trained": ("program", "2c4532e7cf132b31"),
    "dependencies of all": ("dependencies", "e0e9c18c26822b90"),
    "all": ("program", "db386a8d9caf32e8"),
}


def study(**build: object) -> Study:
    return Study.model_validate(
        {
            "name": "small",
            "source": {"kind": "path", "path": "source"},
            "build": BUILD | build,
            "axes": {"compiler": ["gcc-12"]},
            "baseline": {"compiler": "gcc-12"},
            "training": {"workloads": [{"name": "learn", "command": ["{tool}", "{artefact}"]}]},
            "layouts": {"count": 2},
            "check": {"commands": [["{artefact}"]], "same_output": ["run"]},
            "workloads": [{"name": "run", "command": ["{artefact}"]}],
        }
    )


def test_stages_keep_their_keys() -> None:
    found = {
        name: replace(each, profilers=Profilers("/p", "", "/bolt", "/rt", "/m", "", "bolt-19"))
        for name, each in TOOLCHAINS.items()
    }
    place = replace(PLACE, processor="this", path="/bin", recorder_path="/r", training_sha256="t")
    asked = study(env={"A": "{cflags}"}, keep=["k"], rewrite={"compile": ["{cflags}"]})
    planned = plan_builds(asked, (GCC_O2, _TRAINED, _FLAGS), GCC_O2.name, found, place)
    assert {stage.label: (stage.kind, stage.key[:16]) for stage in planned.stages} == _STAGES


def test_checks_keep_their_keys(tmp_path: Path, cache: Cache) -> None:
    for name in ("program", "tool", "k"):
        (tmp_path / name).write_text(name)
    asked = study(keep=["k"])
    facts = BuildFacts(
        variant="gcc-O2", choices={}, compiler="", flags=(), link_flags=(), status="built",
        build_s=0.0, size_bytes=0, text_bytes=0, loadable_sha256="loadable", log_path="",
    )  # fmt: skip
    result = BuildResult(facts, tmp_path / "program", tmp_path, {"tool": tmp_path / "tool"})
    workshop = Workshop(PlainProcesses(), cache, Bubblewrap(cache, "bwrap"), SystemClock(), "/bin")
    check = Check.model_validate(asked.check)
    ground = Ground(asked, check, tmp_path, "source", tmp_path, result, workshop)
    assert check_key(ground, result)[:16] == "81e1a0e40e78a106"
