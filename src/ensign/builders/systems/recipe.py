"""What the recipes of build systems share. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ensign.builders.systems.build_system import BUILD_FOLDER
from ensign.model.study_build import Build, Rewrite
from ensign.model.study_problems import Problem

# The recorder removes the project's own levels, and nothing else.
_LEVELS = ("-O", "-O[0-3gsz]", "-Ofast")


def build_folder(build: Build) -> str:
    """Where the build happens, relative to the source folder."""
    return build.folder if build.in_source else BUILD_FOLDER


def by_variables(build: Build) -> bool:
    """Whether the system itself passes the flags; else the recorder does."""
    return build.flags_by != "recorder"


def flags(build: Build, name: str) -> str:
    """`{cflags}` or `{ldflags}`; empty where the recorder passes them."""
    return f"{{{name}}}" if by_variables(build) else ""


def with_recipe(build: Build, clean: Sequence[list[str]], commands: Sequence[list[str]]) -> Build:
    """The study's build with these commands; its own `clean` comes first."""
    changes: dict[str, object] = {
        "clean": [*build.clean, *clean],
        "commands": list(commands),
    }
    if build.flags_by == "recorder":
        rewrite = build.rewrite
        changes["rewrite"] = Rewrite(
            compile=[*rewrite.compile, "{cflags}"],
            link=[*rewrite.link, "{ldflags}"],
            remove=[*rewrite.remove, *_LEVELS],
        )
    return build.model_copy(update=changes)


def not_for(build: Build, *keys: str) -> Iterator[Problem]:
    """A problem for each of these keys that the study gives."""
    for key in keys:
        if key in build.model_fields_set:
            yield Problem(("build", key), f"'{key}' means nothing to system '{build.system}'")


def only_by_variables(build: Build) -> Iterator[Problem]:
    """A problem where flags are to go by the environment."""
    if build.flags_by == "environment":
        text = "'flags_by': 'environment' is for system 'make' or 'autotools', "
        text += f"not for '{build.system}'"
        yield Problem(("build", "flags_by"), text)
