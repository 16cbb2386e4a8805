"""What may make a program faster, by what it shows: practices, each with what it takes. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ensign.model.checkup import Advice
from ensign.model.instructions import LEVELS
from ensign.proof.facts import UnitKind, compiler_of_comment
from ensign.proof.flags import effects, level_of, lto_of
from ensign.proof.identity import GoBuild
from ensign.tools.doctor.program_facts import ProgramLook, allocator_of, targets_of, uses_feedback
from ensign.tools.doctor.rust_facts import optimizes_across, uses_profile

_NOT_OPTIMIZED = ("-O0", "-Og", "")
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
    """What this machine has: compilers as names and their major versions, and other programs.

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


def advice_for(look: ProgramLook, offers: Offers) -> tuple[Advice, ...]:
    """Practices that concern the program, the first ones first."""
    if look.foreign or look.identity.kind not in ("program", "library"):
        return ()
    if look.identity.go is not None:
        return (_profile_first(look, offers), *go_advice(look.binary.path, look.identity.go))
    if look.by_rust:
        return (
            _profile_first(look, offers),
            *_no_debug(look, offers),
            *_of_cargo(look, offers),
            *_bolt(look, offers),
            *_target(look, offers),
            *_allocator(look, offers),
        )
    return (
        _profile_first(look, offers),
        *_not_optimized(look, offers),
        *_no_debug(look, offers),
        *_newer_compiler(look, offers),
        *_whole_program(look, offers),
        *_feedback(look, offers),
        *_bolt(look, offers),
        *_target(look, offers),
        *_fused(look, offers),
        *_fast_maths(look, offers),
        *_allocator(look, offers),
    )


def _worth(offers: Offers, key: str) -> str:
    return offers.worth.get(key, "not measured in a study of this repository yet")


def _axis(*axes: str) -> str:
    """The commands for what needs a build; SOURCE is the program's source."""
    asked = " ".join(f"--axis '{axis}'" for axis in axes)
    return f"ensign init SOURCE {asked} && ensign run SOURCE/ensign.toml"


def _profile_first(look: ProgramLook, offers: Offers) -> Advice:
    program = look.binary.path if look.identity.kind == "program" else "PROGRAM"
    command = shlex.quote(f"{shlex.quote(program)} ARGUMENTS")
    price = f"ensign compare --details {command} {command}"
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
    return Advice("profile first", text, takes, "says what can be gained at all", price)


def _of_cargo(look: ProgramLook, offers: Offers) -> Iterator[Advice]:
    """By what was recorded of rustc, which writes nothing down itself."""
    crates, unknown = look.crates, "rustc writes no flags down ('ensign record' would)"
    plain = [each.name for each in crates if each.value("opt-level") in ("0", "")]
    if plain:
        text = f"{len(plain)} of {len(crates)} crates were compiled without it"
        takes = "cargo build --release, or an opt-level in the profile of Cargo.toml"
        yield Advice("optimize", text, takes, _worth(offers, "O0"), _axis(_LEVELS))
    elif look.unoptimized:
        takes = "cargo build --release"
        yield Advice("optimize", _LOOKS, takes, _worth(offers, "O0"), _axis(_LEVELS))
    if not optimizes_across(crates):
        text = "rustc did none across crates"
        text = text if crates else f"whether it was done across crates is unknown: {unknown}"
        takes = 'lto = "fat" in the release profile of Cargo.toml'
        price = _axis('lto = ["off", "full"]')
        yield Advice("whole-program optimization", text, takes, _worth(offers, "lto"), price)
    if not uses_profile(crates):
        text = "no crate was compiled with one"
        text = text if crates else f"whether one was used is unknown: {unknown}"
        takes = "a training workload, and llvm-profdata of the LLVM that rustc is made of"
        price = _axis('pgo = ["off", "on"]')
        yield Advice("profile feedback", text, takes, _worth(offers, "pgo"), price)


