"""Findings on hosts of a fleet."""

from __future__ import annotations

from ensign.model.findings import FindingKind, Severity

HOST_DIFFERS = FindingKind(
    "host-differs",
    Severity.WARNING,
    "A host has another microcode, kernel, mitigations or other settings than the others of its "
    "kind.",
    "Make them alike, or give it a kind of its own.",
)
HOST_JOBS = FindingKind(
    "host-jobs",
    Severity.NOTE,
    "Jobs on a host ended before their work was done, or left something damaged: it was taken up "
    "again from there.",
    "Nothing was lost; look at the reason where it happens often.",
)
HOST_MISSING = FindingKind(
    "host-missing",
    Severity.WARNING,
    "A host that the study was given to has no results yet, so nothing here is true of it.",
    "Run the same command again; it goes on where it stopped.",
)
HOST_UNFINISHED = FindingKind(
    "host-unfinished",
    Severity.WARNING,
    "A host still has rounds to race, so what is said of it and of the fleet may change.",
    "Wait for it, or run the same command again where nothing runs.",
)
HOST_NOISY = FindingKind(
    "host-noisy",
    Severity.WARNING,
    "A host's rounds differ far more from each other than those of the other hosts.",
    "Look what else runs there, and race again.",
)
SAME_HOST = FindingKind(
    "same-host",
    Severity.WARNING,
    "Results of several hosts say that they are of one: counted twice it is no sample of its kind.",
    "Give each host's results once; or give hosts that share an image names and machine ids of "
    "their own.",
)
ONE_HOST = FindingKind(
    "one-host",
    Severity.WARNING,
    "A single host of a kind was measured, which says nothing of the others, so nothing is claimed "
    "of that kind and of the fleet.",
    "Measure another host of that kind.",
)
OTHER_BUILDS = FindingKind(
    "other-builds",
    Severity.NOTE,
    "Variants of one name are not the same bytes on all hosts: other compilers, sources or paths.",
    "Build once, and race the same files, where hosts alone are to be compared.",
)
TWIN_OF_FLEET = FindingKind(
    "twin-of-fleet",
    Severity.WARNING,
    "The A/A twin differs from the baseline over all hosts.",
    "Do not trust differences of that size.",
)
