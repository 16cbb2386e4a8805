"""Typed facts of a stage in the cache: read once, where they come from the cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from pydantic import ConfigDict, TypeAdapter

from ensign.builders.collect_artifacts import Taken
from ensign.builders.relink import Relinked
from ensign.builders.stages import Stage
from ensign.host.cache import Cache
from ensign.host.entry import Entry, Facts
from ensign.model.builds import MadeLibrary, ProfileCoverage
from ensign.proof.facts import Proof
from ensign.proof.loaded_bytes import Artifact

_STRICT = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class ProfileFacts:
    """Known facts about the profiles of a program, and the compiler's complaints by flag.

    `idle` are symbols of functions that the training never ran.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    coverage: tuple[ProfileCoverage, ...] = ()
    warnings: Mapping[str, int] = field(default_factory=dict)
    idle: tuple[str, ...] = ()

    def describe(self) -> tuple[str, ...]:
        """All of it in sentences; nothing without a profile."""
        complaints = (f"-W{name}: {count} warnings" for name, count in self.warnings.items())
        return (*(coverage.said for coverage in self.coverage), *complaints)


@dataclass(frozen=True, slots=True)
class ProgramFacts:
    """Files taken of a program's tree, and what is proved of it.

    An instrumented program has no `proof`. `made` are libraries that its build made beside it.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    taken: Taken
    artifact: Artifact
    made: tuple[MadeLibrary, ...] = ()
    proof: Proof | None = None
    file_proofs: Mapping[str, Proof] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StageFacts:
    """One stage that was carried out.

    `build_s` is what it took itself, `chain_s` with what led to it, without dependencies.
    `unable` says why files of the program could not take part in a profile, or in BOLT's layout.
    `relinked` is None where no relinks were asked for; they took `relink_s`.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    label: str
    began_unix_ns: int
    build_s: float
    chain_s: float
    left_running: tuple[str, ...] = ()
    unable: Mapping[str, str] = field(default_factory=dict)
    profile: ProfileFacts = field(default_factory=ProfileFacts)
    relinked: Relinked | None = None
    relink_s: float | None = None
    program: ProgramFacts | None = None


StageEntry = Entry[StageFacts]
_FACTS = TypeAdapter(StageFacts)


def as_json(facts: StageFacts) -> Facts:
    """For keeping it with the stage."""
    value: Facts = _FACTS.dump_python(facts, mode="json")
    return value


def reader(kind: str) -> Callable[[Facts], StageFacts]:
    """Reader of the facts of stages of that kind; ValueError where they lack what it has."""

    def read(raw: Facts) -> StageFacts:
        facts = _FACTS.validate_python(raw)
        if kind in ("instrumented", "program") and facts.program is None:
            raise ValueError("a program without facts about it")
        if kind == "program" and facts.program is not None and facts.program.proof is None:
            raise ValueError("a program about which nothing is proved")
        return facts

    return read


def cached_stage(cache: Cache, stage: Stage) -> StageEntry | None:
    """The stage as it is in the cache; None where it is not there, or is damaged."""
    return cache.get(stage.kind, stage.key, reader(stage.kind))


def program_of(entry: StageEntry) -> ProgramFacts:
    """Known facts about the program of a stage. ValueError for a stage that makes none."""
    if entry.facts.program is None:
        raise ValueError(f"the stage '{entry.facts.label}' makes no program")
    return entry.facts.program


def proof_of(entry: StageEntry) -> Proof:
    """Proof of the program of a stage. ValueError for a stage that makes none."""
    proof = program_of(entry).proof
    if proof is None:
        raise ValueError(f"nothing is proved about '{entry.facts.label}'")
    return proof
