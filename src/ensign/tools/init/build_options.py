"""Options of a build that makes no program by itself: those with which it does, perhaps. Pure."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping

from ensign.host.regular_file import read_json
from ensign.model.study_build import SystemName

_PROGRAMS = re.compile(
    r"tool|cli$|_cli|bench|example|sample|demo|program|app(s|lication)?$|util|exec|binar|test",
    re.IGNORECASE,
)
# Such an option asks for something else besides.
_NOT_THESE = re.compile(r"install|coverage|doc|python|java|fuzz|sanit|static|shared", re.IGNORECASE)
_OFF = re.compile(r"^([A-Za-z_]\w*):BOOL=(OFF|NO|FALSE|0)$", re.MULTILINE | re.IGNORECASE)
_CONFIGURE = re.compile(r"dh_auto_configure\b[^\n]{0,200}? -- ([^\n]{0,2000})")
_OWN_ARE = ("CMAKE_BUILD_TYPE", "CMAKE_C_FLAGS", "CMAKE_CXX_FLAGS", "--buildtype", "-Dbuildtype")
_LTO = re.compile(r"lto|flags|compiler|iwyu|werror|strict|doc", re.IGNORECASE)
_MOST = 12
# A library's programs, if it has any.
OF_CARGO_LIBRARY = ("--examples",)


def of_debian_rules(text: str, system: SystemName) -> tuple[str, ...]:
    """The options that debian/rules gives the upstream build system, without levels and flags."""
    joined = re.sub(r"\\\n\s*", " ", re.sub(r"^[ \t]*#.*\n", "", text, flags=re.MULTILINE))
    options: list[str] = []
    for match in _CONFIGURE.finditer(joined):
        try:
            words = shlex.split(match[1], comments=True)
        except ValueError:
            continue
        options += [word for word in words if _is_option(word, system)]
    return tuple(dict.fromkeys(options))[:_MOST]


def _is_option(word: str, system: SystemName) -> bool:
    start = "--" if system == "autotools" else "-D"
    own = any(part in word for part in _OWN_ARE) or _LTO.search(word)
    return word.startswith(start) and "$" not in word and not own


def of_cmake_cache(text: str) -> tuple[str, ...]:
    """Switches in CMakeCache.txt that are off, and by their names make programs."""
    names = (match[1] for match in _OFF.finditer(text))
    return tuple(f"-D{name}=ON" for name in names if _makes_programs(name))[:_MOST]


def of_meson(text: bytes) -> tuple[str, ...]:
    """The same of Meson's own list of options."""
    return tuple(_of_meson(text))[:_MOST]


def _of_meson(text: bytes) -> Iterator[str]:
    try:
        options = read_json(text)
    except ValueError:
        return
    for option in options if isinstance(options, list) else ():
        if not isinstance(option, dict) or option.get("section") != "user":
            continue
        name, value = str(option.get("name", "")), option.get("value")
        if _makes_programs(name) and re.fullmatch(r"[\w.-]+", name):
            if value is False:
                yield f"-D{name}=true"
            elif value in ("disabled", "auto"):
                yield f"-D{name}=enabled"


def of_cargo(text: str) -> tuple[str, ...]:
    """The features that the programs of a Cargo.toml ask for."""
    try:
        manifest: Mapping[str, object] = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return ()
    programs = manifest.get("bin")
    wanted: dict[str, None] = {}
    for program in programs if isinstance(programs, list) else ():
        features = program.get("required-features") if isinstance(program, dict) else None
        for feature in features if isinstance(features, list) else ():
            if isinstance(feature, str) and re.fullmatch(r"[\w/+-]+", feature):
                wanted[feature] = None
    return ("--features", ",".join(wanted)) if wanted else ()


def _makes_programs(name: str) -> bool:
    return _PROGRAMS.search(name) is not None and not _NOT_THESE.search(name)
