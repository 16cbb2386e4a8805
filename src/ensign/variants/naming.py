"""Readable, unique names of variants that are safe as file names. Pure."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from ensign.model.variants import OWN_COMPILER, Variant

_UNSAFE = re.compile(r"[^A-Za-z0-9._+]+")
_LONGEST_SLUG = 28
_HASH_DIGITS = 6
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_COMMIT_DIGITS = 12


def named(variants: Sequence[Variant]) -> tuple[Variant, ...]:
    """The variants with names made from their choices; those that would share one get a hash."""
    plain = [plain_name(variant) for variant in variants]
    times = Counter(plain)
    return tuple(
        replace(variant, name=name if times[name] == 1 else f"{name}-{_hash(_identity(variant))}")
        for variant, name in zip(variants, plain, strict=True)
    )


def plain_name(variant: Variant) -> str:
    """`gcc-12-O2`, `clang-19-O3-lto`, `gcc-12-O2-march-native`; long flags are cut and hashed."""
    parts: list[str] = []
    if not variant.by_project:
        parts += [_slug(PurePosixPath(variant.compiler).name), _slug(variant.optimization)]
    if variant.lto != "off":
        parts.append("lto" if variant.lto == "full" else f"lto-{_slug(variant.lto)}")
    parts += [
        _short(axis, value)
        for axis, value in variant.choices
        if axis not in ("compiler", "optimization", "lto", "flags", "revision")
    ]
    if variant.revision:
        parts.append(_revision_slug(variant.revision))
    if variant.flags:
        parts.append(_cut_slug(variant.flags))
    return "-".join(parts) or OWN_COMPILER


def _short(axis: str, value: str) -> str:
    """`pgo`, `no-plt`, `fp-fast`, `hard-debian`: the axis where the value alone says too little."""
    if axis in ("pgo", "bolt", "strip"):
        return axis
    if axis in ("interposition", "plt"):
        return f"no-{axis}"
    if axis == "dependencies":
        return "deps"
    prefix = {
        "floating_point": "fp-",
        "aliasing": "alias-",
        "alignment": "align-",
        "hardening": "hard-",
        "codegen_units": "cgu",
        "panic": "panic-",
    }.get(axis, "")
    return _slug(f"{prefix}{value}")


def _revision_slug(revision: str) -> str:
    """A branch or tag; of a full commit its first digits, as git shows them."""
    return revision[:_COMMIT_DIGITS] if _COMMIT.fullmatch(revision) else _cut_slug(revision)


def _cut_slug(text: str) -> str:
    slug = _slug(text)
    if len(slug) <= _LONGEST_SLUG:
        return slug or _hash(text)
    return f"{slug[:_LONGEST_SLUG].rstrip('-')}-{_hash(text)}"


def _slug(text: str) -> str:
    return _UNSAFE.sub("-", text).strip("-.")


def _identity(variant: Variant) -> str:
    return "\0".join(value for _, value in variant.choices)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_HASH_DIGITS]