def _not_optimized(look: ProgramLook, offers: Offers) -> Iterator[Advice]:
    bad = sum((level_of(words) or "") in _NOT_OPTIMIZED for words in look.recorded)
    if look.unoptimized:
        yield Advice("optimize", _LOOKS, "a flag", _worth(offers, "O0"), _axis(_LEVELS))
    elif bad:
        text = f"{bad} of {len(look.recorded)} units whose flags are known were not optimized"
        price = _axis(_LEVELS)
        yield Advice("optimize", text, "a flag", _worth(offers, "O0"), price)
    elif look.recorded and not any(level_of(words) in ("-O3", "-Ofast") for words in look.recorded):
        price = _axis('optimization = ["-O2", "-O3"]')
        yield Advice("-O3", "no unit has it", "a flag", _worth(offers, "O3"), price)


def _no_debug(look: ProgramLook, offers: Offers) -> Iterator[Advice]:
    if not look.identity.has_debug and not look.binary.debug_elsewhere:
        names = "lines" if look.identity.has_symbols else "functions and lines"
        text = (
            f"it has no debug information: neither profiles nor this command can name its {names}"
        )
        takes = "-g, and strip --only-keep-debug for what is shipped"
        yield Advice("always -g", text, takes, _worth(offers, "g"), "none needed: it adds no code")


def _newer_compiler(look: ProgramLook, offers: Offers) -> Iterator[Advice]:
    named = {unit.compiler for unit in look.compiled}
    made = "made it" if named else "made parts of it"
    named = named or set(filter(None, map(compiler_of_comment, look.binary.comments)))
    # Whatever made the program: the C library's start files are GCC's.
    families = [("Clang", "clang")] if any(map(_CLANG.match, named)) else [("GCC", "gcc")]
    for family, program in families:
        versions = [
            int(match[1]) for name in named if (match := re.match(rf"{family} (\d+)", name))
        ]
        here = {name: v for name, v in offers.compilers.items() if name.startswith(program)}
        if not versions or not here:
            continue
        newest, old = max(here, key=lambda name: here[name]), max(versions)
        if here[newest] > old:
            before = f"{program}-{old}"
            text = f"{family} {old} {made}, and {newest} is here"
            takes = (
                "nothing more" if before in here else f"{before}, to compare with: it is missing"
            )
            price = _axis(f'compiler = ["{before}", "{newest}"]')
            yield Advice("newer compiler", text, takes, _worth(offers, "compiler"), price)


def _whole_program(look: ProgramLook, offers: Offers) -> Iterator[Advice]:
    done = any(unit.kind is UnitKind.LTRANS for unit in look.binary.units) or any(
        lto_of(words) for words in look.recorded
    )
    if done:
        return
    known = "no unit was compiled for it" if look.recorded else "whether it was done is unknown"
    takes = "-flto at compilation and link; gcc-ar or llvm-ar for archives"
    price = _axis('lto = ["off", "full"]')
    yield Advice("whole-program optimization", known, takes, _worth(offers, "lto"), price)


def _feedback(look: ProgramLook, offers: Offers) -> Iterator[Advice]:
    if any(map(uses_feedback, look.recorded)):
        return
    text = "no unit used one" if look.recorded else "whether one was used is unknown"
    found = look.instructions
    if found is not None and found.read:
        share = found.branches / found.read
        text += (
            f"; {share:.0%} of its instructions are conditional branches (the more there are, the "
            "more a profile has to say)"
        )
    takes = "a training workload"
    if not any(name.startswith("llvm-profdata") for name in offers.programs):
        takes += "; for Clang llvm-profdata, which is missing here"
    yield Advice(
        "profile feedback", text, takes, _worth(offers, "pgo"), _axis('pgo = ["off", "on"]')
    )


