"""Hardening: what each preset and each single option is called. Pure.

`debian` is what dpkg-buildflags of Debian 12 adds by default (its PIE is the compiler's own).
`openssf` are the options of the OpenSSF's "Compiler Options Hardening Guide for C and C++" that
change what is generated, each where the compiler knows it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ensign.toolchains.table import Family, Flags, Kind

# What makes no sense for shared libraries.
POSITION_OF_PROGRAMS = frozenset(
    ("-fPIE", "-fpie", "-fno-pie", "-fno-PIE", "-pie", "-no-pie", "-static-pie")
)


@dataclass(frozen=True, slots=True)
class Option:
    """Flags of one protection, and since which version each family knows them."""

    compile: tuple[str, ...] = ()
    link: tuple[str, ...] = ()
    gcc: int = 0
    clang: int = 0

    def known_to(self, kind: Kind) -> bool:
        """True if this compiler has it."""
        return kind.version[0] >= (self.gcc if kind.family is Family.GCC else self.clang)


def _fortify(level: int) -> Option:
    return Option(("-U_FORTIFY_SOURCE", f"-D_FORTIFY_SOURCE={level}"))


_CANARY = Option(("-fstack-protector-strong",))
_STACK_CLASH = Option(("-fstack-clash-protection",), clang=11)
_CET = Option(("-fcf-protection=full",))
_RELRO = Option(link=("-Wl,-z,relro",))
_BINDNOW = Option(link=("-Wl,-z,relro", "-Wl,-z,now"))
_PIE = Option(("-fPIE",), ("-pie",))
_AUTO_INIT = Option(("-ftrivial-auto-var-init=zero",), gcc=12, clang=16)

_SINGLE = {
    "pie": _PIE,
    "relro": _RELRO,
    "bindnow": _BINDNOW,
    "canary": _CANARY,
    "fortify": _fortify(2),
    "stack-clash": _STACK_CLASH,
    "cet": _CET,
    "auto-init": _AUTO_INIT,
}
_PRESETS = {
    "default": (),
    "none": (
        Option(("-fno-stack-protector",)),
        Option(("-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=0")),
        Option(("-fno-stack-clash-protection",), clang=11),
        Option(("-fcf-protection=none",)),
        Option(("-fno-pie",), ("-no-pie",)),
        Option(link=("-Wl,-z,norelro", "-Wl,-z,lazy")),
    ),
    "debian": (_CANARY, _fortify(2), _RELRO),
    "openssf": (
        _CANARY,
        _fortify(3),
        _STACK_CLASH,
        _CET,
        _PIE,
        _BINDNOW,
        Option(link=("-Wl,-z,noexecstack",)),
        Option(("-D_GLIBCXX_ASSERTIONS",)),
        Option(("-fstrict-flex-arrays=3",), gcc=13, clang=16),
        Option(("-fno-delete-null-pointer-checks",)),
        Option(("-fno-strict-overflow",)),
        Option(("-fno-strict-aliasing",)),
        _AUTO_INIT,
    ),
}


# What dpkg-dev has for packages that make libraries, too: GCC itself takes the last of -fPIC and
# -fPIE, and of -shared and -pie.
_BY_ITSELF = ("-fPIE", "-pie")
_SPECS = {
    "-fPIE": "pie-compile",
    "-pie": "pie-link",
    "-fno-pie": "no-pie-compile",
    "-no-pie": "no-pie-link",
}


def beside_libraries(kind: Kind, flags: Flags) -> Flags:
    """The same for a Debian package, whose flags its shared libraries get as well.

    GCC is told by dpkg's specs that programs alone are (not) to be position-independent. Clang has
    none; it makes such programs by itself, and what makes others stays as it is.
    """

    def told(word: str) -> tuple[str, ...]:
        if word not in _SPECS:
            return (word,)
        if kind.family is Family.GCC:
            return (f"-specs=/usr/share/dpkg/{_SPECS[word]}.specs",)
        return () if word in _BY_ITSELF else (word,)

    compiling, linking = (
        tuple(flag for word in words for flag in told(word))
        for words in (flags.compile, flags.link)
    )
    return Flags(compiling, linking)


def options(hardening: str) -> tuple[Option, ...]:
    """The protections of a preset, or the one option of that name. KeyError for neither."""
    return _PRESETS[hardening] if hardening in _PRESETS else (_SINGLE[hardening],)


def hardening_flags(kind: Kind, hardening: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Flags at compilation and at the link, without those that this compiler does not know."""
    known = [option for option in options(hardening) if option.known_to(kind)]
    compiling = tuple(flag for option in known for flag in option.compile)
    return compiling, tuple(flag for option in known for flag in option.link)


def unknown_hardening(kind: Kind, hardening: str) -> str:
    """Why this compiler does not have a single option; empty if it has, or for presets."""
    option = _SINGLE.get(hardening)
    if option is None or option.known_to(kind):
        return ""
    return f"{' '.join(option.compile)} needs {kind.family.value} {_since(kind, option)}"


def _since(kind: Kind, option: Option) -> int:
    return option.gcc if kind.family is Family.GCC else option.clang
