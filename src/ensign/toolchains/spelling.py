"""Spelling of a variant's choices for each family of compilers. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from ensign.model.errors import InputError
from ensign.model.variants import Variant
from ensign.toolchains.alignment import alignment_flags, alignment_refusal
from ensign.toolchains.hardening import hardening_flags, unknown_hardening
from ensign.toolchains.rust import refusal_of_c, rust_flags, rust_refusal
from ensign.toolchains.table import Family, Flags, Kind

_LTO = {
    (Family.GCC, "full"): "-flto=auto",
    (Family.CLANG, "full"): "-flto",
    (Family.CLANG, "thin"): "-flto=thin",
}
_TARGETS = {"default": (), "generic": ("-march=x86-64", "-mtune=generic")}
_SWITCHES: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("interposition", "off"): ("-fno-semantic-interposition",),
    ("plt", "off"): ("-fno-plt",),
    ("floating_point", "strict"): ("-ffp-contract=off",),
    ("floating_point", "fma"): ("-ffp-contract=fast",),
    ("floating_point", "fast"): ("-ffast-math",),
    ("aliasing", "strict"): ("-fstrict-aliasing",),
    ("aliasing", "relaxed"): ("-fno-strict-aliasing",),
}
_ALLOCATORS = {"jemalloc": "-ljemalloc", "tcmalloc": "-ltcmalloc_minimal"}
_EVIDENCE = ("-g", "-grecord-command-line", "-Cdebuginfo=1")
# Of the targets that a study can name, those whose processors have fused multiply-add.
_WITH_FMA = ("x86-64-v3", "x86-64-v4", "native")
_LINK_ONLY = re.compile(r"-(Wl,|l|L|fuse-ld=|static|pie$|no-pie$|rdynamic|s$|B)")
_LEVEL = re.compile(r"-O\w*|-g[\w-]*")


def flags_for(kind: Kind, variant: Variant, linker_flag: str, linker_folder: str = "") -> Flags:
    """The flags of a variant, without those that depend on a profile.

    `linker_flag` selects the compiler's usual linker, or is empty; `linker_folder` is where the one
    that the variant asks for is, if the compiler would not find it. What decides the generated code
    goes to the link, too: with LTO it is generated there. The study's own `flags` come last, so
    that they overrule. Debug information is always made: it is what flags are proved from.
    InputError if `flags` has an open quote.
    """
    others = _split(variant.flags)
    if kind.family is Family.RUST:
        return rust_flags(variant, others, linker_folder)
    shared = [variant.optimization, "-g", *_recording(kind)]
    if variant.lto != "off":
        shared.append(_LTO.get((kind.family, variant.lto), f"-flto={variant.lto}"))
    shared += _target(variant.target)
    for (axis, value), flags in _SWITCHES.items():
        if getattr(variant, axis) == value:
            shared += flags
    lto = any(flag.startswith("-flto") for flag in (*shared, *others))
    aligned = alignment_flags(kind, variant.alignment, lto=lto)
    hard_compile, hard_link = hardening_flags(kind, variant.hardening)
    bolt_compile, bolt_link = _bolt(kind, variant.bolt)
    compiling = [flag for flag in others if not _LINK_ONLY.match(flag)]
    return Flags(
        (*shared, *aligned.compile, *hard_compile, *bolt_compile, *compiling),
        (
            *shared,
            *aligned.link,
            *bolt_compile,
            *_linker(variant.linker, linker_flag, linker_folder),
            *_generating(hard_compile),
            *hard_link,
            *bolt_link,
            *_allocator(variant.allocator),
            *others,
        ),
    )


def with_separate_functions(flags: Flags) -> Flags:
    """Give every function a section of its own, at an LTO link, too: code is generated there.

    rustc does that by itself, and its own flags stay as they are.
    """
    if any(flag.startswith("-C") for flag in flags.compile):
        return flags
    extra = "-ffunction-sections"
    return Flags((*flags.compile, extra), (*flags.link, extra))


def without_evidence(flags: Flags) -> Flags:
    """Flags for a project: without the debug information that only proves flags."""

    def shipped(words: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(word for word in words if word not in _EVIDENCE)

    return Flags(shipped(flags.compile), shipped(flags.link))


def _generating(flags: tuple[str, ...]) -> tuple[str, ...]:
    """Without preprocessor definitions: at an LTO link code is generated, but nothing included."""
    return tuple(flag for flag in flags if not flag.startswith(("-D", "-U")))


def refusal(kind: Kind, variant: Variant) -> str:
    """Why no such build can exist, as far as tables tell; empty where nothing speaks against it."""
    unaligned = alignment_refusal(kind, variant)
    if kind.family is Family.RUST:
        return rust_refusal(variant) or unaligned
    if variant.lto != "off" and (kind.family, variant.lto) not in _LTO:
        return f"{kind.family.value} has no {variant.lto} LTO"
    if variant.floating_point == "fma" and variant.target not in _WITH_FMA:
        return f"target '{variant.target}' has no fused multiply-add; use {', '.join(_WITH_FMA)}"
    return unaligned or unknown_hardening(kind, variant.hardening) or refusal_of_c(variant)


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise InputError(f"the flags '{text}' cannot be split: {error}") from None


def _recording(kind: Kind) -> tuple[str, ...]:
    """Makes Clang write its flags into the debug information, as GCC does of itself."""
    return ("-grecord-command-line",) if kind.family is Family.CLANG else ()


def _target(target: str) -> tuple[str, ...]:
    return _TARGETS.get(target, (f"-march={target}",))


def _linker(linker: str, usual: str, folder: str) -> tuple[str, ...]:
    if linker == "default":
        return (usual,) if usual else ()
    return (*((f"-B{folder}",) if folder else ()), f"-fuse-ld={linker}")


def _bolt(kind: Kind, bolt: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """BOLT needs relocations, and functions in one piece."""
    if bolt == "off":
        return (), ()
    whole = ("-fno-reorder-blocks-and-partition",) if kind.family is Family.GCC else ()
    return whole, ("-Wl,--emit-relocs",)


def _allocator(allocator: str) -> tuple[str, ...]:
    """Linked in front of the C library's, whether or not a symbol asks for it."""
    if allocator not in _ALLOCATORS:
        return ()
    return ("-Wl,--push-state,--no-as-needed", _ALLOCATORS[allocator], "-Wl,--pop-state")


def beside_cflags(kind: Kind, flags: Flags) -> tuple[str, ...]:
    """The link flags, for a `configure` script, whose checks and links get the compile flags, too.

    A level there would undo what a check sets (`CFLAGS=-O0`), and means nothing to a link: but to
    Clang's with LTO. GCC's takes it from the objects.
    """
    if kind.family is Family.CLANG and any(flag.startswith("-flto") for flag in flags.link):
        return flags.link
    return tuple(flag for flag in flags.link if not _LEVEL.fullmatch(flag))
