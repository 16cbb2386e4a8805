"""A plan as text, for any width: what will be built and raced, how long, how much disk."""

from __future__ import annotations

import textwrap

from ensign.model.expectation import Expectation, PlannedVariant
from ensign.model.units import format_duration, format_size

_INDENT = "    "


def plan(expected: Expectation, width: int = 80) -> str:
    """The whole plan; nothing in it is measured, it is what was asked for and what is expected."""
    lines = [f"{expected.title or expected.name}", ""]
    lines += _variants(expected.variants, width)
    lines += ["", f"{len(expected.workloads)} workloads, {expected.sweeps} sweeps of all of them:"]
    for name, command in expected.workloads:
        lines += _wrapped(f"  {name}: {command}", width)
    lines += [""]
    for variant, why in expected.left_out:
        lines += _wrapped(f"Left out: {variant}: {why}", width)
    for sentence in (_build(expected), _race(expected), _cpus(expected)):
        lines += _wrapped(sentence, width)
    return "\n".join(lines) + "\n"


def _variants(variants: tuple[PlannedVariant, ...], width: int) -> list[str]:
    lines = [f"{len(variants)} variants:"]
    for variant in variants:
        marks = "  (baseline)" if variant.is_baseline else ""
        if variant.build_s:
            marks += f"  about {format_duration(variant.build_s * 1e9)}"
        lines += _wrapped(
            f"  {variant.name}: {variant.compiler} {' '.join(variant.flags)}; "
            f"link {' '.join(variant.link_flags) or 'without flags'}{marks}",
            width,
        )
    return lines


def _build(expected: Expectation) -> str:
    if not expected.stages_waiting:
        return f"Builds: all {expected.stages_cached} stages are in the cache."
    basis = "as before" if expected.known else "a guess until it was built once"
    return (
        f"Builds: {expected.stages_waiting} stages to build, "
        f"{expected.stages_cached} in the cache; "
        f"about {format_duration(expected.build_s * 1e9)} ({basis}), "
        f"{format_size(expected.disk_bytes)} of disk."
    )


def _race(expected: Expectation) -> str:
    if expected.trials_done >= expected.trials_total:
        return f"Racing: all {expected.trials_total} trials are there."
    return (
        f"Racing: {expected.trials_total - expected.trials_done} of "
        f"{expected.trials_total} trials, "
        f"about {format_duration(expected.racing_s * 1e9)}."
    )


def _cpus(expected: Expectation) -> str:
    return "CPUs: " + ", ".join(
        f"{what} on {','.join(map(str, numbers))}" for what, numbers in expected.cpus
    )


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(
        text, width, subsequent_indent=_INDENT, break_long_words=False, break_on_hyphens=False
    ) or [""]
