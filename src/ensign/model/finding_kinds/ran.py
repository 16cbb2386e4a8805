"""Findings on whether what was raced is what was built, and did the same work to its end."""

from __future__ import annotations

from ensign.model.findings import FindingKind, Severity

ENVIRONMENT_FILES = FindingKind(
    "environment-files",
    Severity.NOTE,
    "Of the files that ran in two environments, these are not the same: what is measured comes of "
    "them.",
    "Nothing. Which of them it is, a race tells in which only that one differs.",
)
VISIBLE_DIFFERENCES = FindingKind(
    "visible-differences",
    Severity.NOTE,
    "What can be seen of how the files that two commands ran were built, where it differs: "
    "optimized or not, the widest registers, the PLT, FORTIFY, libraries, the allocator, traces of "
    "LTO, protections, the size of the code; with debug information the compiler and flags of each "
    "source.",
    "Nothing. `ensign doctor FILE` says more of each; what the difference in time comes of is not "
    "shown by that.",
)
SAME_CODE = FindingKind(
    "same-code",
    Severity.NOTE,
    "Nearly all of the difference lies in functions that have the same instructions, or the same "
    "hottest loop at another place, in the files of both commands. It comes of where these lie, of "
    "what they work on, or of how often they are called.",
    "If nothing else was changed, race relinks, as a study does (`ensign init`): there the layout "
    "takes turns.",
)
RAN_SOMETHING_ELSE = FindingKind(
    "ran-something-else",
    Severity.ERROR,
    "In the race a variant ran other files than when it was looked at before. It is not compared.",
    "Find out what replaces them: a build, an upgrade, or a command that chooses by itself.",
)
RAN_UNSEEN = FindingKind(
    "ran-unseen",
    Severity.WARNING,
    "In the race a variant ran files that were not seen when it was looked at before.",
    "Look at the files that the text names: they may be a part of what is compared.",
)
RAN_NOT_JUDGED = FindingKind(
    "ran-not-judged",
    Severity.NOTE,
    "What a workload ran could not be seen, for the reason given.",
    "Nothing, if you know that it runs what was built.",
)
BUILT_NOT_LOADED = FindingKind(
    "built-not-loaded",
    Severity.ERROR,
    "The build made a library, and another one of its name or soname was loaded in its place. The "
    "variant is not raced.",
    "Keep the library with the program (`build.runtime_files`), or fix the program's RPATH.",
)
ARTIFACT_NOT_RUN = FindingKind(
    "artifact-not-run",
    Severity.ERROR,
    "A workload ran no program of the build, so it says nothing about it. The variant is not "
    "raced.",
    "Let its command run `{artifact}`, or a program that `build.runtime_files` keeps.",
)
FLAG_NOT_RUN = FindingKind(
    "flag-not-run",
    Severity.ERROR,
    "Only files that did not run have a flag that was asked for: what ran shows nothing of it.",
    'Hand the flag to what runs (`build.rewrite.compile = ["{cflags}"]`), or run what has it.',
    "no workload ran one that has it; the variant is not raced",
)
FLAG_NOT_RUN_BY_ALL = FLAG_NOT_RUN.as_severity(Severity.WARNING, "some workloads ran none")
SHARED_FILES = FindingKind(
    "shared-files",
    Severity.WARNING,
    "Variants write or lock the same files, so they cannot be alive at once without meeting each "
    "other's changes.",
    "Give each its own: `{variant}` or `{tmp}` in the command.",
)
OUTPUTS_DIFFER = FindingKind(
    "outputs-differ",
    Severity.WARNING,
    "The commands, or the programs of two revisions, printed different output in one unmeasured "
    "run each.",
    "Make sure that they do the same work before comparing their speed.",
)
OUTPUTS_NOT_COMPARED = FindingKind(
    "outputs-not-compared",
    Severity.NOTE,
    "The baseline prints something else in every run, so whether the commands do the same work is "
    "not shown.",
    "Make the output the same from run to run (a fixed seed, no times), or check it yourself.",
)
UNMOVED_CODE = FindingKind(
    "unmoved-code",
    Severity.NOTE,
    "The program spends part of its time in files that lie where they lie in all relinks: "
    "libraries of the machine, and what could not be relinked. Layouts of theirs are not sampled.",
    "Nothing: variants share the machine's libraries. What the build made and could not be "
    "relinked is named by `not-relinked`, with the reason.",
)
FAILING_RUNS = FindingKind(
    "failing-runs",
    Severity.WARNING,
    "Runs failed and were measured all the same, as `--ignore-failure` allowed.",
    "Make sure that they do their work before they fail.",
)
VARIANT_FAILED = FindingKind(
    "variant-failed",
    Severity.ERROR,
    "A variant failed before the race or in it; it is out and not compared.",
    "Run it by hand. A crash of one build alone is a finding about that build. `--ignore-failure` "
    "of `compare` measures commands that are expected to fail.",
)
RELINK_FAILED = FindingKind(
    "relink-failed",
    Severity.WARNING,
    "A relink of the baseline failed during the race and is left out of the layout spread.",
    "A program that depends on its link order, or on that of its static constructors, fails so.",
)
RACE_ENDED_EARLY = FindingKind(
    "failed",
    Severity.ERROR,
    "The race ended early; the result is of the executions before that.",
    "Fix what the text names, and race again.",
)