def _bolt(look: ProgramLook, offers: Offers) -> Iterator[Advice]:
    if look.binary.bolted or look.identity.machine not in ("x86-64", "AArch64"):
        return
    there = any(name.startswith("llvm-bolt") for name in offers.programs)
    takes = "a training workload, and -Wl,--emit-relocs at the link"
    takes += "" if there else "; llvm-bolt, which is missing here"
    yield Advice(
        "BOLT",
        "there is no trace of it",
        takes,
        _worth(offers, "bolt"),
        _axis('bolt = ["off", "on"]'),
    )


def _target(look: ProgramLook, offers: Offers) -> Iterator[Advice]:
    named = targets_of(look)
    if look.identity.machine != "x86-64" or not offers.levels:
        return
    if look.recorded and not any(named[each] for each in _BASE_TARGETS):
        return
    level = offers.levels[0]
    text = "which target it was compiled for is unknown"
    if look.recorded:
        text = "its units are for any x86-64"
    takes = f"hosts that have it: this one runs {level}{_beyond(look, level)}"
    price = _axis(f'target = ["default", "{level}"]')
    yield Advice("target level", text, takes, _worth(offers, "target"), price)


def _beyond(look: ProgramLook, level: str) -> str:
    """What the code asks for that the level does not have."""
    lacking = [each for each in look.asked if each.name not in LEVELS[level]]
    if not lacking:
        return ""
    said = ", ".join(f"{each.name} ({each.where})" for each in lacking[:_SOME])
    said += f" and {len(lacking) - _SOME} more" if len(lacking) > _SOME else ""
    flags = " ".join(dict.fromkeys(each.flag for each in lacking[:_SOME]))
    return (
        f"; no level of x86-64 up to it has what the code asks for besides: {said}, which {flags} "
        "would allow on hosts that have it"
    )


def _fused(look: ProgramLook, offers: Offers) -> Iterator[Advice]:
    found = look.instructions
    if found is None or look.identity.machine != "x86-64":
        return
    if found.pairs < _FEW_PAIRS or found.fused:
        return
    where = " in the pieces read" if found.partial else ""
    text = f"{found.pairs} multiplications{where} are followed by an addition, and none is fused"
    text += " there" if where else ""
    capable = "x86-64-v3" in offers.levels
    takes = "the flag and a target that has it (x86-64-v3); results change in the last digit"
    takes += "" if capable else "; this processor has none"
    price = _axis('floating_point = ["strict", "fma"]', 'target = ["x86-64-v3"]')
    yield Advice("fused multiply-add", text, takes, _worth(offers, "fma"), price)


def _fast_maths(look: ProgramLook, offers: Offers) -> Iterator[Advice]:
    found = look.instructions
    already = any(effects(words).get("fast-math", "off") != "off" for words in look.recorded)
    if found is None or found.pairs + found.fused < _FEW_PAIRS or already:
        return
    text = (
        "it computes with floating point; fast maths reorders sums and believes in neither NaN nor "
        "infinity, so that results change"
    )
    price = _axis('floating_point = ["default", "fast"]')
    yield Advice("fast maths", text, "a check of its output", _worth(offers, "fast"), price)


def _allocator(look: ProgramLook, offers: Offers) -> Iterator[Advice]:
    if allocator_of(look)[0] != "libc" or look.identity.kind != "program":
        return
    if look.identity.machine != "x86-64":  # a library of the same kind would be needed
        return
    command = f"{shlex.quote(look.binary.path)} ARGUMENTS"
    if not offers.allocators:
        takes = "libjemalloc2 or libtcmalloc-minimal4, which are missing here"
        path = "/PATH/libjemalloc.so.2"
    else:
        name, path = next(iter(offers.allocators.items()))
        takes = f"{name} is here"
    other = shlex.quote(f"env LD_PRELOAD={path} {command}")
    price = f"ensign compare {shlex.quote(command)} {other}"
    text = "it takes malloc from the C library"
    yield Advice("another allocator", text, takes, _worth(offers, "allocator"), price)


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
