"""Practices that may make a program faster, by what it shows, with what each takes. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ensign.model.checkup import Advice
from ensign.model.instructions import LEVELS
from ensign.proof.facts import UnitKind, compiler_of_comment
from ensign.proof.flags import effects, level_of, lto_of
from ensign.tools.doctor.program_facts import (
    ProgramLook,
    allocator_of,
    optimizes_across,
    targets_of,
    uses_feedback,
    uses_profile,
)

_NOT_OPTIMIZED = ("-O0", "-Og", "")
_LTO = 'lto = ["off", "full"]'
_PGO = 'pgo = ["off", "on"]'
_UNRECORDED = "rustc writes no flags down ('ensign record' would)"
_LEVELS = 'optimization = ["-O0", "-O2", "-O3"]'
_LOOKS = "by its code it was not, or parts of it"
_SOME = 4

_FEW_PAIRS = 20
_MOSTLY = 0.5
_CLANG = re.compile(r"Clang \d")
_BASE_TARGETS = ("the compiler's default", "x86-64", "generic")
_NOT_MEASURED = "not measured in a study of this repository yet"


@dataclass(frozen=True, slots=True)
class Offers:
    """Tools of this machine: compilers as names and major versions, and other programs.

    `allocators` are libraries by the allocator's name; `levels` the levels of x86-64 that its
    processor runs. `worth` says by practice what the studies came to. `user_share` is that of a
    running process' CPU time.
    """

    compilers: Mapping[str, int] = field(default_factory=dict)
    programs: frozenset[str] = frozenset()
    allocators: Mapping[str, str] = field(default_factory=dict)
    levels: tuple[str, ...] = ()
    worth: Mapping[str, str] = field(default_factory=dict)
    user_share: float | None = None


@dataclass(frozen=True, slots=True)
class _Reason:
    """Why a practice concerns a program, and what it takes here.

    What measures it is a study with these `axes`, or else the commands of `price`.
    """

    text: str
    takes: str
    axes: tuple[str, ...] = ()
    price: str = ""


@dataclass(frozen=True, slots=True)
class _Practice:
    """A row: `worth` is its key among what the studies came to, or a sentence of its own.

    `reason` is None where the practice does not concern a program.
    """

    name: str
    worth: str
    reason: Callable[[ProgramLook, Offers], _Reason | None]


def advice_for(look: ProgramLook, offers: Offers) -> tuple[Advice, ...]:
    """Practices that concern the program, the first ones first."""
    if look.foreign or look.identity.kind not in ("program", "library"):
        return ()
    rows = _GO if look.identity.go is not None else _RUST if look.by_rust else _C
    return tuple(_advice(rows, look, offers))


def _advice(rows: Sequence[_Practice], look: ProgramLook, offers: Offers) -> Iterator[Advice]:
    for row in rows:
        reason = row.reason(look, offers)
        if reason is not None:
            worth = row.worth if " " in row.worth else offers.worth.get(row.worth, _NOT_MEASURED)
            price = reason.price or _study_of(reason.axes)
            yield Advice(row.name, reason.text, reason.takes, worth, price)


def _study_of(axes: Sequence[str]) -> str:
    """The commands for what needs a build; SOURCE is the program's source."""
    asked = " ".join(f"--axis '{axis}'" for axis in axes)
    return f"ensign init SOURCE {asked} && ensign run SOURCE/ensign.toml"


def _profile_first(look: ProgramLook, offers: Offers) -> _Reason:
    program = look.binary.path if look.identity.kind == "program" else "PROGRAM"
    command = shlex.quote(f"{shlex.quote(program)} ARGUMENTS")
    share = offers.user_share
    if share is None:
        text = "builds change user time alone; 'ensign doctor PID' of a running one says its share"
    elif share < _MOSTLY:
        text = (
            f"only {share:.0%} of the CPU time of this process is user time: system calls are the "
            "rest, which no flag of the program reaches"
        )
    else:
        text = f"{share:.0%} of the CPU time of this process is user time, which builds can change"
    takes = "perf is there" if "perf" in offers.programs else "perf would show where (linux-perf)"
    return _Reason(text, takes, price=f"ensign compare --details {command} {command}")


def _unoptimized_crates(look: ProgramLook, offers: Offers) -> _Reason | None:
    del offers
    plain = sum(crate.value("opt-level") in ("0", "") for crate in look.crates)
    if plain:
        takes = "cargo build --release, or an opt-level in the profile of Cargo.toml"
        text = f"{plain} of {len(look.crates)} crates were compiled without it"
        return _Reason(text, takes, (_LEVELS,))
    return _Reason(_LOOKS, "cargo build --release", (_LEVELS,)) if look.unoptimized else None


def _across_crates(look: ProgramLook, offers: Offers) -> _Reason | None:
    del offers
    if optimizes_across(look.crates):
        return None
    unknown = f"whether it was done across crates is unknown: {_UNRECORDED}"
    text = "rustc did none across crates" if look.crates else unknown
    return _Reason(text, 'lto = "fat" in the release profile of Cargo.toml', (_LTO,))


