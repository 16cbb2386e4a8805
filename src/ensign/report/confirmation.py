"""A study of two phases in words: what was explored, what was confirmed, and by which plan."""

from __future__ import annotations

from dataclasses import replace

from ensign.model.findings import Finding
from ensign.model.results import Confirmation, Result
from ensign.model.units import pluralize
from ensign.report.words import clean, listed, plain_share

HEADING = "Confirmation"
_SHOWN_DIGITS = 16


def confirmed(result: Result) -> Result | None:
    """The second phase as a result of its own, once all of it is there."""
    return None if result.confirmation is None else result.confirmation.result


def exploration_text(result: Result) -> str:
    """Notice over the tables of an exploration; empty for a study of one phase."""
    if result.confirmation is None:
        return ""
    rounds = pluralize(result.rounds_done, "round")
    return (
        f"Exploration: {rounds} of all variants, to choose what to confirm. Nothing is claimed of "
        "it: the best of several looks better than it is."
    )


def pending_text(confirmation: Confirmation, baseline: str) -> str:
    """Why nothing is claimed; for a confirmation without result."""
    if not confirmation.plan_sha256:
        return "Nothing is claimed yet: this is an exploration, and it is not confirmed."
    if not confirmation.finalists:
        return (
            f"In the exploration no variant that may win had a better mean than {clean(baseline)}: "
            "there was nothing to confirm."
        )
    done = f"{confirmation.rounds_done} of {pluralize(confirmation.rounds, 'confirming round')}"
    return f"Nothing is claimed yet: {done} are done, and none is looked at before the last."


def confirmation_text(confirmation: Confirmation) -> str:
    """Note on what was raced again, and how its claims are judged."""
    finalists = listed(confirmation.finalists)
    which = "finalist" if len(confirmation.finalists) == 1 else "finalists"
    return (
        f"Raced again: {which} {finalists}, {pluralize(confirmation.rounds, 'round')} on fresh "
        f"{listed(confirmation.fresh)}, each claim at {plain_share(confirmation.level)}; nothing "
        "of the exploration is counted."
    )


def plan_text(confirmation: Confirmation) -> str:
    """Note on the plan; empty where there is none yet."""
    if not confirmation.plan_sha256:
        return ""
    return (
        "Finalists, metric, margin, level, number of rounds and seeds were fixed before the "
        f"first confirming trial (SHA-256 of the plan {confirmation.plan_sha256[:_SHOWN_DIGITS]}…)."
    )


def findings_of(result: Result) -> tuple[Finding, ...]:
    """Findings of both phases; those that only the second one has say so."""
    second = confirmed(result)
    if second is None:
        return result.findings
    known = {(finding.code, finding.subject, finding.text) for finding in result.findings}
    further = (
        replace(finding, text=f"in the confirmation: {finding.text}")
        for finding in second.findings
        if (finding.code, finding.subject, finding.text) not in known
    )
    return (*result.findings, *further)
