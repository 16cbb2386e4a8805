"""What may make a program of Go faster: its own compiler has few words, and these. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from ensign.model.checkup import Advice
from ensign.proof.go_build import GoBuild

_NOT_MEASURED = "not measured in a study of this repository yet"


def go_advice(path: str, build: GoBuild) -> Iterator[Advice]:
    """A profile, and a target; ensign compares what `go build` made."""
    old = shlex.quote(path)
    other = shlex.quote(f"{shlex.quote(path + '.other')} ARGUMENTS")
    compare = f"ensign compare {shlex.quote(f'{old} ARGUMENTS')} {other}"
    output = f"-o {shlex.quote(path + '.other')}"
    if build.version and build.settings.get("-pgo", "off") in ("", "off"):
        yield Advice(
            "profile feedback",
            "none was used",
            "Go 1.21 or newer, and a CPU profile of its work (runtime/pprof) as default.pgo",
            _NOT_MEASURED,
            f"go build -pgo=default.pgo {output} && {compare}",
        )
    if build.settings.get("GOAMD64") == "v1":
        yield Advice(
            "target level",
            "it is for any x86-64 (GOAMD64=v1)",
            "hosts that have it",
            _NOT_MEASURED,
            f"GOAMD64=v3 go build {output} && {compare}",
        )
