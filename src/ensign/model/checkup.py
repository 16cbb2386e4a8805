"""Findings of `ensign doctor`: what the machine offers and lacks, and what mends each lack."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ensign.model.findings import Finding
from ensign.model.results import MachineFacts


class Status(StrEnum):
    """`POOR` is there, but less than it could be."""

    GOOD = "good"
    POOR = "poor"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class CheckupLine:
    """One line: `area` groups lines, `remedy` is the very command (or word) that mends it."""

    area: str
    name: str
    status: Status
    detail: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Checkup:
    """All of them, with the machine's facts and what they mean for measurements."""

    checks: tuple[CheckupLine, ...]
    machine: MachineFacts
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Examined:
    """A program, library or archive that was looked at, and what it shows, in sentences."""

    path: str
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fact:
    """One line about a program; `more` is shown where details are asked for."""

    name: str
    value: str
    more: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Advice:
    """A practice that may make the program faster, or show why it is not.

    `text` says why it concerns this program, `takes` what it takes here, `worth` what it was worth
    in the studies of this repository, `price` the command that measures it for this program.
    """

    practice: str
    text: str
    takes: str
    worth: str
    price: str


@dataclass(frozen=True, slots=True)
class ArtifactCheckup:
    """Findings of `ensign doctor PATH` in a binary, or in a folder where something was built.

    `sources` names what else was evidence: maps, recorded calls, a dry run of a Makefile;
    `unasked` says what else could be asked, empty where nothing could. `facts` and `advice` are of
    a single program.
    """

    path: str
    examined: tuple[Examined, ...]
    sources: tuple[str, ...]
    findings: tuple[Finding, ...]
    unasked: str = ""
    facts: tuple[Fact, ...] = ()
    advice: tuple[Advice, ...] = ()
