"""What helps against errors of compilers and linkers. Pure."""

from __future__ import annotations

import re

# An error that is an option's: newer compilers make one of what was a warning, or `-Werror` does.
_OPTION = re.compile(r"\s*\[-W(?P<turned>error[=,](?:-W)?)?(?P<name>[a-z][\w+-]*)\]$")
_REFUSED = {
    "implicit-function-declaration": "Clang 16, GCC 14 and later refuse implicit declarations",
    "implicit-int": "Clang 16, GCC 14 and later refuse declarations without a type",
    "incompatible-function-pointer-types": "Clang 16 and later refuse such pointers to functions",
    "int-conversion": "Clang 15, GCC 14 and later refuse integers as pointers",
}
_PLAIN_ROWS = (
    (
        re.compile(r"cannot find \S*/llvm-(\d+)/\S*/libclang_rt\.profile\S*"),
        r"Clang's profile runtime is missing: Debian and Ubuntu have it in libclang-rt-\1-dev",
    ),
)


def without_option(text: str) -> str:
    """An error without the name of the option that it ends in."""
    return _OPTION.sub("", text)


def way_out_of(text: str) -> str:
    """What to do about an error, as its tool says it; empty where nothing is known."""
    for pattern, sentence in _PLAIN_ROWS:
        found = pattern.search(text)
        if found is not None:
            return found.expand(sentence)
    option = _OPTION.search(text)
    if option is None:
        return ""
    name = option["name"]
    why = _REFUSED.get(name, "this compiler refuses it by default")
    if option["turned"]:
        why = "the project makes errors of warnings (-Werror)"
    flag = f"-Wno-{name}"
    return f'{why}; compile with {flag} (in a study: build.rewrite.compile = ["{flag}"])'
