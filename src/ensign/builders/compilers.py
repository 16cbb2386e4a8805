"""Which compilers a study's build can be made with at all. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ensign.model.study import Study
from ensign.model.variants import Variant
from ensign.toolchains.find import Toolchain
from ensign.toolchains.spelling import refusal
from ensign.toolchains.table import Family

_CARGO = "cargo"


def mixture(toolchains: Iterable[Toolchain]) -> str:
    """Why these compilers cannot be on one axis; empty where they can.

    No source is one that rustc and a compiler of C both build, and a variant names one of them.
    """
    rust: list[str] = []
    others: list[str] = []
    for each in toolchains:
        (rust if each.kind.family is Family.RUST else others).append(each.name)
    if not rust or not others:
        return ""
    return (
        f"'compiler' has {rust[0]} and {others[0]}: no program is built by either of them; "
        "compare the two programs as they are (ensign compare), or write a study for each"
    )


def refusal_of_build(study: Study, toolchain: Toolchain, variant: Variant) -> str:
    """Why this study's build of a variant cannot exist; empty where nothing speaks against it."""
    build = study.build
    told = variant.allocator in build.allocators  # by a word of the project's own
    asked = replace(variant, allocator="default") if told else variant
    if said := refusal(toolchain.kind, asked):
        return said
    rust = toolchain.kind.family is Family.RUST
    if rust and build.system not in (None, _CARGO):
        return f"system '{build.system}' builds with a compiler of C, not with {toolchain.name}"
    if not rust and build.system == _CARGO:
        return f"system 'cargo' builds with rustc, not with {toolchain.name}"
    if rust and build.system == _CARGO and not toolchain.cargo:
        return f"there is no cargo for {toolchain.name}; run 'apt-get install cargo'"
    return ""