def _feedback_of_crates(look: ProgramLook, offers: Offers) -> _Reason | None:
    del offers
    if uses_profile(look.crates):
        return None
    unknown = f"whether one was used is unknown: {_UNRECORDED}"
    text = "no crate was compiled with one" if look.crates else unknown
    takes = "a training workload, and llvm-profdata of the LLVM that rustc is made of"
    return _Reason(text, takes, (_PGO,))


def _unoptimized_units(look: ProgramLook) -> int:
    return sum((level_of(words) or "") in _NOT_OPTIMIZED for words in look.recorded)


def _not_optimized(look: ProgramLook, offers: Offers) -> _Reason | None:
    del offers
    bad = _unoptimized_units(look)
    if look.unoptimized:
        return _Reason(_LOOKS, "a flag", (_LEVELS,))
    text = f"{bad} of {len(look.recorded)} units whose flags are known were not optimized"
    return _Reason(text, "a flag", (_LEVELS,)) if bad else None


def _not_o3(look: ProgramLook, offers: Offers) -> _Reason | None:
    del offers
    has = any(level_of(words) in ("-O3", "-Ofast") for words in look.recorded)
    if not look.recorded or has or look.unoptimized or _unoptimized_units(look):
        return None
    return _Reason("no unit has it", "a flag", ('optimization = ["-O2", "-O3"]',))


def _no_debug(look: ProgramLook, offers: Offers) -> _Reason | None:
    del offers
    if look.identity.has_debug or look.binary.debug_elsewhere:
        return None
    names = "lines" if look.identity.has_symbols else "functions and lines"
    text = f"it has no debug information: neither profiles nor this command can name its {names}"
    takes = "-g, and strip --only-keep-debug for what is shipped"
    return _Reason(text, takes, price="none needed: it adds no code")


def _newer_compiler(look: ProgramLook, offers: Offers) -> _Reason | None:
    named = {unit.compiler for unit in look.compiled}
    made = "made it" if named else "made parts of it"
    named = named or set(filter(None, map(compiler_of_comment, look.binary.comments)))
    # Whatever made the program: the C library's start files are GCC's.
    by_clang = any(map(_CLANG.match, named))
    family, program = ("Clang", "clang") if by_clang else ("GCC", "gcc")
    matches = (re.match(rf"{family} (\d+)", name) for name in named)
    versions = [int(match[1]) for match in matches if match]
    here = {name: v for name, v in offers.compilers.items() if name.startswith(program)}
    newest = max(here, key=lambda name: here[name], default="")
    if not versions or not here or here[newest] <= max(versions):
        return None
    before = f"{program}-{max(versions)}"
    text = f"{family} {max(versions)} {made}, and {newest} is here"
    takes = "nothing more" if before in here else f"{before}, to compare with: it is missing"
    return _Reason(text, takes, (f'compiler = ["{before}", "{newest}"]',))


def _whole_program(look: ProgramLook, offers: Offers) -> _Reason | None:
    del offers
    generated = any(unit.kind is UnitKind.LTRANS for unit in look.binary.units)
    if generated or any(lto_of(words) for words in look.recorded):
        return None
    text = "no unit was compiled for it" if look.recorded else "whether it was done is unknown"
    return _Reason(text, "-flto at compilation and link; gcc-ar or llvm-ar for archives", (_LTO,))


def _feedback(look: ProgramLook, offers: Offers) -> _Reason | None:
    if any(map(uses_feedback, look.recorded)):
        return None
    text = "no unit used one" if look.recorded else "whether one was used is unknown"
    takes = "a training workload"
    if not any(name.startswith("llvm-profdata") for name in offers.programs):
        takes += "; for Clang llvm-profdata, which is missing here"
    return _Reason(text, takes, (_PGO,))


def _bolt(look: ProgramLook, offers: Offers) -> _Reason | None:
    if look.binary.bolted or look.identity.machine not in ("x86-64", "AArch64"):
        return None
    there = any(name.startswith("llvm-bolt") for name in offers.programs)
    takes = "a training workload, and -Wl,--emit-relocs at the link"
    takes += "" if there else "; llvm-bolt, which is missing here"
    return _Reason("there is no trace of it", takes, ('bolt = ["off", "on"]',))


def _target(look: ProgramLook, offers: Offers) -> _Reason | None:
    named = targets_of(look)
    if look.identity.machine != "x86-64" or not offers.levels:
        return None
    if look.recorded and not any(named[base_target] for base_target in _BASE_TARGETS):
        return None
    level = offers.levels[0]
    unknown = "which target it was compiled for is unknown"
    return _Reason(
        "its units are for any x86-64" if look.recorded else unknown,
        f"hosts that have it: this one runs {level}{_beyond(look, level)}",
        (f'target = ["default", "{level}"]',),
    )


