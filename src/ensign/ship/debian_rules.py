"""A variant as a change of `debian/rules`: what dpkg-buildflags is told by the package. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ensign.model.errors import InputError
from ensign.toolchains.table import Flags

_ASSIGNMENT = r"^(?:export[ \t]+)?{name}[ \t]*(?:[:+?]|::)?=(?:\\\n|[^\n])*"


def additions(flags: Flags, tools: Mapping[str, str]) -> dict[str, str]:
    """Variables of the package, and what each gets more; `tools` are those besides the usual."""
    defined = tuple(each for each in flags.compile if each.startswith(("-D", "-U")))
    by_name: dict[str, Sequence[str]] = {
        "DEB_CPPFLAGS_MAINT_APPEND": defined,
        "DEB_CFLAGS_MAINT_APPEND": flags.compile,
        "DEB_CXXFLAGS_MAINT_APPEND": flags.compile,
        "DEB_LDFLAGS_MAINT_APPEND": flags.link,
    }
    appended = {name: " ".join(words) for name, words in by_name.items() if words}
    return {**tools, **appended}


def with_additions(text: str, more: Mapping[str, str]) -> str:
    """The rules with these variables: each after its last assignment, else at the beginning.

    InputError where a value cannot stand in a makefile.
    """
    lines = []
    for name, value in more.items():
        if "\n" in value or "#" in value:
            raise InputError(f"'{value!a}' cannot stand in debian/rules; leave out these flags")
        escaped = value.replace("$", "$$")
        found = list(re.finditer(_ASSIGNMENT.format(name=name), text, re.MULTILINE))
        if found:
            end = found[-1].end()
            text = f"{text[:end]}\nexport {name} += {escaped}{text[end:]}"
        else:
            lines.append(f"export {name} = {escaped}\n")
    if not lines:
        return text
    head = re.match(r"(?:#[^\n]*\n)*", text)
    at = 0 if head is None else head.end()
    return f"{text[:at]}\n{''.join(lines)}{text[at:]}"
