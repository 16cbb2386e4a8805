"""All kinds of findings, in groups, as their page lists them."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

from ensign.model.finding_kinds import builds, fleet, judgment, machine, proof, race, ran
from ensign.model.findings import FindingKind


@dataclass(frozen=True, slots=True)
class Group:
    """Kinds about one subject, in their order; `about` says in a sentence what they are about."""

    title: str
    about: str
    kinds: tuple[FindingKind, ...]


def _group(title: str, module: ModuleType) -> Group:
    kinds = tuple(var for var in vars(module).values() if isinstance(var, FindingKind))
    return Group(title, (module.__doc__ or "").strip(), kinds)


CATALOG = (
    _group("The machine", machine),
    _group("Sources and builds", builds),
    _group("What a build proves", proof),
    _group("What ran", ran),
    _group("The race", race),
    _group("The judgment", judgment),
    _group("Several hosts", fleet),
)