def _beyond(look: ProgramLook, level: str) -> str:
    """Instructions that the code asks for and the level does not have."""
    lacking = [asked_set for asked_set in look.asked if asked_set.name not in LEVELS[level]]
    if not lacking:
        return ""
    text = ", ".join(f"{asked_set.name} ({asked_set.where})" for asked_set in lacking[:_SOME])
    text += f" and {len(lacking) - _SOME} more" if len(lacking) > _SOME else ""
    flags = " ".join(dict.fromkeys(asked_set.flag for asked_set in lacking[:_SOME]))
    return (
        f"; no level of x86-64 up to it has what the code asks for besides: {text}, which {flags} "
        "would allow on hosts that have it"
    )


def _fused(look: ProgramLook, offers: Offers) -> _Reason | None:
    instructions = look.instructions
    if instructions is None or look.identity.machine != "x86-64":
        return None
    if instructions.pairs < _FEW_PAIRS or instructions.fused:
        return None
    where, there = (" in the pieces read", " there") if instructions.partial else ("", "")
    pairs = f"{instructions.pairs} multiplications{where}"
    text = f"{pairs} are followed by an addition, and none is fused"
    takes = "the flag and a target that has it (x86-64-v3); results change in the last digit"
    takes += "" if "x86-64-v3" in offers.levels else "; this processor has none"
    axes = ('floating_point = ["strict", "fma"]', 'target = ["x86-64-v3"]')
    return _Reason(text + there, takes, axes)


def _fast_maths(look: ProgramLook, offers: Offers) -> _Reason | None:
    del offers
    instructions = look.instructions
    already = any(effects(words).get("fast-math", "off") != "off" for words in look.recorded)
    if instructions is None or instructions.pairs + instructions.fused < _FEW_PAIRS or already:
        return None
    text = (
        "it computes with floating point; fast maths reorders sums and believes in neither NaN nor "
        "infinity, so that results change"
    )
    return _Reason(text, "a check of its output", ('floating_point = ["default", "fast"]',))


def _allocator(look: ProgramLook, offers: Offers) -> _Reason | None:
    if allocator_of(look)[0] != "libc" or look.identity.kind != "program":
        return None
    if look.identity.machine != "x86-64":  # a library of the same kind would be needed
        return None
    command = f"{shlex.quote(look.binary.path)} ARGUMENTS"
    name, path = next(iter(offers.allocators.items()), ("", "/PATH/libjemalloc.so.2"))
    missing = "libjemalloc2 or libtcmalloc-minimal4, which are missing here"
    other = shlex.quote(f"env LD_PRELOAD={path} {command}")
    return _Reason(
        "it takes malloc from the C library",
        f"{name} is here" if name else missing,
        price=f"ensign compare {shlex.quote(command)} {other}",
    )


def _go_feedback(look: ProgramLook, offers: Offers) -> _Reason | None:
    del offers
    build = look.identity.go
    if build is None or not build.version or build.settings.get("-pgo", "") not in ("", "off"):
        return None
    takes = "Go 1.21 or newer, and a CPU profile of its work (runtime/pprof) as default.pgo"
    price = _go_build(look, "go build -pgo=default.pgo")
    return _Reason("none was used", takes, price=price)


def _go_target(look: ProgramLook, offers: Offers) -> _Reason | None:
    del offers
    if look.identity.go is None or look.identity.go.settings.get("GOAMD64") != "v1":
        return None
    price = _go_build(look, "GOAMD64=v3 go build")
    return _Reason("it is for any x86-64 (GOAMD64=v1)", "hosts that have it", price=price)


def _go_build(look: ProgramLook, build: str) -> str:
    """Ensign compares what `go build` made."""
    path = look.binary.path
    old, other = (
        shlex.quote(f"{shlex.quote(program)} ARGUMENTS") for program in (path, f"{path}.other")
    )
    return f"{build} -o {shlex.quote(f'{path}.other')} && ensign compare {old} {other}"


_PROFILE_FIRST = _Practice("profile first", "says what can be gained at all", _profile_first)
_DEBUG = _Practice("always -g", "g", _no_debug)
_FOR_ALL = (
    _Practice("BOLT", "bolt", _bolt),
    _Practice("target level", "target", _target),
)
_ALLOCATOR = _Practice("another allocator", "allocator", _allocator)
_RUST = (
    _PROFILE_FIRST,
    _DEBUG,
    _Practice("optimize", "O0", _unoptimized_crates),
    _Practice("whole-program optimization", "lto", _across_crates),
    _Practice("profile feedback", "pgo", _feedback_of_crates),
    *_FOR_ALL,
    _ALLOCATOR,
)
_C = (
    _PROFILE_FIRST,
    _Practice("optimize", "O0", _not_optimized),
    _Practice("-O3", "O3", _not_o3),
    _DEBUG,
    _Practice("newer compiler", "compiler", _newer_compiler),
    _Practice("whole-program optimization", "lto", _whole_program),
    _Practice("profile feedback", "pgo", _feedback),
    *_FOR_ALL,
    _Practice("fused multiply-add", "fma", _fused),
    _Practice("fast maths", "fast", _fast_maths),
    _ALLOCATOR,
)
_GO = (
    _PROFILE_FIRST,
    _Practice("profile feedback", _NOT_MEASURED, _go_feedback),
    _Practice("target level", _NOT_MEASURED, _go_target),
)
