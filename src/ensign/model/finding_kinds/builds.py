"""Findings on what was built, what was not, and on checks of the builds."""

from __future__ import annotations

from ensign.model.findings import FindingKind, Severity

IGNORED_FILES_LEFT = FindingKind(
    "ignored-files-left",
    Severity.NOTE,
    "Files of a git work tree that git ignores are not part of the source and were left behind.",
    "If the build needs them, set `source.ignored = true`.",
)
BUILT_FILES_IN_SOURCE = FindingKind(
    "built-files-in-source",
    Severity.NOTE,
    "The source holds objects, archives, libraries, programs, profiles or configured folders of an "
    "earlier build.",
    "If the build uses any of them, remove them first: `build.clean`, or `source.exclude`.",
)
SAME_COMMIT = FindingKind(
    "same-commit",
    Severity.WARNING,
    "Two revisions of a study are the same commit, or commits with the same files: their variants "
    "are built once.",
    "Drop one of the revisions, or name the one that was meant; `--update-lock` pins them anew.",
)
EMPTY_SUBMODULES = FindingKind(
    "empty-submodules",
    Severity.WARNING,
    "Folders of submodules are empty in the source: nothing is fetched for them, and the "
    "repository itself does not have their commits.",
    "Run `git submodule update --init --recursive` in the repository that the source names.",
)
REVISIONS = FindingKind(
    "revisions",
    Severity.NOTE,
    "The programs were built from clean checkouts of commits, made for this comparison.",
    "Nothing.",
)
UNCOMMITTED = FindingKind(
    "uncommitted-changes",
    Severity.WARNING,
    "The work tree has changes that no commit has; they are not part of what was compared.",
    "Commit them, on a branch perhaps, and compare that.",
)
ENVIRONMENTS = FindingKind(
    "environments",
    Severity.NOTE,
    "Programs ran in root directories of other systems, with the files of these, on one kernel.",
    "Nothing; `ensign env diff A B` says what else differs.",
)
CACHE_REPLACED = FindingKind(
    "cache-replaced",
    Severity.WARNING,
    "Something in the cache (a source, a download, a build) was not what was put there. It was not "
    "used: it was moved to the cache's folder `quarantine`, and fetched or built again.",
    "Find out who wrote there: another user, a disk that fails, or a build that ran without a "
    "sandbox. What this study used is right.",
)
LEFT_RUNNING = FindingKind(
    "left-running",
    Severity.WARNING,
    "A build or a command left processes running in the background, which were stopped.",
    "Let it stop what it starts: daemons of build tools carry state from build to build.",
)
VARIANT_LEFT_OUT = FindingKind(
    "variant-left-out",
    Severity.NOTE,
    "The variant cannot be built here, for instance because a tool is missing, and takes no part.",
    "Install what the text names, or drop the variant from the study.",
)
WORKLOADS_LEFT_OUT = FindingKind(
    "workloads-left-out",
    Severity.WARNING,
    "Workloads whose ends need a network of their own cannot be raced here, and take no part.",
    "Allow user and network namespaces, as the text says, or race them on another machine.",
)
BUILD_FAILED = FindingKind(
    "build-failed",
    Severity.WARNING,
    "The variant could not be built and takes no part.",
    "The text has the error that failed it, with its place, and what helps where that is known; "
    "the report names the log of the build.",
)
DEPENDENCIES_BROKEN = FindingKind(
    "dependencies-broken",
    Severity.WARNING,
    "The bundled dependencies of the variant could not be built.",
    "Read the end of the log. Where they do not build with the variant's flags, build them plain: "
    '`dependencies = "plain"`.',
)
UNKNOWN_LTO_FLAG = FindingKind(
    "unknown-lto-flag",
    Severity.WARNING,
    "The compiler refuses or ignores the LTO flag.",
    "Take another kind of LTO for this compiler, or a newer compiler.",
)
SAME_PROGRAM = FindingKind(
    "same-program",
    Severity.NOTE,
    "Two commands run the same program and libraries: what differs is their arguments, what is run "
    "around them, or the files that they read.",
    "Nothing; where the programs were meant to differ, see which ones ran: `--json` has them.",
)
SAME_BYTES = FindingKind(
    "same-bytes",
    Severity.NOTE,
    "No effect on the binary: all that is loaded of it has the bytes of another variant, whatever "
    "differs in files that nothing loads. A study races one of them for both.",
    "Nothing. If an effect was expected, check that the flags reach the compiler.",
)
RELINKS = FindingKind(
    "relinks",
    Severity.NOTE,
    "The relinks differ in less than was asked for, or there are fewer of them.",
    "Nothing, unless layouts are what the study is about; then link with lld.",
)
NOT_RELINKED = FindingKind(
    "not-relinked",
    Severity.WARNING,
    "A file of the variant cannot be relinked, so its numbers hold for this one layout only.",
    "The text says why. Where the program is changed after its link, let the build leave that out.",
)
NOT_BOLTED = FindingKind(
    "not-bolted",
    Severity.WARNING,
    "A file that is loaded with the program runs as it was linked, without BOLT.",
    "The text says why; BOLT needs relocations (`-Wl,--emit-relocs`) and a profile of the file.",
)

CHECK_FAILED = FindingKind(
    "check-failed",
    Severity.ERROR,
    "The variant failed the study's check and cannot win; or its workload fails, or prints "
    "other output than the baseline, and it is not raced.",
    "The build is wrong, or the check depends on more than the program: read the end of its log.",
)
CHECK_NEVER_RAN_IT = FindingKind(
    "check-never-ran-it",
    Severity.WARNING,
    "The commands of the check never executed the program, so they prove nothing.",
    "Let them run `{artifact}`.",
)
OUTPUT_NOT_COMPARED = FindingKind(
    "output-not-compared",
    Severity.NOTE,
    "The output of a workload could not be compared between variants, for the reason given.",
    "Make the output the same from run to run, or give the study a `[check]` of its own.",
)
UNTRAINED = FindingKind(
    "untrained",
    Severity.WARNING,
    "Functions that take time in a workload never ran in the training: the compiler took them for "
    "cold, and made them small instead of fast.",
    "Add a workload to `[training]` that runs them (not the one that is measured), or give GCC "
    "`-fprofile-partial-training`; `ensign repair` tries what helps.",
)
