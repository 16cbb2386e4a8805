"""Keys of the cache, as they were: another one makes every build in users' caches anew.

A change here is right where what is built, or checked, changes; then `_SCHEMA` changes with it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from builders.test_plan import PLACE, TOOLCHAINS
from ensign.builders.build_context import BuildContext
from ensign.builders.build_results import BuildResult
from ensign.builders.check_context import CheckContext, check_key
from ensign.builders.plan import plan_builds
from ensign.builders.sandboxes import Bubblewrap
from ensign.host.cache import Cache
from ensign.host.clock import SystemClock
from ensign.host.confined_view import ConfinementRequest
from ensign.host.confinement_probe import Confinement
from ensign.model.builds import BuildFacts, BuildStatus
from ensign.model.study import Study
from ensign.model.study_build import CheckSection
from ensign.toolchains.profiling import Profilers
from real_processes import PlainProcesses
from small_studies import BUILD, CLANG_O2, GCC_LTO, GCC_O2

_TRAINED = replace(CLANG_O2, name="trained", pgo="on", bolt="on", strip="yes")
_FLAGS = replace(GCC_LTO, name="all", dependencies="flags", target="native")
_STAGES = {
    "dependencies with gcc-12": ("dependencies", "811ca63d496ea4f2"),
    "gcc-O2": ("program", "bbaffc4a42eee506"),
    "dependencies with clang-19": ("dependencies", "fb874e9d52129491"),
    "trained (instrumented)": ("instrumented", "d83361378e679375"),
    "profile of trained": ("profile", "18d197790f1f3a58"),
    "trained before BOLT": ("program", "544b4af5ba5ecec5"),
    "BOLT's profile of trained": ("profile", "9b54a5466771d8e6"),
    "trained": ("program", "08d8a9cead848909"),
    "dependencies of all": ("dependencies", "1f8c86a5f6879066"),
    "all": ("program", "8d008148620f1131"),
}


def study(**build: object) -> Study:
    return Study.model_validate(
        {
            "name": "small",
            "source": {"kind": "path", "path": "source"},
            "build": BUILD | build,
            "axes": {"compiler": ["gcc-12"]},
            "baseline": {"compiler": "gcc-12"},
            "training": {"workloads": [{"name": "learn", "command": ["{tool}", "{artifact}"]}]},
            "layouts": {"count": 2},
            "check": {"commands": [["{artifact}"]], "same_output": ["run"]},
            "workloads": [{"name": "run", "command": ["{artifact}"]}],
        }
    )


def test_stages_keep_their_keys() -> None:
    found = {
        name: replace(each, profilers=Profilers("/p", "", "/bolt", "/rt", "/m", "", "bolt-19"))
        for name, each in TOOLCHAINS.items()
    }
    place = replace(PLACE, processor="this", path="/bin", recorder_path="/r", training_sha256="t")
    asked = study(env={"A": "{cflags}"}, runtime_files=["k"], rewrite={"compile": ["{cflags}"]})
    planned = plan_builds(asked, (GCC_O2, _TRAINED, _FLAGS), GCC_O2.name, found, place)
    assert {stage.label: (stage.kind, stage.key[:16]) for stage in planned.stages} == _STAGES


def test_checks_keep_their_keys(tmp_path: Path, cache: Cache) -> None:
    for name in ("program", "tool", "k"):
        (tmp_path / name).write_text(name)
    asked = study(runtime_files=["k"])
    facts = BuildFacts(
        variant="gcc-O2", choices=(), compiler="", flags=(), link_flags=(),
        status=BuildStatus.BUILT,
        build_s=0.0, size_bytes=0, text_bytes=0, loadable_sha256="loadable", log_path="",
    )  # fmt: skip
    result = BuildResult(facts, tmp_path / "program", tmp_path, {"tool": tmp_path / "tool"})
    sandboxes = Bubblewrap(cache, Confinement("bwrap"), ConfinementRequest("/bin"))
    build_context = BuildContext(PlainProcesses(), cache, sandboxes, SystemClock(), "/bin")
    check = CheckSection.model_validate(asked.check)
    context = CheckContext(asked, check, tmp_path, "source", tmp_path, result, build_context)
    assert check_key(context, result)[:16] == "c849427d868259d8"
