from __future__ import annotations

from pathlib import Path

from ensign.builders.request import BuildRequest
from ensign.model.study import Study
from ensign.model.variants import Variant

GCC_O2 = Variant("gcc-O2", "gcc-12", "-O2", "off")
GCC_O3 = Variant("gcc-O3", "gcc-12", "-O3", "off")
GCC_LTO = Variant("gcc-O3-lto", "gcc-12", "-O3", "full")
CLANG_O2 = Variant("clang-O2", "clang-19", "-O2", "off")
CLANG_LTO = Variant("clang-O3-lto", "clang-19", "-O3", "full")

BUILD: dict[str, object] = {
    "dependencies": [["make", "-j{jobs}", "CC={cc}", "AR={ar}", "libpart.a"]],
    "commands": [
        ["make", "-j{jobs}", "CC={cc}", "AR={ar}", "CFLAGS={cflags}", "LDFLAGS={ldflags}",
         "program"],
    ],
    "tool_commands": [["make", "CC={cc}", "LDFLAGS={ldflags}", "tool"]],
    "own_flags": ["part.c"],  # its dependency
    "artifact": "program",
    "tools": {"tool": "tool"},
}  # fmt: skip


def study(**build: object) -> Study:
    return Study.model_validate(
        {
            "name": "small",
            "layouts": "natural",
            "source": {"kind": "path", "path": "source"},
            "build": BUILD | build,
            "axes": {"compiler": ["gcc-12"]},
            "baseline": {"compiler": "gcc-12"},
            "workloads": [{"name": "run", "command": ["{artifact}"]}],
            # Builds are tested, not what these programs print or how they end.
            "check": {"same_output": []},
        }
    )


def request(folder: Path, *variants: Variant, **build: object) -> BuildRequest:
    return BuildRequest(study(**build), folder / "small.toml", variants, variants[0].name)
