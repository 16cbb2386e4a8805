"""Profile-guided builds: the programs, the flags and what they print, for each family. Pure.

GCC and Clang count with atomic increments, or a threaded program's counts would not fit together.
Clang instruments its intermediate code (`-fprofile-generate`), which is what `llvm-profdata` calls
level IR. What a use of a profile complains about is shown, not turned into an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ensign.toolchains.table import Family, Kind

PROFDATA = "ensign.profdata"
FDATA = "ensign.fdata"


@dataclass(frozen=True, slots=True)
class Profilers:
    """Programs around profiles, as found here; a path is empty where there is none.

    `bolt` is where the program really lies: BOLT looks for its runtime beside that path. `perf` is
    there only where this processor's branches can be recorded.
    `identity` hashes those whose output decides the code.
    """

    profdata: str = ""
    gcov_dump: str = ""
    bolt: str = ""
    bolt_runtime: str = ""
    merge_fdata: str = ""
    perf: str = ""
    identity: str = ""


NO_PROFILERS = Profilers()


@dataclass(frozen=True, slots=True)
class ProfileCount:
    """Number of functions, and of those seen running."""

    functions: int
    profiled: int


def instrumenting(kind: Kind) -> tuple[str, ...]:
    """Flags of compiler and link for a build that counts."""
    if kind.family is Family.RUST:
        return ("-Cprofile-generate", "-Cllvm-args=-instrprof-atomic-counter-update-all")
    return ("-fprofile-generate", "-fprofile-update=atomic")


def using(kind: Kind, folder: str) -> tuple[str, ...]:
    """Flags for a build that uses the profile in `folder`.

    GCC finds its counts beside the objects, where the instrumented build had them.
    """
    if kind.family is Family.RUST:
        return (f"-Cprofile-use={folder}/{PROFDATA}",)
    if kind.family is Family.CLANG:
        return (f"-fprofile-use={folder}/{PROFDATA}",)
    kept = ("coverage-mismatch", "missing-profile")  # warnings, whatever a project makes of them
    return ("-fprofile-use", "-Wmissing-profile", *(f"-Wno-error={name}" for name in kept))


def instrumented_environment(kind: Kind, folder: str) -> tuple[tuple[str, str], ...]:
    """Variable that tells an instrumented program where its counts go."""
    if kind.llvm_major:
        return (("LLVM_PROFILE_FILE", f"{folder}/%p-%m.profraw"),)
    return (("GCOV_PREFIX", folder),)


def bolt_instrument(bolt: str, program: str, counts: str) -> tuple[str, ...]:
    """Make `program` count itself; each process writes a file whose name begins with `counts`."""
    return (
        bolt,
        program,
        "-instrument",
        f"--instrumentation-file={counts}",
        "--instrumentation-file-append-pid",
        "-o",
        f"{program}.bolt",
    )


def branch_recording(perf: str, data: str) -> tuple[str, ...]:
    """Words in front of a command whose taken branches are to be recorded."""
    return (perf, "record", "-e", "cycles:u", "-j", "any,u", "-o", data, "--")


def bolt_optimize(
    bolt: str, program: str, profile: str, alignment: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """Lay `program` out by its profile. The options are those that BOLT's own guide advises."""
    return (
        bolt,
        program,
        f"-data={profile}",
        "-reorder-blocks=ext-tsp",
        "-reorder-functions=cdsort",
        "-split-functions",
        "-split-all-cold",
        "-split-eh",
        "-icf=1",
        "-update-debug-sections",
        *alignment,
        "-o",
        f"{program}.bolt",
    )


_TOTAL = re.compile(r"^Total functions: (\d+)$", re.MULTILINE)
_SEEN = re.compile(r"maximum count \(>= 1\): (\d+)$", re.MULTILINE)
_VALUES = re.compile(r":\s+\d+:((?: \d+)+)\s*$")
_GCOV_FUNCTION = re.compile(r":FUNCTION ident=(\d+)")
# One of all is followed by its counters, those that ran stand in lines of their own.
_NAMED = re.compile(r"^(?:  (\S+):|(\S*[^\s:]))$", re.MULTILINE)
_BOLT = re.compile(r"BOLT-INFO: (\d+) out of (\d+) functions in the binary .* non-empty")
_WARNING = re.compile(
    r"\[-W(?:error=)?(missing-profile|coverage-mismatch|profile-instr-[a-z-]+|backend-plugin)\]"
)


def profdata_count(text: str) -> ProfileCount | None:
    """Read `llvm-profdata show --value-cutoff=1`; None where it says no counts."""
    total, seen = _TOTAL.search(text), _SEEN.search(text)
    if total is None or seen is None:
        return None
    return ProfileCount(int(total[1]), int(seen[1]))


def gcov_count(lines: Iterable[str]) -> ProfileCount:
    """Read `gcov-dump -l`: functions, and those of which an arc was taken."""
    ran = [taken for _, taken in gcov_functions(lines)]
    return ProfileCount(len(ran), sum(ran))


def gcov_functions(lines: Iterable[str]) -> Iterator[tuple[int, bool]]:
    """Read `gcov-dump -l`: the number of each function, and whether an arc of it was taken."""
    ident, arcs, taken = None, False, False
    for line in lines:
        if (match := _GCOV_FUNCTION.search(line)) is not None:
            if ident is not None:
                yield ident, taken
            ident, taken = int(match[1]), False
        if ":COUNTERS" in line:
            arcs = ":COUNTERS arcs" in line
            continue
        values = _VALUES.search(line) if arcs and not taken else None
        taken = taken or (values is not None and any(map(int, values[1].split())))
    if ident is not None:
        yield ident, taken


def profdata_names(text: str) -> frozenset[str]:
    """Functions that `llvm-profdata show --all-functions` or `--covered` names, without files."""
    named = (match[1] or match[2] for match in _NAMED.finditer(text))
    return frozenset(re.split("[:;]", name)[-1] for name in named)


def bolt_count(text: str) -> ProfileCount | None:
    """Read what `llvm-bolt` says of the profile it was given."""
    match = _BOLT.search(text)
    return None if match is None else ProfileCount(int(match[2]), int(match[1]))


def profile_warnings(lines: Iterable[str]) -> dict[str, int]:
    """Count the compiler's complaints about missing and outdated profiles, by their flag."""
    counts: dict[str, int] = {}
    for line in lines:
        for name in _WARNING.findall(line):
            counts[name] = counts.get(name, 0) + 1
    return dict(sorted(counts.items()))
