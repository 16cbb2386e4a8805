"""What a report says of workloads that were taken from a published suite. Pure."""

from __future__ import annotations

from ensign.model.finding_kinds.race import PUBLISHED_SUITE
from ensign.model.findings import Finding
from ensign.model.study_suite import Suite


def suite_facts(suite: Suite | None) -> tuple[tuple[str, str], ...]:
    """Where workloads were taken from, and how they differ from what was published."""
    if suite is None:
        return ()
    place = f"version {suite.version}" if suite.path is None else f"folder {suite.path}"
    scale = "as published"
    if suite.scale != 1:
        values = "too" if suite.scale_values else "as published"
        scale = (
            f"key spaces, preloads and fixed numbers of requests times {suite.scale:g}, "
            f"sizes of values {values}"
        )
    return (
        ("suite", f"{suite.kind}, {place}"),
        ("suite scale", scale),
        ("suite load", "one thread of ensign's own generator holds all connections"),
    )


def suite_findings(suite: Suite | None) -> tuple[Finding, ...]:
    """The same as a note in every report."""
    said = "; ".join(f"{name.replace('suite ', '')}: {text}" for name, text in suite_facts(suite))
    return (PUBLISHED_SUITE.found(said),) if said else ()
